"""A run takes a checkpoint after each step, and another goes on from it: in the same workspace, or from the bundle."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from drone.runs.checkpoints import MOST_PATCH
from drone.runs.context import CheckpointPart
from drone.runs.pipe import EndRun
from shared.events import (
    AssistantStep,
    CheckpointStep,
    CommentStep,
    Delivered,
    ErrorStep,
    ResumedStep,
    ToolResultStep,
    UserStep,
)
from shared.redaction import Redactor
from tests.support.local_runs import call
from tests.support.repositories import push_commit
from tests.support.runs import Bench, KeptCheckpoints, going_on, said, shell
from tests.support.scripted import ScriptedFactory, says
from tests.support.transcripts import problems

pytestmark = pytest.mark.usefixtures("warm_model")
Another = Callable[[str], Bench]
TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.checkpoint_store, bench.secrets = KeptCheckpoints(), Redactor([])
    return bench


def checkpoint(bench: Bench, number: int) -> int:
    """The seq of the run's checkpoint with this number."""
    return [event.seq for event in bench.events if isinstance(event.body, CheckpointStep)][number]


def test_each_step_has_its_checkpoint_with_the_changes_so_far(bench: Bench, scripted: ScriptedFactory) -> None:
    looks = call("file_read", mode="view", path="a")
    lines = ("cat a", "echo b > b; printf 'a\\0b' > c.bin", "rm a b c.bin")
    steps = [shell("true"), shell("echo a > a"), looks, *map(shell, lines)]
    bench.run(scripted([*steps, says("Done.")]).url)
    base, *found = bench.of(CheckpointStep)
    assert (base.commit, base.head, base.changed, base.bundle_sha256) == ("", "", False, None)
    assert (base.patch_sha256, base.branch_patch_sha256, base.patch_withheld) == (None, None, "")
    assert [each.changed for each in found] == [True, False, False, True, True]
    assert [each.spent.iterations for each in found] == [2, 3, 4, 5, 6]
    assert found[0].commit == found[1].commit == found[2].commit != found[3].commit
    assert isinstance(bench.checkpoint_store, KeptCheckpoints)
    # The last one is the base again.
    assert {each.bundle_sha256 for each in found} == {*bench.checkpoint_store.bundles, None}
    kept = bench.checkpoint_store.patches
    names = [re.findall(rb"(?m)^diff --git a/(\S+)", kept[each.patch_sha256 or ""]) for each in found]
    assert names == [[b"a"], [b"a"], [b"a"], [b"a", b"b", b"c.bin"], []]
    assert [each.branch_patch_sha256 for each in found] == [each.patch_sha256 for each in found]
    assert len(kept) == 3
    assert b"Binary files" in kept[found[3].patch_sha256 or ""]


WITHHELD = {
    "a known secret, whose file is left out": ("echo key=hunter2-secret > .env; echo a > a", ""),
    "a token": (f"echo {TOKEN} > .env", "secret"),
    "a token in the name of a file": (f"echo a > {TOKEN}", "secret"),
    "a token in a line that goes": (f"sed -i /{TOKEN}/d old", ""),
    "a token beside a line that changes": ("echo a >> old", ""),
    "too much": (f"yes {'a' * 99} | head -n {MOST_PATCH // 100 + 1} > a", "size"),
}


def test_a_patch_is_withheld_as_it_would_be_from_a_delivery(
    bench: Bench, scripted: ScriptedFactory, tmp_path: Path
) -> None:
    push_commit(tmp_path / "remote.git", {"old": f"one\n{TOKEN}\n"})
    undo = f"rm -f .env {TOKEN} a; git checkout -q old"
    steps = [shell(line) for case, _ in WITHHELD.values() for line in (case, undo)]
    bench.run(scripted([*steps, says("Done.")]).url)
    assert isinstance(bench.checkpoint_store, KeptCheckpoints)
    kept = bench.checkpoint_store.patches.values()
    found = dict(zip(WITHHELD, bench.of(CheckpointStep)[::2], strict=True))
    wrong = {
        name: body
        for name, body in found.items()
        if (body.patch_withheld, body.patch_sha256 is None) != (why := WITHHELD[name][1], bool(why))
    }
    assert wrong == {}
    assert not any(b"hunter2" in patch or b"+" + TOKEN.encode() in patch for patch in kept)


def test_a_file_with_a_known_secret_is_left_out_and_the_model_is_told(
    bench: Bench, scripted: ScriptedFactory, another: Another
) -> None:
    server = scripted([shell("echo key=hunter2-secret > .env; echo a > a"), shell("echo b > b"), says("Done.")])
    bench.run(server.url)
    assert bench.of(CheckpointStep)[0].left_out == (".env: it contains a known secret",)
    assert isinstance(bench.checkpoint_store, KeptCheckpoints)
    assert all(b"hunter2" not in bundle for bundle in bench.checkpoint_store.bundles.values())
    second = another("second")
    going_on(bench, second, checkpoint(bench, 0))
    second.run(server.url)
    (said,) = second.of(UserStep)
    assert (said.source, "\n" in said.text) == ("loop", False)
    assert "cut off and undone; its effects outside the workspace were not undone" in said.text
    assert ".env: it contains a known secret" in said.text


def test_it_is_taken_while_the_model_is_asked_and_recorded_before_its_answer(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    asked, said = threading.Event(), iter(range(3))

    class WaitingForTheModel(KeptCheckpoints):
        def add_checkpoint(self, content: bytes, part: CheckpointPart = "bundle") -> str:
            assert asked.wait(60), "the model is asked only when the checkpoint is complete"
            return super().add_checkpoint(content, part)

    def does(text: str) -> None:
        if text == "waiting for the model" and next(said) == 1:
            asked.set()

    bench.checkpoint_store, bench.on_doing = WaitingForTheModel(), does
    bench.run(scripted([shell("echo a > a"), shell("rm a"), says("Done.")]).url)
    order = [body.kind for body in bench.of(AssistantStep, CheckpointStep)]
    assert order == ["assistant", "checkpoint", "assistant", "checkpoint", "assistant"]
    # The next call runs only when the checkpoint before it is complete.
    assert [each.changed for each in bench.of(CheckpointStep)] == [True, True]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same drone", "another drone"])
def test_a_run_goes_on_where_another_was_as_if_nothing_had_been(
    bench: Bench, scripted: ScriptedFactory, another: Another, elsewhere: bool
) -> None:
    bench.change_project(setup=("echo set up >> setup.log",))
    commits = [f"echo {n} >> numbers; git add numbers; git commit -qm 'number {n}'" for n in range(3)]
    commits[0] += "; mkdir node_modules; touch node_modules/x"
    server = scripted([*map(shell, commits), shell("cat setup.log"), says("Done.")])
    bench.run(server.url)
    second, asked = another("second"), len(server.requests)
    if not elsewhere:
        second.workspaces = bench.workspaces
    going_on(bench, second, checkpoint(bench, 1))
    end = second.run(server.url)

    assert (end.status, end.response) == ("success", "Done.")
    assert len(server.requests) - asked == 3
    assert problems(server.requests[-1]["messages"]) == []
    first, again = bench.last(Delivered), second.last(Delivered)
    assert (again.base_commit, again.files_changed) == (first.base_commit, first.files_changed)
    assert bench.blobs[first.patch_sha256] == second.blobs[again.patch_sha256]
    resumed = second.last(ResumedStep)
    assert (resumed.run_id, resumed.cut_off, resumed.in_place) == (bench.order.run_id, True, not elsewhere)
    # Set-up is run again only where the workspace is new.
    assert second.last(ToolResultStep).output.count("set up") == 1
    (said,) = second.of(UserStep)
    cache = "node_modules/: a cache"
    assert any(second.workspaces.glob("sessions/*/work/node_modules/x")) != elsewhere
    assert resumed.left_out == ((cache,) if elsewhere else ())
    assert (f"now missing or outdated: {cache}" in said.text, f"left them: {cache}" in said.text) == (
        elsewhere,
        not elsewhere,
    )


def test_what_was_spent_before_counts_and_a_missing_checkpoint_is_the_fleets_fault(
    bench: Bench, scripted: ScriptedFactory, another: Another
) -> None:
    server = scripted([*[shell(f"echo {n} >> numbers") for n in range(4)], says("Done.")])
    bench.limit(max_iterations=3)
    assert bench.run(server.url).exit_status == "max_iterations"
    second, third = another("second"), another("third")
    going_on(bench, second, checkpoint(bench, 1))
    end = second.run(server.url)
    assert (end.exit_status, end.stats.tool_calls) == ("max_iterations", 1)
    going_on(bench, third, checkpoint(bench, 0), bundle=None, bundle_run=None)
    end = third.run(server.url)
    assert (end.status, end.exit_status, end.order_at_fault) == ("failed", "lost", False)
    assert (third.last(ErrorStep).code, third.of(Delivered)) == ("E-CHECKPOINT", [])


@pytest.mark.parametrize(
    ("ends", "status"),
    [("false", ("failed", "refused")), ("sleep 60", ("preempted", "canceled"))],
    ids=["set-up fails", "canceled"],
)
def test_a_run_that_ends_before_its_work_begins_delivers_nothing_over_the_work_of_the_run_before(
    bench: Bench, scripted: ScriptedFactory, another: Another, ends: str, status: tuple[str, str]
) -> None:
    server = scripted([shell("echo a > a"), says("Done.")])
    bench.run(server.url)
    for name, changes in (("resumed", {}), ("from the base", {"resumed": None})):
        second = another(name)
        going_on(bench, second, checkpoint(bench, 0))
        second.change(attempt=2, **changes)
        second.change_project(setup=(f"touch generated; {ends}",))
        second.on_doing = partial(cancel_asleep, second)
        end = second.run(server.url)
        assert ((end.status, end.exit_status), second.of(ResumedStep, Delivered)) == (status, []), name


def cancel_asleep(bench: Bench, doing: str) -> None:
    """Cancel a run whose command sleeps."""
    if "sleep" in doing:
        bench.controls.receive(EndRun(wish="cancel", reason="not needed"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file that even its owner may not change")
def test_a_checkpoint_that_fails_is_said_once_and_ends_no_run(bench: Bench, scripted: ScriptedFactory) -> None:
    def break_git(doing: str) -> None:
        """Put a directory in the place of the index file of checkpoints: git can neither read nor replace it."""
        if doing == "waiting for the model":
            (next(bench.workspaces.glob("sessions/*/git")) / "checkpoint.index").mkdir(exist_ok=True)

    bench.on_doing = break_git
    end = bench.run(scripted([shell("echo a > a"), shell("echo b > b"), says("Done.")]).url)
    assert (end.status, bench.of(CheckpointStep)) == ("success", [])
    assert [each.text.startswith("No checkpoint could be taken") for each in bench.of(CommentStep)] == [True]


def test_a_checkpoint_has_the_files_of_a_child_and_of_a_step_that_was_broken_off(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    words, looks = [said("Only that.", interrupt=True)], call("file_read", path="README")
    bench.on_doing = lambda text: bench.controls.receive(words.pop()) if text == "shell: sleep 60" else None
    broken_off = call("file_write", path="c", content="c")
    broken_off["tool_calls"] += shell("sleep 60")["tool_calls"]
    spawns = call("spawn", task="Write b. script:child")
    child = [shell("echo b > b"), says("Written.")]
    bench.change(prompt="Write. script:main")
    bench.run(scripted({"main": [shell("true"), spawns, broken_off, looks, says("Done.")], "child": child}).url)
    assert [each.changed for each in bench.of(CheckpointStep)] == [False, True, True]
    assert isinstance(bench.checkpoint_store, KeptCheckpoints)
    kept = bench.checkpoint_store.patches
    patches = [kept.get(each.patch_sha256 or "", b"") for each in bench.of(CheckpointStep)]
    assert [re.findall(rb"(?m)^diff --git a/(\S+)", patch) for patch in patches] == [[], [b"b"], [b"b", b"c"]]


@pytest.mark.parametrize(
    "after",
    [call("file_read", mode="view", path="a"), call("file_write", path="c", content="c\n")],
    ids=["a step that only reads", "a step that only writes files"],
)
def test_a_step_whose_checkpoint_failed_is_in_the_next_one(
    bench: Bench, scripted: ScriptedFactory, after: dict[str, object]
) -> None:
    class FullOnce(KeptCheckpoints):
        is_full = True

        def has_secret(self, content: bytes) -> bool:
            if content == b"b\n" and self.is_full:
                self.is_full = False
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().has_secret(content)

    bench.checkpoint_store = FullOnce()
    commits = shell("echo b > b; git add b; git commit -qm b")
    bench.run(scripted([shell("echo a > a"), commits, after, says("Done.")]).url)
    first, second = bench.of(CheckpointStep)
    assert [each.spent.iterations for each in (first, second)] == [1, 3]
    assert (second.changed, second.commit != first.commit, bool(second.head)) == (True, True, True)
