"""Extensions in the loop: the examples of the document, and messages that are for one question only."""

from __future__ import annotations

import re
from pathlib import Path

from drone.agent.hooks.events import EVENTS
from tests.support.documents import ROOT
from tests.support.extensions import ExtendedLoop, write
from tests.support.local_runs import call
from tests.support.scripted import calls, says

DOCUMENT = (ROOT / "docs" / "extensions.md").read_text(encoding="utf-8")
EXTENSION, GUARDRAIL = re.findall(r"(?s)```python\n(.*?)```", DOCUMENT)


def results(loop: ExtendedLoop) -> list[str]:
    return [message.content for message in loop.agent.transcript if message.role == "tool"]


def test_the_extension_and_the_guardrail_of_the_document_do_what_it_says(tmp_path: Path) -> None:
    write(tmp_path, "extensions/example.py", EXTENSION)
    script = [call("clock", format="it is"), calls("x" * 3000), calls("cat secrets/key"), says("Done.")]
    loop = ExtendedLoop(script, home=tmp_path)
    assert loop.run().response == "Done."
    assert results(loop) == [
        "it is",
        "x" * 2000 + "\n(cut by an extension)",
        "This call was blocked: the directory secrets/ is not for you; ask for what you need.",
    ]
    assert loop.model.asked[-1][-1].content == "Open windows: editor, terminal."
    assert "clock" in [spec.name for spec in loop.toolbox.specs()]
    assert loop.reports == []

    write(tmp_path / "other", "guardrails/no_push.py", GUARDRAIL)
    script = [call("shell", command="git push"), call("echo", text="git push"), says("Done.")]
    loop = ExtendedLoop(script, home=tmp_path / "other")
    loop.run()
    assert loop.extensions.guardrails.names == ["loop_detection", "no_push"]
    assert results(loop)[1] == "git push"


def test_ephemeral_messages_reach_the_endpoint_once_each_and_are_stored_nowhere(tmp_path: Path) -> None:
    code = """
        from itertools import count

        def extend(api):
            numbers = count(1)
            api.on("ephemeral", lambda event, context: f"state {next(numbers)}")
    """
    write(tmp_path, "extensions/state.py", code)
    loop = ExtendedLoop([calls("one"), says("Done.")], home=tmp_path)
    loop.run()
    states = [[each.content for each in question if "state" in each.content] for question in loop.model.asked]
    assert states == [["state 1"], ["state 2"]]
    assert "state" not in str([*loop.agent.transcript, *loop.recorder.bodies])


def test_every_event_is_in_the_document() -> None:
    table = DOCUMENT.partition("## Events")[2].partition("## ")[0]
    rows = {name for row in re.findall(r"(?m)^\| (`.*?) \|", table) for name in re.findall(r"`(\w+)`", row)}
    assert rows == set(EVENTS)
