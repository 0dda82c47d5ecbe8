"""Solve small repository tasks with our agent and with mini-swe-agent, and print how many each resolved and the cost.

    make eval MODEL=openai/gpt-x API_BASE=http://127.0.0.1:8000/v1 ARGS="--only py-median --repeat 3"

Without a model, a scripted one plays the reference solutions over HTTP: a proof of the evaluation, no measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from drone.model.scripted.server import ScriptedServer
from drone.sandbox import Sandbox, choose
from drone.sandbox.opened import close_all
from shared.errors import Refused
from shared.terminal.command_line import parse_params
from tests.eval import mini, ours, replayed
from tests.eval.attempt import Attempt, Bounds, Endpoint
from tests.eval.judging import judge
from tests.eval.mini import Mini
from tests.eval.ours import Ours
from tests.eval.report import Row, details, summary
from tests.eval.task import EvalTask, load

AGENTS = (ours.NAME, mini.NAME)


class Contestant(Protocol):
    """An agent that can attempt a task."""

    @property
    def name(self) -> str: ...

    def version(self) -> str: ...

    def attempt(self, task: EvalTask, endpoint: Endpoint, bounds: Bounds, scratch: Path) -> Attempt:
        """Work on the task's repository in the empty directory `scratch`, at most for the time of the bounds."""
        ...


def main(words: Sequence[str] | None = None) -> int:
    """Run the evaluation. 0: every attempt was judged, and, if they were replayed, resolved; 1: not; 2: wrong use."""
    chosen = _parser().parse_args(words)
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell starts what runs in the background with Ctrl-C ignored; ended either way, no agent is left running.
        signal.signal(number, signal.default_int_handler)
    try:
        tasks = load(chosen.only)
        endpoint = _endpoint(chosen)
        agents = _agents(chosen)
        sandbox = choose(chosen.sandbox, os.environ)
    except (ValueError, Refused) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    rows: list[Row] = []
    facts = _facts(chosen, endpoint, agents, sandbox)
    try:
        for row in _rows(chosen, tasks, agents, endpoint, sandbox):
            rows.append(row)
            _write(chosen.json, facts, rows)
    except KeyboardInterrupt:
        print("\ninterrupted; these attempts were judged:", file=sys.stderr)  # noqa: T201
    finally:
        close_all()
    print(_report(facts, rows))  # noqa: T201
    complete = len(rows) == len(tasks) * len(agents) * chosen.repeat
    return 0 if complete and (endpoint is not None or all(row.verdict.resolved for row in rows)) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.eval", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default=os.environ.get("MODEL", ""), help="LiteLLM's name (default: $MODEL)")
    parser.add_argument("--api-base", default=os.environ.get("API_BASE", ""), help="endpoint (default: $API_BASE)")
    parser.add_argument("--param", action="append", default=[], help="model parameter k=v for both agents; repeats")
    parser.add_argument("--seed", type=int, help="sent to the model; repetition N gets seed + N - 1 (default: none)")
    parser.add_argument("--only", action="append", default=[], metavar="TASK", help="only this task; repeats")
    parser.add_argument("--agent", action="append", default=[], choices=AGENTS, help="only this agent; repeats")
    parser.add_argument("--repeat", type=_positive, default=1, metavar="N", help="attempts at each task (default: 1)")
    parser.add_argument("--steps", type=_positive, default=40, help="answers of the model in an attempt (default: 40)")
    parser.add_argument("--seconds", type=_positive, default=600, help="time limit of an attempt (default: 600)")
    parser.add_argument("--cost-limit", type=float, default=1.0, help="USD for an attempt (default: 1)")
    parser.add_argument("--context-window", type=int, default=0, help="tokens, for our agent (default: LiteLLM's)")
    parser.add_argument("--sandbox", choices=("bwrap", "none"), default="bwrap", help="of both agents (default: bwrap)")
    parser.add_argument("--mini", type=Path, default=Path(".venv-mini"), help="environment that has mini-swe-agent")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here, after every attempt")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _endpoint(chosen: argparse.Namespace) -> Endpoint | None:
    """The model to measure; None to replay."""
    if not chosen.model:
        if chosen.api_base or chosen.param or chosen.seed is not None:
            raise ValueError("an endpoint, a parameter or a seed has no effect without a model; next: MODEL=openai/x")
        return None
    key = "API_KEY" if os.environ.get("API_KEY") else None
    return Endpoint(chosen.model, chosen.api_base or None, key, parse_params(chosen.param))


def _agents(chosen: argparse.Namespace) -> list[Contestant]:
    """The agents to compare. Raises ValueError if mini-swe-agent is not installed."""
    other = Mini(chosen.mini.resolve(), chosen.sandbox)
    agents: list[Contestant] = [Ours(chosen.sandbox, chosen.context_window), other]
    wanted = [agent for agent in agents if not chosen.agent or agent.name in chosen.agent]
    if other in wanted:
        try:
            other.version()
        except (OSError, subprocess.CalledProcessError) as error:
            raise ValueError(f"mini-swe-agent is not in {chosen.mini}; next: make eval") from error
    return wanted


def _rows(
    chosen: argparse.Namespace,
    tasks: Sequence[EvalTask],
    agents: Sequence[Contestant],
    endpoint: Endpoint | None,
    sandbox: Sandbox,
) -> Iterator[Row]:
    bounds = Bounds(chosen.steps, chosen.seconds, chosen.cost_limit)
    everything = [(n, task, agent) for n in range(chosen.repeat) for task in tasks for agent in agents]
    for done, (repetition, task, agent) in enumerate(everything, start=1):
        seed = None if chosen.seed is None else chosen.seed + repetition
        began = time.monotonic()
        attempt = _attempt(agent, task, endpoint, seed, bounds)
        seconds = time.monotonic() - began
        row = Row(
            agent.name, task, repetition, seed, attempt, judge(task, attempt.patch, attempt.answer, sandbox), seconds
        )
        print(_progress(row, done, len(everything)), file=sys.stderr, flush=True)  # noqa: T201
        yield row


def _attempt(agent: Contestant, task: EvalTask, endpoint: Endpoint | None, seed: int | None, bounds: Bounds) -> Attempt:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eval-", ignore_cleanup_errors=True)))
        if endpoint is None:
            server = stack.enter_context(ScriptedServer(replayed.script(task, agent.name)))
            endpoint = Endpoint(replayed.MODEL, server.url)
        elif seed is not None:
            endpoint = replace(endpoint, params={**(endpoint.params or {}), "seed": seed})
        return agent.attempt(task, endpoint, bounds, scratch)


def _progress(row: Row, done: int, of: int) -> str:
    steps = "?" if row.attempt.steps is None else row.attempt.steps
    problem = f" · {row.attempt.problem[:160]}" if row.attempt.problem else ""
    return f"{done}/{of} {row.task.name} · {row.agent}: {row.verdict.why}, {steps} steps, {row.seconds:.0f} s{problem}"


def _facts(
    chosen: argparse.Namespace, endpoint: Endpoint | None, agents: Sequence[Contestant], sandbox: Sandbox
) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "model": endpoint.model if endpoint else replayed.MODEL,
        "replayed": endpoint is None,
        "params": dict(endpoint.params or {}) if endpoint else {},
        "seeds": [] if chosen.seed is None else [chosen.seed + n for n in range(chosen.repeat)],
        "limits": {"steps": chosen.steps, "seconds": chosen.seconds, "cost_usd": chosen.cost_limit},
        "sandbox": sandbox.kind,
        "versions": {agent.name: agent.version() for agent in agents},
    }


def _report(facts: dict[str, Any], rows: Sequence[Row]) -> str:
    replay, limits = facts["replayed"], facts["limits"]
    versions = " · ".join(f"{name} {number}" for name, number in facts["versions"].items())
    head = [
        f"model {facts['model']}{' (a script plays the reference solutions)' if replay else ''} · {facts['date']} · "
        f"{versions}",
        f"at most {limits['steps']} steps, {limits['seconds']} s and {limits['cost_usd']:g} USD for an attempt · "
        f"seeds: {', '.join(map(str, facts['seeds'])) or 'none'} · sandbox {facts['sandbox']}",
    ]
    return "\n".join(["", details(rows), "", *head, "", summary(rows, replayed=replay)])


def _write(path: Path | None, facts: dict[str, Any], rows: Sequence[Row]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {**facts, "attempts": [row.document() for row in rows]}
        path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(main())
