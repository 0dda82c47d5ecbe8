"""Verified done: the project's own commands judge the work, outside the model's control."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shared.events import CommentStep, Delivered, RunEnded, UserStep, VerifyStep
from shared.work_order import Limits
from tests.support.runs import Bench, said, shell, small_repository
from tests.support.scripted import ScriptedFactory, says


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, small_repository(tmp_path / "remote.git"))


def verified_by(bench: Bench, *commands: str, **limits: Any) -> None:
    """Give the order's project these `verify` commands."""
    project = bench.order.project.model_copy(update={"verify": commands})
    given = Limits(max_run_seconds=120, base_delay=0.1, **limits)
    bench.order = bench.order.model_copy(update={"project": project, "limits": given})


def all_of(bench: Bench, kind: type[Any]) -> list[Any]:
    return [event.body for event in bench.events if isinstance(event.body, kind)]


def ends(end: RunEnded) -> tuple[str, str, str]:
    return end.status, end.exit_status, end.verification


def test_work_that_passes_is_completed_and_verified(bench: Bench, scripted: ScriptedFactory) -> None:
    verified_by(bench, "sleep 0.1; test -f made", "grep -q hello README")
    end = bench.run(scripted([shell("touch made"), says("done")]).url)
    assert ends(end) == ("success", "stopped", "verified")
    assert end.reason == "The model finished its work. Verified by 2 commands."
    assert all_of(bench, VerifyStep)[0].duration_ms >= 100
    assert [(step.attempt, step.command, step.passed) for step in all_of(bench, VerifyStep)] == [
        (1, "sleep 0.1; test -f made", True),
        (1, "grep -q hello README", True),
    ]


def test_a_run_that_fails_otherwise_says_how_far_its_verification_came(bench: Bench, scripted: ScriptedFactory) -> None:
    verified_by(bench)
    assert bench.run(scripted([says("done")]).url).verification == "nothing_to_verify"
    verified_by(bench, "false")
    assert ends(bench.run(scripted([{"status": 401}]).url)) == ("failed", "model_error", "not_reached")
    assert ends(bench.run(scripted([says("done"), {"status": 401}]).url)) == ("failed", "model_error", "failed")
    verified_by(bench, "false", max_iterations=1)
    end = bench.run(scripted([shell("touch made")]).url)
    assert ends(end) == ("failed", "verification_failed", "failed")


def test_failures_go_back_as_often_as_the_order_says_and_the_work_is_kept(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    for attempts in (0, 2):
        verified_by(bench, "echo looking; exit 3", verify_attempts=attempts)
        # The commands are the order's: nothing in the workspace names them.
        cheats = shell(f"mkdir -p .dronefleet; echo true > .dronefleet/verify; echo {attempts} > made")
        server = scripted([cheats, *[says("done")] * 4])
        end = bench.run(server.url)
        assert ends(end) == ("failed", "verification_failed", "failed")
        assert "`echo looking; exit 3` failed with exit code 3" in end.reason
        assert len(server.requests) == attempts + 2
        assert bench.last(Delivered).files_changed == 2
    told = all_of(bench, UserStep)[-1]
    assert told.source == "loop"
    assert "`echo looking; exit 3` failed with exit code 3" in told.text
    assert "\nlooking" in told.text


def test_a_command_that_takes_too_long_is_a_failure(bench: Bench, scripted: ScriptedFactory) -> None:
    verified_by(bench, "sleep 60", verify_attempts=0)
    bench.order = bench.order.model_copy(
        update={"limits": bench.order.limits.model_copy(update={"max_run_seconds": 2})}
    )
    end = bench.run(scripted([says("done")]).url)
    assert ends(end) == ("failed", "verification_failed", "failed")
    assert end.reason.endswith("`sleep 60` timed out.")


def test_a_word_that_comes_while_the_commands_run_is_heard_and_verified_again(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    verified_by(bench, "true")
    bench.while_verifying = lambda: bench.controls.receive(said("Also a test."))
    server = scripted([says("done"), says("with a test")])
    end = bench.run(server.url)
    assert (end.response, end.verification) == ("with a test", "verified")
    assert [step.attempt for step in all_of(bench, VerifyStep)] == [1, 1]


def test_a_word_that_comes_too_late_is_named(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.while_storing = lambda: bench.controls.receive(said("Wait!", interrupt=True))
    bench.run(scripted([shell("touch made"), says("done")]).url)
    assert CommentStep(text="Received too late for this run: Wait!") in [event.body for event in bench.events]
