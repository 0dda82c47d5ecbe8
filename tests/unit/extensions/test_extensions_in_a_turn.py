"""The context object: what a handler sees of the run, and what it may ask of it (O-057)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from drone.extensions.context import ContextUsage, ExtensionContext, RegisteredModel
from drone.runs.controls import RunControls
from shared.control import Say
from shared.errors import Conflict, Interrupted, Preempted
from shared.events import CommentStep, UserStep
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome
from tests.support.extensions import WAITS, ExtendedLoop, write
from tests.support.scripted import calls, says

USAGE = {"input_tokens": 700, "output_tokens": 50}


def heard(loop: ExtendedLoop, event: str, ask: Any) -> list[Any]:
    """Run the loop, and return what `ask` made of the context at each of these events."""
    answers: list[Any] = []
    loop.extensions.hooks.on(event, lambda _, context: answers.append(ask(context)))
    loop.run()
    return answers


def test_a_handler_sees_where_and_with_what_the_run_works() -> None:
    loop = ExtendedLoop([says("Done.")])
    context = loop.extensions.context
    assert context.is_idle()
    seen = heard(loop, "settled", lambda c: (c.cwd, c.session_id, c.model, c.is_idle()))
    assert (seen, context.is_idle()) == ([(Path("/workspace"), "s1", "scripted", False)], True)
    loop = ExtendedLoop([calls("one", usage=USAGE), says("Done.")])
    seen = heard(loop, "turn_start", lambda c: c.get_context_usage())
    assert seen == [ContextUsage(None, 131_072), ContextUsage(750, 131_072)]


def test_abort_ends_the_run_before_the_next_call_and_shutdown_after_the_calls_of_the_message() -> None:
    loop = ExtendedLoop([calls("one", "two")])
    loop.extensions.hooks.on("tool_execution_end", lambda _, context: context.abort("seen enough."))
    outcome = loop.run()
    assert (outcome.exit_status, outcome.reason) == (ExitStatus.HALTED, "An extension ended the run: seen enough.")
    assert len(loop.toolbox.ran) == 1
    loop = ExtendedLoop([calls("one", "two"), says("never")])
    loop.extensions.hooks.on("tool_execution_start", lambda _, context: context.shutdown())
    assert loop.run().exit_status is ExitStatus.HALTED
    assert (len(loop.toolbox.ran), len(loop.model.asked)) == (2, 1)


def test_a_handler_can_ask_for_a_compaction_and_not_for_what_would_wait_for_itself_or_is_the_control_planes() -> None:
    loop = ExtendedLoop([says("Done.")])
    context, controls = loop.extensions.context, loop.extensions.controls
    context.compact("keep the names")
    assert (controls.compaction_asked(), controls.compaction_asked()) == ("keep the names", None)
    assert context.run_compaction() is False
    for event, ask in (("turn_start", "run_compaction"), ("turn_end", "wait_for_idle")):
        asks = lambda _, context, ask=ask: getattr(context, ask)()  # noqa: E731
        loop.extensions.hooks.on(event, asks, source="the extension x.py")
    assert loop.run().exit_status is ExitStatus.STOPPED
    assert loop.reports[0] == "The extension x.py failed on turn_start: Conflict: the agent is busy."
    assert "a handler cannot wait for the agent, which waits for the handler" in loop.reports[1]
    for method, command in (("new_session", "new"), ("fork", "fork"), ("switch_session", "switch")):
        with pytest.raises(Conflict) as refused:
            getattr(context, method)()
        assert refused.value.next == f"fleet session {command}", method


def test_a_thread_of_an_extension_waits_until_the_agent_is_idle() -> None:
    loop = ExtendedLoop([calls("one"), says("Done.")])
    context, waited = loop.extensions.context, []
    thread = threading.Thread(target=lambda: waited.append(context.wait_for_idle(60)))
    loop.extensions.hooks.on("agent_start", lambda *_: thread.start())
    loop.run()
    thread.join(60)
    assert waited == [True]
    loop.agent.phase = "turn"
    assert context.wait_for_idle(0) is False
    with pytest.raises(Conflict):
        ExtensionContext(lambda: None).is_idle()


def test_a_cancel_does_not_wait_for_a_handler_and_an_interruption_does_and_is_not_lost(tmp_path: Path) -> None:
    write(tmp_path, "extensions/slow.py", WAITS + "\ndef extend(api): api.on('turn_start', wait)")
    loop = ExtendedLoop([says("never")], home=tmp_path, bounds={"call_seconds": 3600})
    canceled = Preempted(outcome=Outcome(ExitStatus.CANCELED, "not wanted any more"))
    loop.extensions.hooks.on("agent_start", lambda *_: setattr(loop.controls, "signal", canceled))
    assert loop.run().exit_status is ExitStatus.CANCELED
    assert (loop.model.asked, loop.reports) == ([], [])
    loop = ExtendedLoop([says("Done.")])
    said = Interrupted(Message(role="user", content="Stop that."))
    loop.extensions.hooks.on("agent_start", lambda *_: setattr(loop.controls, "signal", said))
    loop.extensions.hooks.on("agent_start", lambda *_: loop.extensions.controls.stop_waiting())
    loop.run()
    assert loop.told[0] == ("user", "Stop that.")
    # Also when the model has stopped: who asks then whether the run is to end takes no message from the loop.
    loop = ExtendedLoop([says("Done."), says("Stopped.")])
    signals = [said]

    def asks(_: object, context: Any) -> None:
        loop.controls.signal = signals.pop() if signals else None
        assert not context.signal.aborted

    loop.extensions.hooks.on("turn_end", asks)
    loop.run()
    assert loop.told == [("assistant", "Done."), ("user", "Stop that."), ("assistant", "Stopped.")]
    assert loop.kinds.count("comment") == 0


def extended(tmp_path: Path, code: str, *script: dict[str, object], prompt: str = "Do it.") -> ExtendedLoop:
    """A loop with an extension, whose prompt and steering message are `prompt` and what the test sets."""
    write(tmp_path, "extensions/a.py", code)
    return ExtendedLoop(list(script) or [says("Done.")], home=tmp_path, prompt=prompt)


def texts(loop: ExtendedLoop) -> list[str]:
    """The texts of users, as they were recorded."""
    return [body.text for body in loop.recorder.bodies if isinstance(body, UserStep)]


COMMAND = """
def extend(api):
    api.command("upper", "Say it loudly.", lambda arguments, context: f"{arguments.upper()} in {context.session_id}")
    api.command("nothing", "Leave the text.", lambda arguments, context: None)
    api.command("broken", "Fails.", lambda arguments, context: 1 / 0)
"""


def test_a_command_gives_the_model_another_text_also_in_a_message_and_not_if_it_fails(tmp_path: Path) -> None:
    unchanged = ("/nothing at all", "/upperx be quick", "say /upper")
    texts_given = {"/upper be quick": "BE QUICK in s1", "/upper\nbe quick": "BE QUICK in s1", "/upper": " in s1"}
    for prompt, given in {**texts_given, **{text: text for text in unchanged}}.items():
        loop = extended(tmp_path, COMMAND, prompt=prompt)
        loop.run()
        assert texts(loop) == [given], prompt
    loop = extended(tmp_path, COMMAND, calls("one"), says("Done."), prompt="/broken now")
    loop.controls.to_steer = ["/upper hurry"]
    loop.run()
    assert texts(loop) == ["/broken now", "HURRY in s1"]
    assert "ZeroDivisionError" in loop.reports[0]


def test_a_handler_rewrites_a_message_or_keeps_it_from_the_model(tmp_path: Path) -> None:
    code = """
    from drone.extensions import Block

    def extend(api):
        def received(event, context):
            return Block("it has a number.") if "7" in event.text else f"{event.source}: {event.text}"

        api.on("message_receive", received)
    """
    loop = extended(tmp_path, code, calls("one"), says("Done."), says("Done."))
    loop.controls.to_steer, loop.controls.to_follow_up = ["one", "7"], ["two"]
    loop.run()
    assert texts(loop) == ["Do it.", "steer: one", "follow_up: two"]
    remarks = [body.text for body in loop.recorder.bodies if isinstance(body, CommentStep)]
    assert remarks == ["An extension withheld a message from the agent: it has a number."]


def test_a_message_that_is_withheld_keeps_none_of_those_behind_it_from_the_model(tmp_path: Path) -> None:
    code = """
    from drone.extensions import Block

    def extend(api):
        api.on("message_receive", lambda event, context: Block("it has a number.") if "7" in event.text else None)
    """
    loop = extended(tmp_path, code, says("Done."), says("Done."), says("Done."))
    queued = RunControls(loop.clock, valid_until=3600)
    loop.controls.steering, loop.controls.follow_ups = queued.steering, queued.follow_ups  # type: ignore[method-assign]
    for text, after in (("7", False), ("one", False), ("7 more", True), ("two", True)):
        queued.receive(Say(run_id="r", text=text, after=after, alone=True))
    loop.run()
    assert texts(loop) == ["Do it.", "one", "two"]
    assert not queued.pending()


def test_a_memory_is_asked_with_the_prompt_and_told_how_the_run_ended(tmp_path: Path) -> None:
    code = f"""
    from pathlib import Path

    class Memory:
        def recall(self, prompt):
            return f"You did something like {{prompt}} before."

        def remember(self, prompt, response):
            Path({str(tmp_path / "kept")!r}).write_text(f"{{prompt}} -> {{response}}")

    def extend(api):
        api.memory(Memory())
    """
    loop = extended(tmp_path, code)
    loop.run()
    assert texts(loop) == ["Do it.\n\n<memory>\nYou did something like Do it. before.\n</memory>"]
    assert (tmp_path / "kept").read_text() == "Do it. -> Done."


def test_the_context_shows_session_models_and_whether_the_run_is_to_end() -> None:
    loop = ExtendedLoop([says("Done.")])
    seen: list[object] = []

    def look(_: object, context: object) -> None:
        manager, signal = context.session_manager, context.signal  # type: ignore[attr-defined]
        seen.append((manager.id, [each.content for each in manager.entries()], signal.aborted))
        context.abort("enough.")  # type: ignore[attr-defined]
        seen.append((signal.aborted, signal.wait(0)))

    loop.extensions.hooks.on("turn_start", look)
    loop.run()
    assert seen == [("s1", ["Do it."], False), (True, True)]
    assert loop.extensions.context.model_registry == [RegisteredModel("scripted", "scripted", None)]
