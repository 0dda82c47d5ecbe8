"""A run ends once, as it was: verified by the project's commands, broken off, refused, or by a bug."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from drone.runs.blobs import Grant
from drone.runs.delivery import Pushing
from drone.runs.pipe import EndRun
from shared.budgets import Money
from shared.clock import SystemClock
from shared.control import Decide
from shared.errors import Forbidden, Unreachable
from shared.events import ApprovalStep, CommentStep, Delivered, ErrorStep, Prepared, RunEnded, UserStep, VerifyStep
from shared.names import new_id
from shared.outcome import Verification
from shared.plans import PlanProgress
from shared.work_order import Base, PushWork
from tests.support.extensions import write
from tests.support.repositories import git
from tests.support.runs import Bench, said, shell
from tests.support.sandboxes import ending_from_outside
from tests.support.scripted import ScriptedFactory, says
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("warm_model")
CANCEL = EndRun(wish="cancel", reason="not needed")
ENDING = ["agent_end", "save_point", "settled", "session_shutdown"]
NOTES = """
    import json
    from pathlib import Path

    def extend(api):
        def note(event, context):
            outcome = getattr(event, "outcome", None)
            ended = [] if outcome is None else [outcome.exit_status, outcome.reason]
            with Path(__file__).with_suffix(".json").open("a") as notes:
                print(json.dumps([event.name, *ended]), file=notes)

        api.on("*", note)
"""


@pytest.fixture
def heard(bench: Bench) -> Bench:
    """A run whose extension notes all that it hears."""
    write(bench.directory / "home", "extensions/notes.py", NOTES)
    return bench


def names_of(heard: Bench) -> list[Any]:
    lines = (heard.directory / "home" / "extensions" / "notes.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def told_end(heard: Bench) -> list[str]:
    """How the run ended, by the one `agent_end`; asserts that it and what belongs to it came once, last, in order."""
    names = [name for name, *_ in names_of(heard)]
    assert (names[-4:], [names.count(name) for name in ENDING]) == (ENDING, [1] * 4)
    (end,) = [rest for name, *rest in names_of(heard) if name == "agent_end"]
    return end


def ends(end: RunEnded) -> tuple[str, str, str]:
    return end.status, end.exit_status, end.verification


# --- verification --------------------------------------------------------------------------------


def test_a_failed_verification_that_the_model_mends_is_part_of_the_run(heard: Bench, scripted: ScriptedFactory) -> None:
    heard.change_project(verify=("grep -q hello README", "sleep 0.1; test -f made"))
    end = heard.run(scripted([says("done"), shell("touch made"), says("done now")]).url)
    reason = "The model finished its work. Verified by 2 commands."
    assert (ends(end), end.reason) == (("success", "stopped", "verified"), reason)
    assert told_end(heard) == ["stopped", reason]
    assert [name for name, *_ in names_of(heard)].count("turn_end") == 3
    checks = heard.of(VerifyStep)
    assert [(step.attempt, step.command.split()[-1], step.passed) for step in checks] == [
        *((1, "README", True), (1, "made", False), (2, "README", True), (2, "made", True)),
    ]
    assert checks[-1].duration_ms >= 100
    kinds = [event.body.kind for event in heard.events]
    assert (kinds[0], kinds[-1], kinds.count("run_ended")) == ("run_started", "run_ended", 1)


def test_a_run_that_fails_says_how_far_its_verification_came(bench: Bench, scripted: ScriptedFactory) -> None:
    assert bench.run(scripted([says("done")]).url).verification == "nothing_to_verify"
    # Nothing changed is a delivery without a branch.
    assert (bench.last(Delivered).branch, bench.last(Delivered).patch_sha256) == (None, None)
    bench.change_project(verify=("false",))
    assert ends(bench.run(scripted([{"status": 401}]).url)) == ("failed", "model_error", "not_reached")
    assert ends(bench.run(scripted([says("done"), {"status": 401}]).url)) == ("failed", "model_error", "failed")
    bench.limit(max_iterations=1)
    assert ends(bench.run(scripted([shell("touch made")]).url)) == ("failed", "verification_failed", "failed")
    bench.change_project(verify=("sleep 60",))
    bench.limit(verify_attempts=0, max_run_seconds=2)
    end = bench.run(scripted([says("done")]).url)
    assert ends(end) == ("failed", "verification_failed", "failed")
    assert end.reason.endswith("`sleep 60` timed out.")


def test_failures_go_back_as_often_as_the_order_says_and_work_is_kept(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.change_project(verify=("echo looking; exit 3",))
    for attempts in (0, 2):
        bench.limit(verify_attempts=attempts)
        # The commands are the order's: nothing in the workspace names them.
        cheats = shell(f"mkdir -p .dronefleet; echo true > .dronefleet/verify; echo {attempts} > made")
        server = scripted([cheats, *[says("done")] * 4])
        end = bench.run(server.url)
        assert ends(end) == ("failed", "verification_failed", "failed")
        assert "`echo looking; exit 3` failed with exit code 3" in end.reason
        assert (len(server.requests), bench.last(Delivered).files_changed) == (attempts + 2, 2)
    told = bench.last(UserStep)
    assert told.source == "loop"
    assert "`echo looking; exit 3` failed with exit code 3" in told.text
    assert "\nlooking" in told.text


def test_a_message_during_the_commands_is_heard_and_one_that_is_too_late_is_named(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    bench.change_project(verify=("true",))
    words = [said("Also a test.")]
    bench.on_doing = lambda text: (
        bench.controls.receive(words.pop()) if text.startswith("verifying") and words else None
    )
    bench.while_storing = lambda: bench.controls.receive(said("Wait!", interrupt=True))
    end = bench.run(scripted([says("done"), shell("touch made"), says("with a test")]).url)
    assert (end.response, end.verification) == ("with a test", "verified")
    assert [step.attempt for step in bench.of(VerifyStep)] == [1, 1]
    assert CommentStep(text="Received too late for this run: Wait!") in bench.of(CommentStep)


ENDED_FROM_OUTSIDE = [({"over": "too much memory"}, True), ({"lost": "no sandbox"}, False)]


@pytest.mark.parametrize(("how", "at_fault"), ENDED_FROM_OUTSIDE)
def test_a_command_that_was_ended_says_why_and_a_lost_sandbox_is_not_the_fault_of_the_order(
    bench: Bench, scripted: ScriptedFactory, how: dict[str, str], at_fault: bool
) -> None:
    (why,) = how.values()
    bench.sandbox = ending_from_outside(**how)
    bench.change_project(verify=("false",))
    bench.limit(verify_attempts=0)
    end = bench.run(scripted([says("done")]).url)
    assert (ends(end), why in end.reason) == (("failed", "verification_failed", "failed"), True)
    bench.change_project(setup=("echo printed; false",))
    bench.change(session=bench.order.session.model_copy(update={"id": "new000000000"}))
    end = bench.run(scripted([says("done")]).url)
    assert (end.status, end.order_at_fault, bench.last(ErrorStep).code) == ("failed", at_fault, "E-SETUP")
    assert (why in end.reason, "printed" in end.reason) == (True, True)


# --- other ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["shell: sleep", "verifying"])
def test_a_cancel_ends_the_run_once_also_while_its_work_is_verified(
    heard: Bench, scripted: ScriptedFactory, when: str
) -> None:
    heard.change_project(verify=("sleep 60",))
    heard.on_doing = lambda text: heard.controls.receive(CANCEL) if text.startswith(when) else None
    end = heard.run(scripted([shell("sleep 60") if when.startswith("shell") else says("done")]).url)
    assert (end.status, told_end(heard)) == ("preempted", ["canceled", "not needed"])


def test_a_bug_is_told_and_then_the_end(heard: Bench) -> None:
    class Broken(ScriptedModel):
        def answer(self, *_: Any) -> Any:
            raise KeyError("surprise")

    end = heard.run_with_model(Broken([], SystemClock()))
    reason = "Unexpected error on the drone: KeyError: 'surprise'"
    assert (end.status, end.order_at_fault, end.reason) == ("failed", True, reason)
    assert told_end(heard) == ["lost", reason]
    assert [name for name, *_ in names_of(heard)].count("agent_error") == 1
    assert "Traceback (most recent call last)" in heard.last(ErrorStep).detail


def test_a_refusal_a_store_that_is_away_and_a_cancel_are_no_fault_of_the_order(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    server = scripted([shell("echo a > a"), says("Done.")])
    bench.refuse_url = Forbidden("this repository is not allowed here", code="E-POLICY")
    end = bench.run(server.url)
    assert (end.status, end.exit_status, end.order_at_fault) == ("failed", "refused", False)
    assert (bench.of(Prepared), server.requests) == ([], []), "nothing is fetched"
    bench.refuse_url, bench.refuse_blobs = None, Unreachable("the control plane does not answer", code="E")
    end = bench.run(server.url)
    assert (end.status, end.order_at_fault, end.reason) == ("failed", False, "the control plane does not answer")
    assert end.response == "Done."
    bench.controls.receive(CANCEL)
    end = bench.run(server.url)
    assert (end.status, end.exit_status, end.reason) == ("preempted", "canceled", "not needed")
    assert (end.receipt is not None, len(server.requests)) == (True, 2)


class NoGrants:
    """A control plane that does not answer; implements `drone.runs.blobs.Pushes`."""

    def ask(self, verification: Verification) -> Grant:
        raise Unreachable("the control plane does not answer", code="E")


def test_a_push_of_stored_work_that_a_stop_of_the_drone_breaks_off_goes_back_to_the_queue(bench: Bench) -> None:
    head = git(bench.directory / "remote.git", "rev-parse", "HEAD")
    bench.change(purpose="push", push=PushWork(order=new_id(), branch="work", work=Base(commit=head)))
    bench.pushing = Pushing(NoGrants(), bench.controls.lease, SystemClock(), patience=0)
    end = bench.run("")
    assert (end.order_at_fault, bench.last(ErrorStep).code) == (True, "E-PUSH-STORED")
    stop: Callable[[str], None] = lambda _: bench.controls.receive(EndRun(wish="stop", reason="the drone stops"))  # noqa: E731
    bench.pushing = replace(bench.pushing, wish=lambda: bench.controls.wish, say=stop, patience=60)
    end = bench.run("")
    assert (end.status, end.give_back, end.order_at_fault) == ("preempted", True, False)


def test_a_run_that_was_denied_more_steps_ends_also_without_a_plan(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.change(plan=PlanProgress(), money=Money(on_limit="ask"))
    bench.limit(max_iterations=1, approval_timeout=1)
    bench.controls.receive(Decide(run_id=bench.order.run_id, call_id="steps-1", approved=False))
    end = bench.run(scripted([shell("ls")]).url)
    assert (end.status, end.exit_status) == ("success", "max_iterations")
    assert [step.call_id for step in bench.of(ApprovalStep)] == ["steps-1"]


def test_a_run_whose_order_another_holds_stops_and_keeps_its_work(bench: Bench, scripted: ScriptedFactory) -> None:
    def taken_over(doing: str) -> None:
        if doing == "waiting for the model" and len(bench.events) > 5:
            bench.controls.receive(EndRun(wish="stale", reason="another run holds the order"))

    bench.on_doing = taken_over
    end = bench.run(scripted([shell("echo a > a"), shell("echo b > b"), says("Done.")]).url)
    assert (end.status, end.exit_status, end.give_back) == ("preempted", "lost", False)
    assert (bench.last(Delivered).files_changed, bench.last(Delivered).pushed) == (1, False)
