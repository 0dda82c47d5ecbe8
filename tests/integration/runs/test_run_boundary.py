"""A run ends with one last event, whatever goes wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.runs.pipe import EndRun
from shared.errors import Forbidden, Unreachable
from shared.events import Delivered, ErrorStep
from tests.support.runs import Bench, shell
from tests.support.scripted import ScriptedFactory


@pytest.fixture
def bench(tmp_path: Path, repository: Path) -> Bench:
    return Bench(tmp_path, repository)


def test_every_run_begins_with_its_start_and_ends_with_its_end(bench: Bench, scripted: ScriptedFactory) -> None:
    end = bench.run(scripted([{"text": "Nothing to do."}]).url)
    kinds = [event.body.kind for event in bench.events]
    assert end.status == "success"
    assert (kinds[0], kinds[-1]) == ("run_started", "run_ended")
    assert kinds.count("run_ended") == 1
    # Nothing changed is a delivery without a branch.
    assert (bench.last(Delivered).branch, bench.last(Delivered).patch_sha256) == (None, None)


def test_a_bug_fails_the_run_with_a_sentence_and_the_whole_traceback(bench: Bench) -> None:
    end = bench.run_with_model(KeyError("surprise"))
    assert (end.status, end.order_at_fault) == ("failed", True)
    assert end.reason == "Unexpected error on the drone: KeyError: 'surprise'"
    assert "Traceback (most recent call last)" in bench.last(ErrorStep).detail


def test_what_the_owner_does_not_allow_is_refused_before_anything_is_fetched(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    bench.refuse_url = Forbidden("this repository is not allowed here", code="E-POLICY")
    end = bench.run(scripted([{"text": "Done."}]).url)
    assert (end.status, end.exit_status, end.order_at_fault) == ("failed", "refused", False)
    assert "prepared" not in [event.body.kind for event in bench.events]


def test_work_that_cannot_be_stored_fails_a_success_so_that_it_is_done_again(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    bench.refuse_blobs = Unreachable("the control plane does not answer", code="E")
    end = bench.run(scripted([shell("echo a > a"), {"text": "Done."}]).url)
    assert (end.status, end.order_at_fault) == ("failed", False)
    assert end.reason == "the control plane does not answer"


def test_a_run_that_was_canceled_before_it_began_ends_as_canceled(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.controls.receive(EndRun(wish="cancel", reason="not needed"))
    end = bench.run(scripted([{"text": "Done."}]).url)
    assert (end.status, end.exit_status, end.reason) == ("preempted", "canceled", "not needed")
    assert end.receipt is not None


def test_a_run_whose_order_another_holds_stops_keeps_its_work_and_says_how_it_ended(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    def taken_over(doing: str) -> None:
        if doing == "waiting for the model" and len(bench.events) > 5:
            bench.controls.receive(EndRun(wish="stale", reason="another run holds the order"))

    bench.on_doing = taken_over
    end = bench.run(scripted([shell("echo a > a"), shell("echo b > b"), {"text": "Done."}]).url)
    assert (end.status, end.exit_status, end.give_back) == ("preempted", "lost", False)
    delivered = bench.last(Delivered)
    assert (delivered.files_changed, delivered.pushed) == (1, False)
