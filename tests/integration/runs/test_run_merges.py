"""An order that brings work up to date: its model is asked only if something is left to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.events import Delivered, UserStep
from shared.outcome import ExitStatus, Verification
from shared.work_order import Base, MergedWork
from tests.support.repositories import calc_project, git, push_commit
from tests.support.runs import Bench, shell
from tests.support.scripted import ScriptedFactory, says

LOWER = "1" * 12


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    remote = calc_project(tmp_path / "remote.git")
    made = Bench(tmp_path, remote)
    git(remote, "branch", "fleet/own", "main")
    git(remote, "branch", "fleet/lower", "main")
    own = push_commit(remote, {"own.txt": "own\n"}, "fleet/own")
    lower = push_commit(remote, {"lower.txt": "lower\n"}, "fleet/lower")
    made.order = made.order.model_copy(
        update={
            "base": Base(commit=own, branch="fleet/own"),
            "merges": (MergedWork(order=LOWER, base=Base(commit=lower, branch="fleet/lower")),),
            "merge_only": True,
        }
    )
    return made


def verified_by(bench: Bench, command: str) -> None:
    project = bench.order.project.model_copy(update={"verify": (command,)})
    bench.order = bench.order.model_copy(update={"project": project})


def test_work_that_passes_is_delivered_without_a_question_to_the_model(bench: Bench, scripted: ScriptedFactory) -> None:
    verified_by(bench, "test -e own.txt && test -e lower.txt")
    server = scripted([says("Not asked.")])
    end = bench.run(server.url)
    assert (end.exit_status, end.verification) == (ExitStatus.STOPPED, Verification.VERIFIED)
    assert server.requests == []
    delivered = bench.last(Delivered)
    assert (delivered.base_commit, delivered.files_changed) == (bench.order.base.commit, 1)
    (said_to_it,) = [event.body.text for event in bench.events if isinstance(event.body, UserStep)]
    assert said_to_it.startswith(bench.order.prompt)


def test_a_check_that_fails_after_the_merge_goes_to_the_model(bench: Bench, scripted: ScriptedFactory) -> None:
    verified_by(bench, "grep -q both own.txt")
    server = scripted([shell("echo both > own.txt"), says("Mended.")])
    end = bench.run(server.url)
    assert (end.response, end.verification) == ("Mended.", Verification.VERIFIED)
    asked = server.requests[0]["messages"]
    assert bench.order.prompt in str(asked[1])
    assert "Your work was checked and did not pass" in str(asked[-1])
