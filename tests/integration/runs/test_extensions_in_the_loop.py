"""Extensions in the loop: the examples of the document, and messages that are for one question only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from drone.agent.hooks.events import EVENTS
from shared.clock import SystemClock
from shared.events import CheckpointStep, UserStep
from tests.support.documents import ROOT
from tests.support.extensions import ExtendedLoop, write
from tests.support.local_runs import call
from tests.support.runs import Bench, KeptCheckpoints, going_on, shell
from tests.support.scripted import calls, says
from tests.support.scripted_model import ScriptedModel

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


HEARS = """
    import json
    from pathlib import Path

    def note(*heard):
        with Path(__file__).with_suffix(".json").open("a") as notes:
            print(json.dumps(heard), file=notes)

    class Memory:
        def recall(self, prompt):
            note("recall", prompt)
            return "It is slow."

        def remember(self, prompt, response):
            note("remember", prompt)

    def extend(api):
        api.on("input", lambda event, context: note("input", event.text))
        api.command("deploy", "Deploy it.", lambda arguments, context: f"Deploy to <{arguments}>.")
        api.memory(Memory())
"""


def heard(bench: Bench, *script: dict[str, object]) -> list[tuple[str, str]]:
    """Run the order with an extension that notes what it hears of the prompt."""
    file = write(bench.directory / "home", "extensions/hears.py", HEARS)
    bench.run_with_model(ScriptedModel(list(script), SystemClock()))
    notes = file.with_suffix(".json").read_text(encoding="utf-8").splitlines()
    return [tuple(json.loads(note)) for note in notes]


def test_extensions_hear_the_prompt_alone_and_of_a_resumed_run_only_at_its_end(
    bench: Bench, another: Callable[[str], Bench]
) -> None:
    bench.checkpoint_store, second = KeptCheckpoints(), another("second")
    bench.change(prompt="/deploy staging")
    given = heard(bench, shell("touch made"), says("Done."))
    remembered = ("remember", "/deploy staging")
    assert given == [("input", "/deploy staging"), ("recall", "Deploy to <staging>."), remembered]
    text = bench.of(UserStep)[0].text
    assert text.startswith("Deploy to <staging>.\n\n<memory>\nIt is slow.\n</memory>\n\n<situation>\n")
    going_on(bench, second, next(event.seq for event in bench.events if isinstance(event.body, CheckpointStep)))
    assert heard(second, says("Done.")) == [remembered]


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
