"""What extensions do with texts of users: commands, memories, other words for them, and keeping them from the model."""

from __future__ import annotations

from pathlib import Path

from drone.extensions.context import RegisteredModel
from shared.events import CommentStep, UserStep
from tests.support.extensions import ExtendedLoop, write
from tests.support.scripted import calls, says


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


def test_a_command_gives_the_model_another_text(tmp_path: Path) -> None:
    cases: list[tuple[str, str]] = [
        ("/upper be quick", "BE QUICK in s1"),
        ("/upper", " in s1"),
        ("/nothing at all", "/nothing at all"),
        ("/upperx be quick", "/upperx be quick"),
        ("say /upper", "say /upper"),
    ]
    for prompt, given in cases:
        loop = extended(tmp_path, COMMAND, prompt=prompt)
        loop.run()
        assert texts(loop) == [given], prompt


def test_a_command_works_in_a_message_to_a_running_agent_as_well(tmp_path: Path) -> None:
    loop = extended(tmp_path, COMMAND, calls("one"), says("Done."))
    loop.controls.to_steer = ["/upper hurry"]
    loop.run()
    assert texts(loop) == ["Do it.", "HURRY in s1"]


def test_a_command_that_fails_is_reported_and_the_text_stays(tmp_path: Path) -> None:
    loop = extended(tmp_path, COMMAND, prompt="/broken now")
    loop.run()
    assert texts(loop) == ["/broken now"]
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
