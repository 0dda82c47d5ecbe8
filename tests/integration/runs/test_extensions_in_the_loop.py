"""Extensions around the real model layer: what the endpoint receives, and the examples that the document gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.in_memory import KeptEvents, QuietControls
from drone.extensions.merged import Extensions, Services, load
from drone.extensions.sources import Sources
from drone.model.litellm_model import LiteLLMModel
from drone.model.stream_reader import Waits
from shared.clock import SystemClock
from shared.events import ErrorStep
from shared.outcome import Outcome
from shared.transcripts import assert_valid
from shared.work_order import Limits, OrderProvider
from tests.support.documents import ROOT
from tests.support.extensions import ToolboxWith, write
from tests.support.scripted import ScriptedFactory, calls, says

LIMITS = Limits(base_delay=0)
DOCUMENT = (ROOT / "docs" / "extensions.md").read_text(encoding="utf-8")
EXTENSION, GUARDRAIL = re.findall(r"(?s)```python\n(.*?)```", DOCUMENT)


class Run:
    """The loop around an endpoint over HTTP, with the extensions of a home."""

    def __init__(self, url: str, home: Path) -> None:
        self.kept, clock = KeptEvents(), SystemClock()
        self.extensions: Extensions = load(
            Sources(home, entry_points=False), Services(self.kept, QuietControls(), LIMITS.max_retries)
        )
        recorder, controls = self.extensions.recorder, self.extensions.controls
        provider = OrderProvider(name="scripted", model="openai/scripted", api_base=url)
        model = LiteLLMModel(provider, "none", LIMITS, recorder, clock, controls, Waits())
        self.toolbox = ToolboxWith(self.extensions.tools)
        self.agent = Agent(
            model,
            self.toolbox,
            recorder,
            controls,
            LIMITS,
            clock,
            hooks=self.extensions.hooks,
            guardrails=self.extensions.guardrails,
        )

    def __call__(self) -> Outcome:
        outcome = self.agent.run("You are tested.", (), "Do it.")
        assert_valid(self.agent.transcript)
        return outcome

    @property
    def reports(self) -> list[str]:
        return [body.what for body in self.kept.bodies if isinstance(body, ErrorStep)]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "arguments": arguments}]}


pytestmark = pytest.mark.usefixtures("warm_model")


def test_the_extension_of_the_document_does_what_it_says(tmp_path: Path, scripted: ScriptedFactory) -> None:
    write(tmp_path, "extensions/example.py", EXTENSION)
    script = [call("clock", format="it is"), calls("x" * 3000), calls("cat secrets/key"), says("Done.")]
    server = scripted(script)
    run = Run(server.url, tmp_path)
    assert run().response == "Done."
    last = server.requests[-1]
    results = [message["content"] for message in last["messages"] if message["role"] == "tool"]
    assert results[0] == "it is"
    assert results[1] == "x" * 2000 + "\n(cut by an extension)"
    assert results[2] == "This call was blocked: the directory secrets/ is not for you; ask for what you need."
    assert last["messages"][-1]["content"] == "Open windows: editor, terminal."
    assert "clock" in [tool["function"]["name"] for tool in last["tools"]]
    assert run.reports == []


def test_the_guardrail_of_the_document_does_what_it_says(tmp_path: Path, scripted: ScriptedFactory) -> None:
    write(tmp_path, "guardrails/no_push.py", GUARDRAIL)
    run = Run(scripted([call("shell", command="git push"), call("echo", text="git push"), says("Done.")]).url, tmp_path)
    run()
    said = [message.content for message in run.agent.transcript if message.role == "tool"]
    assert run.extensions.guardrails.names == ["loop_detection", "no_push"]
    assert said[1] == "git push"


def test_ephemeral_messages_reach_the_endpoint_once_each_and_are_stored_nowhere(
    tmp_path: Path, scripted: ScriptedFactory
) -> None:
    write(
        tmp_path,
        "extensions/state.py",
        """
        from itertools import count

        def extend(api):
            numbers = count(1)
            api.on("ephemeral", lambda event, context: f"state {next(numbers)}")
        """,
    )
    server = scripted([calls("one"), says("Done.")])
    run = Run(server.url, tmp_path)
    run()
    states = [
        [text for message in request["messages"] if "state" in (text := str(message.get("content")))]
        for request in server.requests
    ]
    assert states == [["state 1"], ["state 2"]]
    assert "state" not in str([*run.agent.transcript, *run.kept.bodies])


def test_every_event_is_in_the_document() -> None:
    from drone.agent.hooks.events import EVENTS

    table = DOCUMENT.partition("## Events")[2].partition("## ")[0]
    rows = {name for row in re.findall(r"(?m)^\| (`.*?) \|", table) for name in re.findall(r"`(\w+)`", row)}
    assert rows == set(EVENTS)
