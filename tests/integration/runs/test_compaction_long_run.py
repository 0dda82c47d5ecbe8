"""A day's work in a small window: 300 steps through real HTTP, every request valid and within the window."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.budget import RunBudget
from drone.agent.compaction import WindowCompaction
from drone.agent.in_memory import KeptEvents, NoHooks, QuietControls
from drone.agent.values import ToolResult, ToolSpec
from drone.model.litellm_import import litellm
from drone.model.litellm_model import LiteLLMModel
from drone.model.scripted.server import ScriptedServer
from shared.clock import SystemClock
from shared.errors import Submitted
from shared.events import CompactionStep
from shared.messages import ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.transcripts import messages_of, problems
from shared.work_order import Limits, OrderProvider
from tests.support.scripted import ScriptedFactory

pytestmark = pytest.mark.usefixtures("warm_model")
WINDOW = 16_000
_NOTE = re.compile(r"\n\[… ([\d,]+) characters left out to save room …\]\n")
REQUEST = f"Read all the files. {'Mind the details of each of them. ' * 12}Never write to docs/."
PROMPT = f"{REQUEST}\n\n<situation>\nDate: today\n</situation>"
SUMMARY = {"text": "All is well so far. " * 20}
_LIMITS = Limits(max_iterations=400, cost_limit=0, max_run_seconds=0, base_delay=0)


class Files:
    """A toolbox whose results are of every size up to 10,000 characters, and of every kind."""

    def __init__(self, kinds: str = "prose code log digest") -> None:
        self._kinds = kinds.split()
        self.ran: list[str] = []
        self.results: dict[str, str] = {}
        """By the id of the call."""

    def specs(self) -> list[ToolSpec]:
        path = {"type": "object", "properties": {"path": {"type": "string"}}}
        return [
            ToolSpec("file_read", "Read a file. " * 20, path),
            ToolSpec("todo", "List."),
            ToolSpec("submit", "End."),
        ]

    def execute(self, call: ToolCall) -> ToolResult:
        if call.name == "submit":
            raise Submitted(outcome=Outcome(ExitStatus.SUBMITTED, "The model submitted its work.", "All read."))
        if call.name == "todo":
            return ToolResult("noted")
        path = json.loads(call.arguments)["path"]
        self.ran.append(path)
        self.results[call.id] = self._content(random.Random(path))
        return ToolResult(self.results[call.id])

    def _content(self, chance: random.Random) -> str:
        size = chance.choice([0, 50, 300, 300, 2_000, 2_000, 10_000])
        text = "".join(_lines(chance.choice(self._kinds), chance))
        return text[:size]


def _lines(kind: str, chance: random.Random) -> Iterator[str]:
    for number in range(200):
        digest = sha256(chance.randbytes(8)).hexdigest()
        yield {
            "prose": "The older part of the conversation gives way to a summary of it, which is short.\n",
            "code": f"    if self._rows[{number}] != other[{number}]:\n        return not self._equal(x_{number})\n",
            "log": f"2026-11-22T01:{number % 60:02}:07Z INFO worker {number} took {number * 7} ms for GET /v1/orders\n",
            "digest": f"{digest}  {digest[:12]}.tar\n",
            "japanese": "古い会話は短い要約に置き換えられます。\n" * 5,
        }[kind]


@cache
def _tokens(text: str) -> int:
    return int(litellm().token_counter(model="gpt-4o", text=text))


def counted(body: dict[str, Any]) -> int:
    """Tokens of a request by a real tokenizer; each message is counted once, as most come again with each request."""
    return sum(_tokens(json.dumps(part, ensure_ascii=False)) for part in [*body["messages"], *body.get("tools", [])])


def _reads(steps: int) -> list[dict[str, Any]]:
    """So many answers with one to three calls, the last of which ends the run."""
    return [
        {"text": f"Step {step}.", "tool_calls": [_read(step, at) for at in range(1 + step % 3)]}
        for step in range(steps - 1)
    ] + [{"tool_calls": [{"name": "submit"}], "repeat": True}]


def _listing(script: list[dict[str, Any]], at: int, *texts: str) -> None:
    """Let an answer of the script also write the to-do list."""
    items = [{"text": text} for text in texts]
    script[at]["tool_calls"].append({"name": "todo", "arguments": {"items": items}})


def _read(step: int, at: int) -> dict[str, Any]:
    return {"name": "file_read", "arguments": {"path": f"src/{step}/{at}.py"}}


class Working:
    """An agent with a compaction, on an endpoint that counts with a real tokenizer."""

    def __init__(
        self,
        server: ScriptedServer,
        toolbox: Files,
        stated_window: int = WINDOW,
        system: str = "You are tested. " * 100,
    ) -> None:
        self.system = system
        clock, self.controls, self.recorder = SystemClock(), QuietControls(), KeptEvents()
        provider = OrderProvider(
            name="scripted", model="openai/scripted", api_base=server.url, context_window=stated_window
        )
        self.model = LiteLLMModel(provider, None, _LIMITS, self.recorder, clock, self.controls)
        self.budget = RunBudget(_LIMITS, clock)
        self.compaction = WindowCompaction(self.model, self.recorder, NoHooks(), self.budget, toolbox.specs, REQUEST)
        self.agent = Agent(
            self.model,
            toolbox,
            self.recorder,
            self.controls,
            _LIMITS,
            clock,
            budget=self.budget,
            compaction=self.compaction,
        )

    def run(self) -> Outcome:
        return self.agent.run(self.system, (), PROMPT)

    @property
    def compactions(self) -> list[CompactionStep]:
        return [body for body in self.recorder.bodies if isinstance(body, CompactionStep)]


@pytest.fixture
def endpoint(scripted: ScriptedFactory) -> Callable[..., ScriptedServer]:
    """Start an endpoint that refuses what its window does not hold."""

    def start(steps: int, script: list[dict[str, Any]] | None = None, **more: Any) -> ScriptedServer:
        script = {"default": script or _reads(steps), "summary": [SUMMARY]}
        return scripted(script, **{"window": WINDOW, "count": counted, **more})

    return start


@pytest.mark.timeout(300)
@pytest.mark.parametrize("steps", [40, pytest.param(300, marks=pytest.mark.long)])
def test_a_turn_of_many_steps_in_a_window_of_16000_tokens_finishes(
    endpoint: Callable[..., ScriptedServer], steps: int
) -> None:
    server, toolbox = endpoint(steps), Files()
    working = Working(server, toolbox)
    outcome = working.run()
    assert (outcome.exit_status, working.budget.iterations) == (ExitStatus.SUBMITTED, steps)
    assert toolbox.ran == [call["arguments"]["path"] for reply in _reads(steps)[:-1] for call in reply["tool_calls"]]
    assert {problem for body in server.requests for problem in problems(body["messages"])} == set()
    assert max(map(counted, server.requests)) <= WINDOW
    assert len(server.requests) == steps + sum(not body.get("tools") for body in server.requests)
    assert len(working.compactions) > steps / 20
    assert {step.cause for step in working.compactions} == {"window"}
    assert messages_of(working.recorder.bodies) == list(working.agent.transcript[1:])


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("window", "system"),
    [(16_000, 400), (5_000, 2_400)],
    ids=["16,000", "5,000 of which the system prompt fills half"],
)
def test_every_summary_is_written_for_the_request_and_every_unseen_result_is_shown(
    endpoint: Callable[..., ScriptedServer], window: int, system: int
) -> None:
    script, early, late = _reads(50), ("Read the first half", "Read the other half"), ("Read the other half", "Report")
    _listing(script, 0, *early)
    _listing(script, 30, *late)
    server, toolbox = endpoint(0, window=window, script=script), Files()
    working = Working(server, toolbox, window, "You are tested. " * (system // 4))
    assert working.run().exit_status is ExitStatus.SUBMITTED
    summaries = [body["messages"][1]["content"] for body in server.requests if not body.get("tools")]
    lists = ["<todo>\n[pending] {}\n[pending] {}\n</todo>".format(*items) for items in (early, late)]
    shown = [[listed in text for listed in lists] for text in summaries]
    assert len(summaries) > 3
    assert {text.count(f"<request>\n{REQUEST}\n</request>") for text in summaries} == {1}
    assert shown == sorted(shown, reverse=True)
    assert {tuple(each) for each in shown} == {(True, False), (False, True)}
    asked = [body["messages"] for body in server.requests if body.get("tools")]
    assert [problem for messages in asked for problem in _hidden(messages, toolbox.results)] == []
    assert max(map(counted, server.requests)) <= window


def _hidden(messages: list[dict[str, Any]], results: dict[str, str]) -> Iterator[str]:
    """Say for each result that the model has not seen before whether this question hides it."""
    last = max(at for at, message in enumerate(messages) if message["role"] in {"assistant", "system"})
    unseen = [message for message in messages[last + 1 :] if message["role"] == "tool"]
    if [call["id"] for call in messages[last].get("tool_calls") or ()] != [each["tool_call_id"] for each in unseen]:
        yield f"not every call is answered: {messages[last:]}"
    if last == 0 and messages[1]["content"].startswith("<summary>"):
        yield f"neither calls nor results: {messages[1:]}"
    for each in unseen:
        whole, shown = results.get(each["tool_call_id"], "noted"), each["content"]
        head, left_out, tail = [*_NOTE.split(shown), "0", ""][:3]
        if head + "?" * int(left_out.replace(",", "")) + tail != _without_middle(whole, head, tail):
            yield f"{whole!r} is shown as {shown!r}"


def _without_middle(whole: str, head: str, tail: str) -> str:
    """The text with the part between head and tail made unreadable."""
    assert whole.startswith(head)
    assert whole.endswith(tail)
    return head + "?" * (len(whole) - len(head) - len(tail)) + tail
