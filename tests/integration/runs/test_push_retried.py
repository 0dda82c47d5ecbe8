"""A remote that does not answer is pushed to again, within fresh grants, until it is back, patience ends or the run is
to end; what it refuses is not tried again."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drone.runs.blobs import Grant
from drone.runs.delivery import PUSH_MARGIN_SECONDS, Pushing, deliver, pushed
from drone.runs.lease import RunLease
from drone.runs.stop_requests import Wish
from drone.sandbox import choose
from drone.workspace import PushResult, Workspace
from shared import names
from shared.blobs import digest
from shared.clock import SystemClock
from shared.errors import Conflict, Unreachable
from shared.events import Delivered
from shared.outcome import Verification
from tests.support.clocks import HandClock
from tests.support.git_servers import GitHttpServer, serving
from tests.support.repositories import MakeWorkspaces, calc_project, git, prepared, push_commit, work_order
from tests.support.sandboxes import shell

ORDER = work_order("https://git.example/calc.git")
BRANCH, LATE = names.branch(ORDER.order_id), names.late_branch(ORDER.order_id, ORDER.attempt)
STORED = Delivered(branch=BRANCH, head_commit="1" * 40)
PUSHED, REFUSED = PushResult(True), PushResult(False, "The remote rejected it.")
AWAY = PushResult(False, "git.example cannot be reached from this drone.", passing=True)
CANCEL, STALE = Wish("cancel", "it is to end"), Wish("stale", "another run holds the order")


@dataclass
class Delivery:
    """A push to a remote that gives these answers one after another, and the last again and again, and the control
    plane's part in it: it keeps blobs, refuses what it is told to refuse, and may wish that the run ends."""

    answers: list[PushResult] = field(default_factory=lambda: [PUSHED])
    refuse: list[Exception] = field(default_factory=list)
    wish: Wish | None = None
    """Comes with the first push."""
    ends_during_push: bool = False
    sleeps_during_push: float = 0.0
    """Seconds for which the machine sleeps during the first push."""
    clock: HandClock = field(default_factory=HandClock)
    grants: int = 0
    refs: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def push(
        self, ref: str, expect: str | None, deadline_s: float, check: Callable[[], None] = lambda: None
    ) -> PushResult:
        assert (expect, deadline_s > 0) == (None, True)
        self.refs.append(ref)
        asleep, self.sleeps_during_push = self.sleeps_during_push, 0.0
        self.clock.suspend(asleep)
        check()
        while self.ends_during_push:
            self.clock.sleep(1)
            check()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def ask(self, verification: Verification) -> Grant:
        del verification
        self.grants += 1
        if self.refuse:
            raise self.refuse.pop(0)
        return Grant(60, None)

    def put(self, content: bytes) -> str:
        return digest(content)

    def get(self, run_id: str, sha256: str) -> bytes:
        raise AssertionError

    def pushing(self, patience: float = 60.0) -> Pushing:
        wish: Callable[[], Wish | None] = lambda: self.wish if self.refs else None  # noqa: E731
        return Pushing(self, RunLease(SystemClock()), self.clock, wish, self.said.append, patience)

    def deliver(self, patience: float = 60.0) -> Delivered:
        return pushed(STORED, ORDER, self, self.pushing(patience))


def test_a_remote_or_a_control_plane_that_comes_back_gets_the_branch_within_a_fresh_grant() -> None:
    unreachable = Unreachable("the control plane does not answer", code="E-NO-SERVER")
    for delivery in (Delivery([AWAY, PUSHED]), Delivery(refuse=[unreachable])):
        delivered = delivery.deliver()
        assert (delivered.pushed, delivered.push_error, delivery.grants) == (True, None, 2)
        assert (len(delivery.said), delivery.clock.passed > 1) == (1, True)


def test_a_remote_that_stays_away_is_given_up_with_what_to_do_next_and_one_that_refuses_at_once() -> None:
    for patience, tries in ((60.0, "Tried {} times in"), (1.0, "Tried once in")):
        delivery = Delivery([AWAY])
        delivered = delivery.deliver(patience)
        assert not delivered.pushed
        kept = f"fleet patch {ORDER.order_id} | git apply"
        for said in ("cannot be reached from this drone", tries.format(delivery.grants), kept):
            assert said in str(delivered.push_error)
    refused = Delivery([REFUSED])
    assert (refused.deliver().push_error, refused.grants, refused.said) == (REFUSED.error, 1, [])


def test_a_wish_to_end_breaks_off_the_wait_and_soon_a_push_under_way() -> None:
    waits, pushes = Delivery([AWAY], wish=CANCEL), Delivery(wish=CANCEL, ends_during_push=True)
    assert "the run was ending: it is to end" in str(waits.deliver().push_error)
    assert "The push was interrupted" in str(pushes.deliver().push_error)
    assert (waits.grants, pushes.grants, 5 <= pushes.clock.passed < 10) == (1, 1, True)


def test_a_push_during_which_the_machine_sleeps_is_broken_off_at_the_end_of_its_grant() -> None:
    for asleep, grants in ((60 - PUSH_MARGIN_SECONDS - 1, 1), (60 - PUSH_MARGIN_SECONDS, 2)):
        delivery = Delivery(sleeps_during_push=asleep)
        assert (delivery.deliver().pushed, delivery.grants) == (True, grants)


def test_a_run_whose_order_another_holds_pushes_under_its_late_name() -> None:
    conflict = Conflict("another run holds it", code="E-PUSH-STALE")
    for delivery, refs in (
        (Delivery([AWAY, PUSHED], wish=STALE), [BRANCH, LATE]),
        (Delivery(refuse=[conflict]), [LATE]),
    ):
        delivered = delivery.deliver()
        assert (delivered.pushed, delivered.late_ref, delivery.refs) == (False, LATE, refs)


# --- with git ------------------------------------------------------------------------------------


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    return calc_project(tmp_path / "served" / "calc.git")


@pytest.fixture
def workspace_on(
    tmp_path: Path, drone_git: Mapping[str, str], workspaces_in: MakeWorkspaces
) -> Callable[..., Workspace]:
    """A function that prepares the workspace of an order on a URL, with a changed file."""

    def made(url: str) -> Workspace:
        workspaces = workspaces_in(tmp_path / "workspace", drone_git, choose("none", os.environ))
        workspace = prepared(workspaces, work_order(url, order_id=ORDER.order_id))
        shell(workspace.sandbox, workspace.path, "echo done > done.txt")
        return workspace

    return made


def test_a_remote_that_is_away_is_told_apart_from_one_that_refuses(
    remote: Path, workspace_on: Callable[..., Workspace]
) -> None:
    with serving(GitHttpServer(remote.parent, login="robot:pa55-w0rd")) as server:
        workspace = workspace_on(server.url("calc.git", "robot:pa55-w0rd"))
        delivered, _ = deliver(ORDER, workspace, Delivery(), None)
        server.status = 503
        found = [workspace.push(BRANCH, None, 30)]
        server.status, server.expected = 0, "Basic changed"
        found.append(workspace.push(BRANCH, None, 30))
    found.append(workspace.push(BRANCH, None, 30))
    assert [(each.pushed, each.passing) for each in found] == [(False, True), (False, False), (False, True)]
    assert "denied access to this drone" in str(found[1].error)
    assert "cannot be reached from this drone" in str(found[2].error)

    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'Connection refused by policy' >&2; exit 1\n")
    hook.chmod(0o755)
    with serving(GitHttpServer(remote.parent, "robot:pa55-w0rd", port=server.server_port)):
        declined = workspace.push(BRANCH, None, 30)
        assert (declined.passing, str(declined.error)[:19]) == (False, "The remote rejected")
        hook.unlink()
        # If only the answer was lost, the second push counts as pushed.
        assert [workspace.push(BRANCH, None, 30).pushed for _ in range(2)] == [True, True]
    assert git(remote, "rev-parse", BRANCH) == delivered.head_commit


def test_what_an_earlier_run_pushed_is_replaced_and_a_persons_is_not(
    remote: Path, workspace_on: Callable[..., Workspace]
) -> None:
    workspace, delivery = workspace_on(f"file://{remote}"), Delivery()
    for line in ("true", "git add . && git commit -qm 'My own' --allow-empty", "echo more > more.txt"):
        shell(workspace.sandbox, workspace.path, line)
        delivered, _ = deliver(ORDER, workspace, delivery, delivery.pushing())
        assert (delivered.pushed, delivered.push_error) == (True, None)
        assert git(remote, "rev-parse", BRANCH) == delivered.head_commit
    theirs = push_commit(remote, {"theirs.txt": "mine"}, branch=BRANCH)
    shell(workspace.sandbox, workspace.path, "echo still more > more.txt")
    delivered, _ = deliver(ORDER, workspace, delivery, delivery.pushing())
    assert "was changed on the remote meanwhile" in str(delivered.push_error)
    assert git(remote, "rev-parse", BRANCH) == theirs
