"""Whatever happens to a session, its next turn sees what a small model of it says, and an endpoint takes that."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_plane.contract.declarations.sessions import ForkRequest, SessionRequest, SwitchRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.engine import sqlite_url_of
from control_plane.operations import sessions
from shared.events import AssistantStep, Body, CompactionStep, ToolResultStep, UserStep
from shared.messages import Message, ToolCall
from tests.support.clocks import HandClock
from tests.support.database import core_on
from tests.support.made import make_drone, make_project
from tests.support.transcripts import problems
from tests.support.turns import CANCELED, FAILED, SUCCEEDED, context, play

NOT_RUN = "This call was not run: the run had ended."
ENDINGS = {
    "finished": (SUCCEEDED, "stopped"),
    "out of time": (FAILED, "time_limit"),
    "canceled": (CANCELED, "canceled"),
    "no model": (FAILED, "model_error"),
}
MOVES = st.one_of(
    st.tuples(st.just("calls"), st.integers(0, 3)),
    st.tuples(st.just("compact"), st.integers(0, 6)),
    st.tuples(st.just("cut"), st.integers(1, 3)),
)
RUNS = st.lists(MOVES, max_size=4)
TURNS = st.tuples(st.just("turn"), st.sampled_from(sorted(ENDINGS)), RUNS, st.lists(RUNS, max_size=2))
ACTS = st.lists(
    st.one_of(
        TURNS,
        st.tuples(st.just("switch"), st.integers(0, 5)),
        st.tuples(st.just("fork"), st.integers(0, 5)),
    ),
    max_size=7,
)


@dataclass
class Loop:
    """The loop of one run, as far as its transcript and its steps go."""

    transcript: list[Message]
    steps: list[Body] = field(default_factory=list)
    answers: int = 0

    def run(self, prompt: str, moves: list[tuple[str, int]]) -> None:
        self._user(prompt)
        for move, number in moves:
            if not getattr(self, move)(number):
                return
        self._assistant("done", 0)

    def calls(self, number: int) -> bool:
        """An answer with so many calls, each of them answered; without any the model has stopped."""
        for call in self._assistant("I call.", number):
            self._result(call)
        return number > 0

    def cut(self, number: int) -> bool:
        """The run breaks off before the last of so many calls has its result."""
        for call in self._assistant("I call, and", number)[:-1]:
            self._result(call)
        return False

    def compact(self, keep: int) -> bool:
        """A summary for all but the last messages; a result is never parted from its call."""
        keep = min(keep, len(self.transcript))
        while keep and self.transcript[-keep].role == "tool":
            keep -= 1
        self.steps.append(CompactionStep(summary="so far", kept=keep))
        tail = self.transcript[-keep:] if keep else []
        self.transcript = [Message(role="user", content="<summary>\nso far\n</summary>", part="summary"), *tail]
        return True

    def _user(self, text: str) -> None:
        self.steps.append(UserStep(text=text, source="prompt"))
        self.transcript.append(Message(role="user", content=text, part="opening"))

    def _assistant(self, text: str, number: int) -> tuple[ToolCall, ...]:
        self.answers += 1
        prompt = next(step.text for step in self.steps if isinstance(step, UserStep))
        calls = tuple(ToolCall(id=f"{prompt}/{self.answers}/{n}", name="shell") for n in range(number))
        self.steps.append(AssistantStep(text=text, tool_calls=calls))
        self.transcript.append(Message(role="assistant", content=text, tool_calls=calls))
        return calls

    def _result(self, call: ToolCall) -> None:
        self.steps.append(ToolResultStep(call_id=call.id, output=f"result of {call.id}"))
        self.transcript.append(Message(role="tool", tool_call_id=call.id, content=f"result of {call.id}"))


def closed(transcript: list[Message]) -> list[Message]:
    """A run's last transcript with its open calls answered, as the next run begins with it."""
    answered = {message.tool_call_id for message in transcript}
    opened = [call for message in transcript for call in message.tool_calls if call.id not in answered]
    return [
        *transcript,
        *(Message(role="tool", tool_call_id=call.id, content=NOT_RUN, is_error=True) for call in opened),
    ]


@dataclass
class Played:
    """A session in the database beside the model of it: each turn with the transcript that it ended with."""

    core: Core
    admin: Caller
    session: str
    seen: list[Message] = field(default_factory=list)
    turns: dict[str, list[Message]] = field(default_factory=lambda: {"root": []})
    prompts: int = 0

    def turn(self, ending: str, moves: list[tuple[str, int]], lost: list[list[tuple[str, int]]]) -> None:
        self.prompts += 1
        prompt = f"prompt {self.prompts}"
        runs = [Loop(list(self.seen)) for _ in (*lost, moves)]
        for run, its_moves in zip(runs, (*lost, moves), strict=True):
            run.run(prompt, its_moves)
        to, exit_status = ENDINGS[ending]
        earlier = [run.steps for run in runs[:-1]]
        how = {"steps": runs[-1].steps, "to": to, "exit_status": exit_status, "lost": earlier}
        order_id = play(self.core, self.admin, prompt, self.session, **how)
        self.turns[order_id] = closed(runs[-1].transcript)
        self.seen = self.seen if ending == "no model" else self.turns[order_id]

    def switch(self, number: int) -> None:
        place = self._place(number)
        sessions.switch(self.core, self.admin, self.session, SwitchRequest(entry=place))
        self.seen = self.turns[place]

    def fork(self, number: int) -> None:
        place = self._place(number)
        self.session = sessions.fork(self.core, self.admin, self.session, ForkRequest(at=place)).id
        self.seen = self.turns[place]
        # From here on only what lies before the fork can be reached, and what is still to come.
        entries = sessions.show(self.core, self.admin, self.session).entries
        kept = {"root", *(entry.turn.order for entry in entries if entry.turn)}
        self.turns = {name: transcript for name, transcript in self.turns.items() if name in kept}

    def _place(self, number: int) -> str:
        return list(self.turns)[number % len(self.turns)]


@pytest.fixture(scope="module")
def core(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Core]:
    directory = tmp_path_factory.mktemp("sessions")
    shutil.copy(sqlite_template, directory / "fleet.db")
    made = core_on(sqlite_url_of(directory / "fleet.db"), directory, clock=HandClock())
    make_project(made, system_caller(made))
    make_drone(made, system_caller(made), concurrency=1000)
    yield made
    made.database.dispose()


@given(acts=ACTS)
@settings(max_examples=15, deadline=None)
def test_any_turns_switches_forks_and_compactions_give_the_conversation_of_the_model(
    core: Core, acts: list[tuple[str, ...]]
) -> None:
    admin = system_caller(core)
    played = Played(core, admin, sessions.create(core, admin, SessionRequest(project="web")).id)
    for act, *how in acts:
        getattr(played, act)(*how)
        found = context(core, played.session)
        assert problems(found) == []
        assert found == played.seen
