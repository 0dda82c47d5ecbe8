"""What extensions hear of a whole run, with verification, reminders and delivery: its end once, and as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drone.runs.pipe import EndRun
from tests.support.extensions import write
from tests.support.runs import Bench, shell, small_repository
from tests.support.scripted import ScriptedFactory, says

NOTES = """
    import json
    from pathlib import Path

    def extend(api):
        def note(name, outcome=None):
            ended = [] if outcome is None else [outcome.exit_status, outcome.reason]
            with Path(__file__).with_suffix(".json").open("a") as notes:
                print(json.dumps([name, *ended]), file=notes)

        api.on("*", lambda event, context: note(event.name, getattr(event, "outcome", None)))

        class Turns:
            def on_turn_start(self):
                note("on_turn_start")

            def on_turn_end(self):
                note("on_turn_end")

        api.guardrail(Turns())
"""
ENDING = ["on_turn_end", "agent_end", "save_point", "settled", "session_shutdown"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    write(tmp_path / "home", "extensions/notes.py", NOTES)
    return Bench(tmp_path, small_repository(tmp_path / "remote.git"))


def verified_by(bench: Bench, *commands: str) -> None:
    project = bench.order.project.model_copy(update={"verify": commands})
    bench.order = bench.order.model_copy(update={"project": project})


def heard(bench: Bench) -> list[list[str]]:
    lines = (bench.directory / "home" / "extensions" / "notes.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def ends(bench: Bench) -> list[str]:
    """How the run ended, by the one `agent_end`; asserts that it and what belongs to it came once, last, in order."""
    names = [name for name, *_ in heard(bench)]
    assert names[-5:] == ENDING
    assert [names.count(name) for name in ("on_turn_start", *ENDING)] == [1] * 6
    (end,) = [rest for name, *rest in heard(bench) if name == "agent_end"]
    return end


def test_a_failed_verification_that_the_model_mends_is_part_of_the_run(bench: Bench, scripted: ScriptedFactory) -> None:
    verified_by(bench, "test -f made")
    bench.run(scripted([says("done"), shell("touch made"), says("done now")]).url)
    assert ends(bench) == ["stopped", "The model finished its work. Verified by one command."]
    assert [name for name, *_ in heard(bench)].count("turn_end") == 3


def test_a_bug_is_told_and_then_the_end(bench: Bench) -> None:
    bench.run_with_model(KeyError("surprise"))
    assert ends(bench) == ["lost", "Unexpected error on the drone: KeyError: 'surprise'"]
    assert [name for name, *_ in heard(bench)].count("agent_error") == 1


@pytest.mark.parametrize("when", ["shell: sleep", "verifying"])
def test_a_cancel_ends_the_run_once_also_while_its_work_is_verified(
    bench: Bench, scripted: ScriptedFactory, when: str
) -> None:
    verified_by(bench, "sleep 60")
    cancel = EndRun(wish="cancel", reason="not needed")
    bench.on_doing = lambda text: bench.controls.receive(cancel) if text.startswith(when) else None
    bench.run(scripted([shell("sleep 60") if when.startswith("shell") else says("done")]).url)
    assert ends(bench) == ["canceled", "not needed"]
