"""The context object: what a handler sees of the run, and what it may ask of it (O-057)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from drone.extensions.context import ContextUsage, ExtensionContext
from shared.errors import Conflict, Interrupted, Preempted
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
    seen = heard(ExtendedLoop([says("Done.")]), "settled", lambda c: (c.cwd, c.session_id, c.model))
    assert seen == [(Path("/workspace"), "s1", "scripted")]


def test_the_context_usage_is_that_of_the_last_answer() -> None:
    loop = ExtendedLoop([calls("one", usage=USAGE), says("Done.")])
    seen = heard(loop, "turn_start", lambda c: c.get_context_usage())
    assert seen == [ContextUsage(None, 131_072), ContextUsage(750, 131_072)]


def test_the_agent_is_busy_in_a_handler_and_idle_before_and_after() -> None:
    loop = ExtendedLoop([says("Done.")])
    context = loop.extensions.context
    assert (context.is_idle(), heard(loop, "settled", lambda c: c.is_idle()), context.is_idle()) == (
        True,
        [False],
        True,
    )


def test_abort_ends_the_run_before_the_next_call() -> None:
    loop = ExtendedLoop([calls("one", "two")])
    loop.extensions.hooks.on("tool_execution_end", lambda _, context: context.abort("seen enough."))
    outcome = loop.run()
    assert (outcome.exit_status, outcome.reason) == (ExitStatus.HALTED, "An extension ended the run: seen enough.")
    assert len(loop.toolbox.ran) == 1


def test_shutdown_lets_the_calls_of_the_message_be_done() -> None:
    loop = ExtendedLoop([calls("one", "two"), says("never")])
    loop.extensions.hooks.on("tool_execution_start", lambda _, context: context.shutdown())
    assert loop.run().exit_status is ExitStatus.HALTED
    assert (len(loop.toolbox.ran), len(loop.model.asked)) == (2, 1)


def test_compact_asks_for_a_compaction_before_the_next_question() -> None:
    loop = ExtendedLoop([])
    loop.extensions.context.compact("keep the names")
    assert loop.extensions.controls.compaction_asked() == "keep the names"
    assert loop.extensions.controls.compaction_asked() is None


def test_a_compaction_now_is_for_the_idle_alone() -> None:
    loop = ExtendedLoop([says("Done.")])
    assert loop.extensions.context.run_compaction() is False
    loop.extensions.hooks.on("turn_start", lambda _, context: context.run_compaction(), source="the extension x.py")
    loop.run()
    assert loop.reports == ["The extension x.py failed on turn_start: Conflict: the agent is busy."]


def test_a_handler_that_waits_for_the_agent_is_told_that_it_never_ends() -> None:
    loop = ExtendedLoop([says("Done.")])
    loop.extensions.hooks.on("turn_start", lambda _, context: context.wait_for_idle(), source="the extension x.py")
    assert loop.run().exit_status is ExitStatus.STOPPED
    assert "a handler cannot wait for the agent, which waits for the handler" in loop.reports[0]


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


def test_sessions_are_the_control_planes() -> None:
    cases: list[tuple[str, str]] = [("new_session", "new"), ("fork", "fork"), ("switch_session", "switch")]
    for method, command in cases:
        with pytest.raises(Conflict) as refused:
            getattr(ExtendedLoop([]).extensions.context, method)()
        assert refused.value.next == f"fleet session {command}", method


def test_a_cancel_does_not_wait_for_a_handler(tmp_path: Path) -> None:
    write(tmp_path, "extensions/slow.py", WAITS + "\ndef extend(api): api.on('turn_start', wait)")
    loop = ExtendedLoop([says("never")], home=tmp_path, bounds={"call_seconds": 3600})
    canceled = Preempted(outcome=Outcome(ExitStatus.CANCELED, "not wanted any more"))
    loop.extensions.hooks.on("agent_start", lambda *_: setattr(loop.controls, "signal", canceled))
    assert loop.run().exit_status is ExitStatus.CANCELED
    assert (loop.model.asked, loop.reports) == ([], [])


def test_a_persons_interruption_waits_for_the_handler_and_is_not_lost() -> None:
    loop = ExtendedLoop([says("Done.")])
    said = Interrupted(Message(role="user", content="Stop that."))
    loop.extensions.hooks.on("agent_start", lambda *_: setattr(loop.controls, "signal", said))
    loop.extensions.hooks.on("agent_start", lambda *_: loop.extensions.controls.stop_waiting())
    loop.run()
    assert loop.told[0] == ("user", "Stop that.")
