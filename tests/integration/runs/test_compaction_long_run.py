"""A day's work in a small window: many steps through real HTTP, every request valid and within the window."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.budget import RunBudget
from drone.agent.compaction.window_compaction import WindowCompaction
from drone.agent.in_memory import KeptEvents, NoHooks, QuietControls
from drone.agent.values import ToolResult, ToolSpec
from drone.model.litellm_import import litellm
from drone.model.litellm_model import LiteLLMModel
from shared.clock import SystemClock
from shared.errors import Submitted
from shared.events import CompactionStep
from shared.messages import ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.transcripts import messages_of
from shared.work_order import Limits, OrderProvider
from tests.support.scripted import ScriptedFactory, says
from tests.support.transcripts import problems

pytestmark = pytest.mark.usefixtures("warm_model")
REQUEST = f"Read all the files. {'Mind the details of each of them. ' * 12}Never write to docs/."
PROMPT = f"{REQUEST}\n\n<situation>\nDate: today\n</situation>"
EARLY, LATE = ("Read the first half", "Read the other half"), ("Read the other half", "Report")
_NOTE = re.compile(r"\n\[… ([\d,]+) characters left out to save room …\]\n")
_LIMITS = Limits(max_iterations=400, cost_limit=0, max_run_seconds=0, base_delay=0)


class Files:
    """A toolbox whose results are of every size up to 10,000 characters, and of every kind."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.results: dict[str, str] = {}
        """By the id of the call."""

    def specs(self) -> list[ToolSpec]:
        path = {"type": "object", "properties": {"path": {"type": "string"}}}
        read = ToolSpec("file_read", "Read a file. " * 20, path)
        return [read, ToolSpec("todo", "List."), ToolSpec("submit", "End.")]

    def execute(self, call: ToolCall) -> ToolResult:
        if call.name == "submit":
            raise Submitted(outcome=Outcome(ExitStatus.SUBMITTED, "The model submitted its work.", "All read."))
        if call.name == "todo":
            return ToolResult("noted")
        path = json.loads(call.arguments)["path"]
        self.ran.append(path)
        chance = random.Random(path)
        size = chance.choice([0, 50, 300, 300, 2_000, 2_000, 10_000])
        self.results[call.id] = "".join(_lines(chance.choice(["prose", "code", "log", "digest"]), chance))[:size]
        return ToolResult(self.results[call.id])


def _lines(kind: str, chance: random.Random) -> Iterator[str]:
    for number in range(200):
        digest = sha256(chance.randbytes(8)).hexdigest()
        yield {
            "prose": "The older part of the conversation gives way to a summary of it, which is short.\n",
            "code": f"    if self._rows[{number}] != other[{number}]:\n        return not self._equal(x_{number})\n",
            "log": f"2026-11-22T01:{number % 60:02}:07Z INFO worker {number} took {number * 7} ms for GET /v1/orders\n",
            "digest": f"{digest}  {digest[:12]}.tar\n",
        }[kind]


@cache
def _tokens(text: str) -> int:
    return int(litellm().token_counter(model="gpt-4o", text=text))


def counted(body: dict[str, Any]) -> int:
    """Tokens of a request by a real tokenizer; each message is counted once, as most come again with each request."""
    return sum(_tokens(json.dumps(part, ensure_ascii=False)) for part in [*body["messages"], *body.get("tools", [])])


def script_of(steps: int) -> list[dict[str, Any]]:
    """So many answers with one to three calls, two of which also write a to-do list; the last ends the run."""
    script: list[dict[str, Any]] = []
    for step in range(steps - 1):
        reads = [{"name": "file_read", "arguments": {"path": f"src/{step}/{at}.py"}} for at in range(1 + step % 3)]
        script.append(says(f"Step {step}.", tool_calls=reads))
    for at, texts in ((0, EARLY), (steps * 3 // 5, LATE)):
        items = [{"text": text} for text in texts]
        script[at]["tool_calls"].append({"name": "todo", "arguments": {"items": items}})
    return [*script, {"tool_calls": [{"name": "submit"}], "repeat": True}]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("steps", "window", "system"),
    [(50, 5_000, 2_400), pytest.param(300, 16_000, 400, marks=pytest.mark.long)],
    ids=["5,000 of which the system prompt fills half", "300 steps"],
)
def test_every_summary_is_written_for_the_request_and_every_unseen_result_is_shown(
    scripted: ScriptedFactory, steps: int, window: int, system: int
) -> None:
    script, toolbox, recorder, controls, clock = script_of(steps), Files(), KeptEvents(), QuietControls(), SystemClock()
    summary = says("All is well so far. " * 20)
    server = scripted({"default": script, "summary": [summary]}, window=window, count=counted)
    provider = OrderProvider(name="scripted", model="openai/scripted", api_base=server.url, context_window=window)
    model = LiteLLMModel(provider, None, _LIMITS, recorder, clock, controls)
    budget = RunBudget(_LIMITS, clock)
    compaction = WindowCompaction(model, recorder, NoHooks(), budget, toolbox.specs, REQUEST)
    agent = Agent(model, toolbox, recorder, controls, _LIMITS, clock, budget=budget, compaction=compaction)

    outcome = agent.run("You are tested. " * (system // 4), (), PROMPT)

    assert (outcome.exit_status, budget.iterations) == (ExitStatus.SUBMITTED, steps)
    calls = [call["arguments"] for reply in script[:-1] for call in reply["tool_calls"]]
    assert toolbox.ran == [arguments["path"] for arguments in calls if "path" in arguments]
    assert {problem for body in server.requests for problem in problems(body["messages"])} == set()
    assert max(map(counted, server.requests)) <= window
    compactions = [body for body in recorder.bodies if isinstance(body, CompactionStep)]
    assert (len(compactions) > steps / 20, {step.cause for step in compactions}) == (True, {"window"})
    assert messages_of(recorder.bodies) == list(agent.transcript[1:])

    asked = [body["messages"] for body in server.requests if body.get("tools")]
    assert len(asked) == steps
    assert [problem for messages in asked for problem in _hidden(messages, toolbox.results)] == []
    summaries = [body["messages"][1]["content"] for body in server.requests if not body.get("tools")]
    assert {text.count(f"<request>\n{REQUEST}\n</request>") for text in summaries} == {1}
    lists = ["<todo>\n[pending] {}\n[pending] {}\n</todo>".format(*items) for items in (EARLY, LATE)]
    shown = [[listed in text for listed in lists] for text in summaries]
    assert shown == sorted(shown, reverse=True)
    assert {tuple(each) for each in shown} == {(True, False), (False, True)}


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
        hidden = len(whole) - len(head) - len(tail)
        if not (whole.startswith(head) and whole.endswith(tail) and hidden == int(left_out.replace(",", ""))):
            yield f"{whole!r} is shown as {shown!r}"
