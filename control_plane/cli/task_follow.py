"""Following a task in a terminal: timeline entries as they arrive, across restarts of the server.

On a terminal, a status line below them tells which run is in progress, for how long, and what it is doing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Any

from control_plane.cli.answers import cost, for_people
from control_plane.cli.polling import EVERY_S, PatientReader
from control_plane.cli.task_text import Timeline
from shared.clock import Clock, SystemClock
from shared.durations import clock_label
from shared.terminal.output import iso, print_json_line, printable, say
from shared.terminal.run_screen import RunScreen

Doc = dict[str, Any]
_OVERLAP = timedelta(minutes=1)
"""Entries written at the same time may become visible one after the other; a duplicate is printed once."""


def follow_task(fleet: Any, task_id: str, *, as_json: bool, clock: Clock | None = None) -> int:
    """Print what happens until the user is needed or nothing more will happen; returns the corresponding exit code."""
    status = _TaskStatus()
    with nullcontext() if as_json else RunScreen(sys.stdout, status.text) as screen:
        shown = _Json() if screen is None else _Text(screen, status)
        seen = _SeenEntries()
        task: Doc = {}
        for received in _poll(fleet, task_id, seen, clock or SystemClock(), note=shown.note):
            task = received if as_json else for_people(received)
            for entry in seen.new(task["timeline"]):
                shown.entry(entry)
            shown.state(task)
    shown.end(task)
    return 1 if task["status"] in {"failed", "canceled"} else 0


class _SeenEntries:
    """Timeline entries that were printed already."""

    def __init__(self) -> None:
        self._printed: set[tuple[str, str]] = set()
        self.since: datetime | None = None

    def new(self, timeline: list[Doc]) -> list[Doc]:
        """The new entries; a run is new when it begins and again when it has ended."""
        fresh = [entry for entry in timeline if _key(entry) not in self._printed]
        self._printed.update(_key(entry) for entry in fresh)
        comments = [datetime.fromisoformat(entry["at"]) for entry in timeline if entry["kind"] == "comment"]
        if comments:
            self.since = max(comments) - _OVERLAP
        return fresh


def _key(entry: Doc) -> tuple[str, str]:
    if entry["kind"] == "comment":
        return "comment", entry["comment"]["id"]
    return f"run {entry['run']['ended_at'] is not None}", entry["run"]["run_id"]


def _poll(fleet: Any, task_id: str, seen: _SeenEntries, clock: Clock, *, note: Callable[[str], None]) -> Iterator[Doc]:
    """Yield the task once a second until it rests. Raises if the first request fails; later requests are retried."""
    read = PatientReader(lambda: fleet.show_task(task_id, since=iso(seen.since) if seen.since else None), note, clock)
    while True:
        task = read()
        yield task
        if _rests(task):
            return
        clock.sleep(EVERY_S)


def _rests(task: Doc) -> bool:
    return task["status"] in {"done", "failed", "canceled"} or (task["status"] == "open" and task["assignee"] == "user")


class _Json:
    """One JSON document per line: entries, state changes, and the task last."""

    def __init__(self) -> None:
        self._state: Doc = {}

    def note(self, text: str) -> None:
        say(text)

    def entry(self, entry: Doc) -> None:
        print_json_line({"event": entry["kind"], **entry})

    def state(self, task: Doc) -> None:
        state = {name: task[name] for name in ("status", "assignee")}
        if state != self._state:
            self._state = state
            print_json_line({"event": "task", "id": task["id"], **state, "reason": task["reason"]})

    def end(self, task: Doc) -> None:
        print_json_line(task)


class _TaskStatus:
    """The run in progress, how long it has been running, what it is doing, and what the task used so far."""

    def __init__(self) -> None:
        self._task: Doc = {}
        self._run: Doc = {}
        self._heard = 0.0

    def hear(self, task: Doc) -> None:
        running = [entry["run"] for entry in task["timeline"] if entry["run"] and entry["run"]["ended_at"] is None]
        self._task, self._run, self._heard = task, running[-1] if running else {}, time.monotonic()

    def text(self) -> str:
        task, run = self._task, self._run
        if not task:
            return ""
        parts = [task["status"].replace("_", " ")]
        elapsed = task["current_run_elapsed_seconds"]
        if elapsed is not None:
            # Counted on from the server's figure: the clock of this machine may differ from its clock.
            parts.append(clock_label(elapsed + time.monotonic() - self._heard))
        if run:
            parts.append(f"{run['agent'] or 'no agent'} on {run['drone'] or 'no drone'}")
        totals = task["totals"]
        parts.append(f"{totals['input_tokens'] + totals['output_tokens']:,} tokens")
        parts.append(cost(totals["cost_usd"]))
        if run.get("doing"):
            parts.append(run["doing"])
        return " · ".join(map(printable, parts))


class _Text:
    """Text for people."""

    def __init__(self, screen: RunScreen, status: _TaskStatus) -> None:
        self._screen = screen
        self._status = status
        self._timeline = Timeline()
        self._state = ""

    def note(self, text: str) -> None:
        self._screen.note(text)

    def entry(self, entry: Doc) -> None:
        self._screen.lines([(line.rstrip(), None) for line in self._timeline.lines(entry)])

    def state(self, task: Doc) -> None:
        self._status.hear(task)
        state = f"{task['status'].replace('_', ' ')}, assigned to {task['assignee']}"
        if task["status"] != "in_progress":
            state = f"{state}: {printable(task['reason'])}"
        if state != self._state:
            self._state = state
            self._screen.lines([(f"● {state}", "bold")])

    def end(self, task: Doc) -> None:
        spent = task["totals"]
        say(f"{spent['runs']} {'run' if spent['runs'] == 1 else 'runs'}. Details: fleet task show {task['id']}")
