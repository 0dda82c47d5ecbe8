"""A remote that does not answer is pushed to again, within fresh grants, until it is back, patience ends or the run is
to end; what it refuses is not tried again."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drone.runs.blobs import Grant
from drone.runs.delivery import Pushing, deliver
from drone.runs.lease import RunLease
from drone.runs.stop_requests import Wish
from drone.sandbox import choose
from drone.workspace import Workspace
from shared import names
from shared.blobs import digest
from shared.clock import SystemClock
from shared.errors import Conflict, Unreachable
from shared.events import Delivered
from shared.outcome import Verification
from shared.work_order import WorkOrder
from tests.support.git_servers import GitHttpServer, serving
from tests.support.repositories import MakeWorkspaces, calc_project, git, push_commit, work_order
from tests.support.sandboxes import shell

CANCEL = Wish("cancel", "it is to end")


@dataclass
class Work:
    """A changed workspace of an order on some remote, and the control plane's part in its push.

    The latter keeps blobs, gives grants, and says that the run is to end.
    """

    order: WorkOrder
    workspace: Workspace
    grants: int = 0
    said: list[str] = field(default_factory=list)
    refuse: list[Exception] = field(default_factory=list)
    """What the next asks are answered with."""
    wish: Wish | None = None
    on_say: Callable[[], object] = lambda: None

    def put(self, content: bytes) -> str:
        return digest(content)

    def get(self, run_id: str, sha256: str) -> bytes:
        raise AssertionError

    def ask(self, verification: Verification) -> Grant:
        del verification
        self.grants += 1
        if self.refuse:
            raise self.refuse.pop(0)
        return Grant(60, None)

    def say(self, text: str) -> None:
        self.said.append(text)
        self.on_say()

    def change(self, line: str) -> None:
        shell(self.workspace.sandbox, self.workspace.path, line)

    def deliver(self, patience: float = 60.0) -> Delivered:
        clock = SystemClock()
        pushing = Pushing(self, RunLease(clock), clock, wish=lambda: self.wish, say=self.say, patience=patience)
        return deliver(self.order, self.workspace, self, pushing)[0]

    @property
    def branch(self) -> str:
        return names.branch(self.order.order_id)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    return calc_project(tmp_path / "served" / "calc.git")


@pytest.fixture
def work_on(tmp_path: Path, drone_git: Mapping[str, str], workspaces_in: MakeWorkspaces) -> Callable[[str], Work]:
    """A function that prepares an order on a URL, and changes a file."""

    def made(url: str) -> Work:
        workspaces = workspaces_in(tmp_path / "workspace", drone_git, choose("none", os.environ))
        order = work_order(url)
        work = Work(order, workspaces.prepare(order, lambda *_: b"", lambda: None))
        work.change("echo done > done.txt")
        return work

    return made


class Away:
    """Work on a git server over http that is away since it was prepared, and can come back under its address."""

    def __init__(self, root: Path, work_on: Callable[[str], Work]) -> None:
        server = GitHttpServer(root)
        self._root, self._port, self._running = root, server.server_port, ExitStack()
        with serving(server):
            self.work = work_on(server.url("calc.git"))

    def come_back(self) -> None:
        self._running.enter_context(serving(GitHttpServer(self._root, port=self._port)))

    def __enter__(self) -> Away:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()


def test_a_remote_that_comes_back_gets_the_branch(remote: Path, work_on: Callable[[str], Work]) -> None:
    with Away(remote.parent, work_on) as away:
        work = away.work
        work.on_say = lambda: away.come_back() if len(work.said) == 1 else None

        delivered = work.deliver()

        assert (delivered.pushed, delivered.push_error, work.grants) == (True, None, 2)
        assert git(remote, "rev-parse", work.branch) == delivered.head_commit
        # If only the answer was lost, it counts as pushed.
        assert work.workspace.push(work.branch, None, 30).pushed


def test_a_control_plane_that_comes_back_grants_the_push_unless_another_run_holds_the_order(
    remote: Path, work_on: Callable[[str], Work]
) -> None:
    work = work_on(f"file://{remote}")
    away = Unreachable("the control plane does not answer", code="E-NO-SERVER")
    work.refuse = [away, Conflict("another run holds it", code="E-PUSH-STALE")]
    stale = work.deliver()
    assert (stale.pushed, stale.late_ref is not None, work.grants) == (False, True, 2)
    work.refuse, work.grants = [away], 0
    assert (work.deliver().pushed, work.grants) == (True, 2)


def test_a_remote_that_stays_away_or_in_trouble_is_given_up_with_what_to_do_next(
    remote: Path, work_on: Callable[[str], Work]
) -> None:
    with Away(remote.parent, work_on) as away:
        work = away.work
        delivered = work.deliver(patience=5.0)
    assert (delivered.pushed, work.grants >= 2) == (False, True)
    for said in (
        "cannot be reached from this drone",
        f"Tried {work.grants} times in",
        f"fleet patch {work.order.order_id} | git apply",
    ):
        assert said in str(delivered.push_error)
    assert delivered.patch_sha256
    assert delivered.bundle_sha256
    with serving(GitHttpServer(remote.parent)) as server:
        work = work_on(server.url("calc.git"))
        server.status = 503
        delivered = work.deliver(patience=1.0)
    assert (delivered.pushed, "Tried once" in str(delivered.push_error)) == (False, True)


def hooked(remote: Path, script: str) -> None:
    """Let the remote run a script before it takes a push."""
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)


def test_what_a_hook_declines_and_a_login_that_is_refused_are_not_tried_again(
    remote: Path, work_on: Callable[[str], Work]
) -> None:
    with serving(GitHttpServer(remote.parent, login="robot:pa55-w0rd")) as private:
        work = work_on(private.url("calc.git", "robot:pa55-w0rd"))
        private.expected = "Basic changed"
        assert "denied access to this drone" in str(work.deliver().push_error)
    assert work.grants == 1
    hooked(remote, "echo 'Connection refused by policy' >&2; exit 1")
    work = work_on(f"file://{remote}")
    assert "The remote rejected" in str(work.deliver().push_error)
    assert (work.grants, work.said) == (1, [])


def test_a_wish_to_end_breaks_off_the_wait_and_soon_a_push_under_way(
    remote: Path, work_on: Callable[[str], Work]
) -> None:
    with Away(remote.parent, work_on) as away:
        work = away.work
        work.on_say = lambda: setattr(work, "wish", CANCEL)
        delivered = work.deliver(patience=600)
    assert (delivered.pushed, work.grants) == (False, 1)
    assert "the run was ending: it is to end" in str(delivered.push_error)

    hooked(remote, "sleep 300")
    pushes = work_on(f"file://{remote}")
    threading.Timer(1.0, setattr, (pushes, "wish", CANCEL)).start()
    delivered = pushes.deliver()
    assert (delivered.pushed, "The push was interrupted" in str(delivered.push_error)) == (False, True)


def test_a_run_that_became_stale_while_it_waited_pushes_under_its_late_name(
    remote: Path, work_on: Callable[[str], Work]
) -> None:
    with Away(remote.parent, work_on) as away:
        work = away.work

        def taken_over() -> None:
            away.come_back()
            work.wish = Wish("stale", "another run holds the order")

        work.on_say = taken_over
        delivered = work.deliver()

    assert delivered.late_ref == names.late_branch(work.order.order_id, work.order.attempt)
    assert git(remote, "rev-parse", str(delivered.late_ref)) == delivered.head_commit
    assert work.branch not in git(remote, "branch", "--list", "fleet/*")


def test_what_an_earlier_run_had_pushed_is_replaced_and_what_a_person_put_on_top_is_left_as_it_is(
    remote: Path, work_on: Callable[[str], Work]
) -> None:
    work = work_on(f"file://{remote}")
    for line in ("true", "git add . && git commit -qm 'My own' --allow-empty", "echo more > more.txt"):
        work.change(line)
        delivered = work.deliver()
        assert (delivered.pushed, delivered.push_error) == (True, None)
        assert git(remote, "rev-parse", work.branch) == delivered.head_commit
    theirs = push_commit(remote, {"theirs.txt": "mine"}, branch=work.branch)
    work.change("echo still more > more.txt")
    assert "was changed on the remote meanwhile" in str(work.deliver().push_error)
    assert git(remote, "rev-parse", work.branch) == theirs
