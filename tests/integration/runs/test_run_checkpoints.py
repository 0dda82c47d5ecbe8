"""A run takes a checkpoint after each step, and another goes on from it: in the same workspace, or from the bundle."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from shared.events import (
    AssistantStep,
    CheckpointStep,
    CommentStep,
    Delivered,
    ErrorStep,
    Event,
    ResumedStep,
    RunEnded,
    Spent,
    UserStep,
)
from shared.transcripts import problems
from shared.work_order import Limits
from tests.support.runs import Bench, KeptCheckpoints, bundles, going_on, shell, small_repository
from tests.support.scripted import ScriptedFactory, says


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return small_repository(tmp_path / "remote.git")


@pytest.fixture
def bench(tmp_path: Path, repository: Path) -> Bench:
    return made(tmp_path / "first", repository)


def made(directory: Path, repository: Path) -> Bench:
    bench = Bench(directory, repository)
    directory.mkdir(parents=True, exist_ok=True)
    bench.checkpoint_store = KeptCheckpoints()
    return bench


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def bodies(bench: Bench, kind: type[Any]) -> list[Any]:
    return [event.body for event in bench.events if isinstance(event.body, kind)]


def checkpoints(bench: Bench) -> list[Event]:
    return [event for event in bench.events if isinstance(event.body, CheckpointStep)]


def test_each_complete_step_has_its_checkpoint_and_one_that_changed_nothing_says_so(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    looks = calls("file_read", mode="view", path="a")
    bench.run(scripted([shell("true"), shell("echo a > a"), looks, shell("cat a"), shell("echo b > b"), says("")]).url)
    base, *found = bodies(bench, CheckpointStep)
    assert (base.commit, base.head, base.changed, base.bundle_sha256) == ("", "", False, None)
    assert [each.changed for each in found] == [True, False, False, True]
    assert [each.spent.iterations for each in found] == [2, 3, 4, 5]
    assert found[0].commit == found[1].commit == found[2].commit != found[3].commit
    assert {each.bundle_sha256 for each in found} == set(bundles(bench))


def test_a_file_with_a_known_secret_is_left_out_and_the_model_that_goes_on_is_told_so(
    bench: Bench, scripted: ScriptedFactory, tmp_path: Path, repository: Path
) -> None:
    server = scripted([shell("echo key=hunter2-secret > .env; echo a > a"), shell("echo b > b"), says("Done.")])
    bench.run(server.url)
    first = checkpoints(bench)[0]
    assert bodies(bench, CheckpointStep)[0].left_out == (".env: it contains a known secret",)
    assert all(b"hunter2" not in bundle for bundle in bundles(bench).values())
    second = made(tmp_path / "second", repository)
    going_on(bench, second, first.seq)
    second.run(server.url)
    (said,) = bodies(second, UserStep)
    assert said.source == "loop"
    assert "\n" not in said.text
    assert "cut off and undone; its effects outside the workspace were not undone" in said.text
    assert ".env: it contains a known secret" in said.text


def test_it_is_taken_while_the_model_is_asked_again_and_recorded_before_its_answer(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    asked, said = threading.Event(), iter(range(3))

    class WaitingForTheModel(KeptCheckpoints):
        def add_checkpoint(self, bundle: bytes) -> str:
            assert asked.wait(60), "the model is asked only when the checkpoint is complete"
            return super().add_checkpoint(bundle)

    def does(text: str) -> None:
        if text == "waiting for the model" and next(said) == 1:
            asked.set()

    bench.checkpoint_store, bench.on_doing = WaitingForTheModel(), does
    bench.run(scripted([shell("echo a > a"), shell("rm a"), says("Done.")]).url)
    order = [event.body.kind for event in bench.events if isinstance(event.body, AssistantStep | CheckpointStep)]
    assert order == ["assistant", "checkpoint", "assistant", "checkpoint", "assistant"]
    # The next call runs only when the checkpoint before it is complete.
    assert [each.changed for each in bodies(bench, CheckpointStep)] == [True, True]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same drone", "another drone"])
def test_a_run_goes_on_where_another_was_and_the_work_is_as_if_nothing_had_been(
    bench: Bench, scripted: ScriptedFactory, tmp_path: Path, repository: Path, elsewhere: bool
) -> None:
    steps = [shell(f"echo {n} >> numbers; git add -A; git commit -qm 'number {n}'") for n in range(1, 5)]
    server = scripted([*steps, says("Done.")])
    bench.run(server.url)
    second = made(tmp_path / "second", repository)
    if not elsewhere:
        second.workspaces = bench.workspaces
    asked = len(server.requests)
    going_on(bench, second, checkpoints(bench)[1].seq)
    end = second.run(server.url)

    assert (end.status, end.response) == ("success", "Done.")
    assert len(server.requests) - asked == 3
    assert problems(server.requests[-1]["messages"]) == []
    first, again = bench.last(Delivered), second.last(Delivered)
    assert (again.base_commit, again.files_changed) == (first.base_commit, 1)
    assert bench.blobs[first.patch_sha256] == second.blobs[again.patch_sha256]
    resumed = second.last(ResumedStep)
    assert (resumed.run_id, resumed.cut_off, resumed.in_place) == (bench.order.run_id, True, not elsewhere)


def test_set_up_is_run_again_only_where_the_workspace_is_new(
    bench: Bench, scripted: ScriptedFactory, tmp_path: Path, repository: Path
) -> None:
    project = bench.order.project.model_copy(update={"setup": ("echo set up >> setup.log",)})
    bench.order = bench.order.model_copy(update={"project": project})
    server = scripted([shell("echo a > a"), shell("cat setup.log"), says("Done.")])
    bench.run(server.url)
    for name, workspaces in (("here", bench.workspaces), ("there", tmp_path / "another")):
        again = made(tmp_path / name, repository)
        again.workspaces = workspaces
        going_on(bench, again, checkpoints(bench)[0].seq)
        again.run(server.url)
        results = [event.body.output for event in again.events if event.body.kind == "tool_result"]
        assert [line for line in results[0].splitlines() if line == "set up"] == ["set up"]


def test_what_was_spent_before_counts_against_the_limits(
    bench: Bench, scripted: ScriptedFactory, tmp_path: Path, repository: Path
) -> None:
    server = scripted([*[shell(f"echo {n} >> numbers") for n in range(6)], says("Done.")])
    bench.order = bench.order.model_copy(update={"limits": Limits(max_iterations=4)})
    assert bench.run(server.url).exit_status == "max_iterations"
    second, third = made(tmp_path / "second", repository), made(tmp_path / "third", repository)
    going_on(bench, second, checkpoints(bench)[1].seq)
    end = second.run(server.url)
    assert (end.exit_status, end.stats.tool_calls) == ("max_iterations", 2)
    going_on(bench, third, checkpoints(bench)[1].seq, spent=Spent())
    assert third.run(server.url).stats.tool_calls == 4


def test_a_checkpoint_that_cannot_be_had_is_the_fleets_fault_and_named_by_its_code(
    bench: Bench, scripted: ScriptedFactory, tmp_path: Path, repository: Path
) -> None:
    server = scripted([shell("echo a > a"), says("Done.")])
    bench.run(server.url)
    second = made(tmp_path / "second", repository)
    going_on(bench, second, checkpoints(bench)[0].seq, bundle=None, bundle_run=None)
    end = second.run(server.url)
    assert (end.status, end.exit_status, end.order_at_fault) == ("failed", "lost", False)
    assert second.last(ErrorStep).code == "E-CHECKPOINT"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file that even its owner may not change")
def test_a_checkpoint_that_fails_is_said_once_and_ends_no_run(bench: Bench, scripted: ScriptedFactory) -> None:
    def break_git(doing: str) -> None:
        if doing == "waiting for the model" and not blocked:
            git_dir = next(bench.workspaces.glob("sessions/*/git"))
            # A directory in the place of the index file of checkpoints: git can neither read nor replace it.
            for name in ("checkpoint.index",):
                blocked.append(git_dir / name)
                (git_dir / name).mkdir(exist_ok=True)

    blocked: list[Path] = []
    bench.on_doing = break_git
    end = bench.run(scripted([shell("echo a > a"), shell("echo b > b"), says("Done.")]).url)
    assert end.status == "success"
    assert bodies(bench, CheckpointStep) == []
    assert [each.text.startswith("No checkpoint could be taken") for each in bodies(bench, CommentStep)] == [True]
    assert bench.last(RunEnded).status == "success"
