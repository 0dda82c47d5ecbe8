"""A remote that does not answer is pushed to again, within fresh grants, until it is back, patience ends or the run is
to end; what it refuses is not tried again."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drone.runs.blobs import Grant
from drone.runs.delivery import Pushing, deliver
from drone.runs.lease import RunLease
from drone.runs.stop_requests import Wish
from drone.sandbox import choose
from drone.workspace import Workspace, Workspaces, copy_owner_config, git_environment
from shared import names
from shared.blobs import digest
from shared.clock import SystemClock
from shared.errors import Conflict, Unreachable
from shared.events import Delivered
from shared.outcome import Verification
from shared.work_order import WorkOrder
from tests.support.git_servers import GitHttpServer, serving
from tests.support.repositories import calc_project, git, push_commit, work_order
from tests.support.sandboxes import shell


@dataclass
class Fleet:
    """The control plane's part in a push: keeps blobs, gives grants, says that the run is to end."""

    grants: int = 0
    said: list[str] = field(default_factory=list)
    refuse: list[Exception] = field(default_factory=list)
    """What the next asks are answered with."""
    wish: Wish | None = None
    on_say: Callable[[str], object] = lambda _: None

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
        self.on_say(text)

    def pushing(self, patience: float = 60.0) -> Pushing:
        clock = SystemClock()
        return Pushing(self, RunLease(clock), clock, wish=lambda: self.wish, say=self.say, patience=patience)


@dataclass
class Work:
    """A changed workspace of an order on some remote, and the fleet that it is delivered to."""

    order: WorkOrder
    workspace: Workspace
    fleet: Fleet = field(default_factory=Fleet)

    def deliver(self, patience: float = 60.0) -> Delivered:
        return deliver(self.order, self.workspace, self.fleet, self.fleet.pushing(patience))[0]

    @property
    def branch(self) -> str:
        return names.branch(self.order.order_id)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    return calc_project(tmp_path / "served" / "calc.git")


@pytest.fixture
def work_on(owner_home: Path, tmp_path: Path) -> Iterator[Callable[[str], Work]]:
    """A function that prepares an order on a URL, and changes a file."""
    config = tmp_path / "drone-gitconfig"
    copy_owner_config(config, os.environ)
    with ExitStack() as stack:

        def made(url: str) -> Work:
            workspaces = Workspaces(
                tmp_path / "workspace", git_environment(config, os.environ, allow_file=True), choose("none", os.environ)
            )
            order = work_order(url)
            workspace = workspaces.prepare(order, lambda run, sha: b"", lambda: None)
            stack.callback(workspace.close)
            shell(workspace.sandbox, workspace.path, "echo done > done.txt")
            return Work(order, workspace)

        yield made


class Server:
    """A git server over http that goes and comes back under its address."""

    def __init__(self, root: Path) -> None:
        self._first = GitHttpServer(root)
        self._root, self._port = root, self._first.server_port
        self._running = ExitStack()
        self._running.enter_context(serving(self._first))
        self.url = self._first.url("calc.git")

    def stop(self) -> None:
        self._running.close()

    def start(self) -> None:
        self._running.enter_context(serving(GitHttpServer(self._root, port=self._port)))


@pytest.fixture
def server(remote: Path) -> Iterator[Server]:
    made = Server(remote.parent)
    yield made
    made.stop()


def test_a_remote_that_comes_back_gets_the_branch(server: Server, remote: Path, work_on: Callable[[str], Work]) -> None:
    work = work_on(server.url)
    server.stop()
    work.fleet.on_say = lambda _: server.start() if len(work.fleet.said) == 1 else None

    delivered = work.deliver()

    assert (delivered.pushed, delivered.push_error) == (True, None)
    assert git(remote, "rev-parse", work.branch) == delivered.head_commit
    assert work.fleet.grants == 2
    # If only the answer was lost, it counts as pushed.
    assert work.workspace.push(work.branch, None, 30).pushed


def test_a_control_plane_that_comes_back_grants_the_push_unless_another_run_holds_the_order(
    remote: Path, work_on: Callable[[str], Work]
) -> None:
    work = work_on(f"file://{remote}")
    away = Unreachable("the control plane does not answer", code="E-NO-SERVER")
    work.fleet.refuse = [away, Conflict("another run holds it", code="E-PUSH-STALE")]

    stale = work.deliver()

    assert (stale.pushed, stale.late_ref is not None, work.fleet.grants) == (False, True, 2)
    work.fleet.refuse, work.fleet.grants = [away], 0
    assert (work.deliver().pushed, work.fleet.grants) == (True, 2)


def test_a_remote_that_stays_away_is_given_up_with_what_to_do_next(
    server: Server, work_on: Callable[[str], Work]
) -> None:
    work = work_on(server.url)
    server.stop()

    delivered = work.deliver(patience=5.0)

    assert not delivered.pushed
    assert "cannot be reached from this drone" in str(delivered.push_error)
    assert work.fleet.grants >= 2
    assert f"Tried {work.fleet.grants} times in" in str(delivered.push_error)
    assert f"fleet patch {work.order.order_id} | git apply" in str(delivered.push_error)
    assert delivered.patch_sha256
    assert delivered.bundle_sha256


def test_a_server_in_trouble_is_asked_again(remote: Path, work_on: Callable[[str], Work]) -> None:
    with serving(GitHttpServer(remote.parent)) as server:
        work = work_on(server.url("calc.git"))
        server.status = 503

        delivered = work.deliver(patience=1.0)

    assert not delivered.pushed
    assert "Tried once" in str(delivered.push_error)


def test_what_a_hook_of_the_remote_declines_is_not_pushed_again(remote: Path, work_on: Callable[[str], Work]) -> None:
    script = remote / "hooks" / "pre-receive"
    script.parent.mkdir(exist_ok=True)
    script.write_text("#!/bin/sh\necho 'Connection refused by policy' >&2; exit 1\n")
    script.chmod(0o755)
    work = work_on(f"file://{remote}")

    delivered = work.deliver()

    assert "The remote rejected" in str(delivered.push_error)
    assert (work.fleet.grants, work.fleet.said) == (1, [])


def test_a_login_that_is_refused_is_not_tried_again(remote: Path, work_on: Callable[[str], Work]) -> None:
    with serving(GitHttpServer(remote.parent, login="robot:pa55-w0rd")) as private:
        work = work_on(private.url("calc.git", "robot:pa55-w0rd"))
        private.expected = "Basic changed"

        delivered = work.deliver()

    assert "denied access to this drone" in str(delivered.push_error)
    assert work.fleet.grants == 1


def test_a_wish_to_end_breaks_the_wait_off(server: Server, work_on: Callable[[str], Work]) -> None:
    work = work_on(server.url)
    server.stop()
    work.fleet.on_say = lambda _: setattr(work.fleet, "wish", Wish("cancel", "it is to end"))

    delivered = work.deliver(patience=600)

    assert not delivered.pushed
    assert "the run was ending: it is to end" in str(delivered.push_error)
    assert work.fleet.grants == 1


def test_a_run_that_became_stale_while_it_waited_pushes_under_its_late_name(
    server: Server, remote: Path, work_on: Callable[[str], Work]
) -> None:
    work = work_on(server.url)
    server.stop()

    def taken_over(_: str) -> None:
        server.start()
        work.fleet.wish = Wish("stale", "another run holds the order")

    work.fleet.on_say = taken_over

    delivered = work.deliver()

    assert delivered.late_ref == names.late_branch(work.order.order_id, work.order.attempt)
    assert git(remote, "rev-parse", str(delivered.late_ref)) == delivered.head_commit
    assert work.branch not in git(remote, "branch", "--list", "fleet/*")


def test_a_push_under_way_is_broken_off_some_seconds_after_a_wish_to_end(
    work_on: Callable[[str], Work], remote: Path
) -> None:
    script = remote / "hooks" / "pre-receive"
    script.parent.mkdir(exist_ok=True)
    script.write_text("#!/bin/sh\nsleep 300\n")
    script.chmod(0o755)
    work = work_on(f"file://{remote}")
    threading.Timer(1.0, setattr, (work.fleet, "wish", Wish("cancel", "it is to end"))).start()

    delivered = work.deliver()

    assert not delivered.pushed
    assert "The push was interrupted" in str(delivered.push_error)


def test_what_a_run_that_died_had_pushed_is_replaced_by_the_next_run_of_the_order(
    remote: Path, work_on: Callable[[str], Work]
) -> None:
    work = work_on(f"file://{remote}")
    for line in ("true", "git add . && git commit -qm 'My own' --allow-empty", "echo more > more.txt"):
        shell(work.workspace.sandbox, work.workspace.path, line)
        delivered = work.deliver()
        assert (delivered.pushed, delivered.push_error) == (True, None)
        assert git(remote, "rev-parse", work.branch) == delivered.head_commit


def test_what_a_person_put_on_top_of_the_branch_is_left_as_it_is(remote: Path, work_on: Callable[[str], Work]) -> None:
    work = work_on(f"file://{remote}")
    work.deliver()
    theirs = push_commit(remote, {"theirs.txt": "mine"}, branch=work.branch)
    shell(work.workspace.sandbox, work.workspace.path, "echo more > more.txt")

    second = work.deliver()

    assert "was changed on the remote meanwhile" in str(second.push_error)
    assert git(remote, "rev-parse", work.branch) == theirs
