"""All workspaces of a drone below one directory, and the workspace of one order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from drone.installation.workspace_marker import claim_root
from drone.sandbox import Sandbox
from drone.sandbox.trees import remove
from drone.workspace.agent_instructions import DefaultBranch
from drone.workspace.checkpoint import Snapshot, WorkspaceCheckpoints
from drone.workspace.delivery import DELIVERED, Delivery, DeliveryRequest, make_delivery
from drone.workspace.failures import explained, reading
from drone.workspace.git import Git
from drone.workspace.merging import can_merge
from drone.workspace.mirror import Mirror
from drone.workspace.outgoing import Head, Outgoing, SecretFinder, places_of_secrets
from drone.workspace.project_files import ProjectFiles, read_project_files
from drone.workspace.push import PushResult, PushTarget, may_push, push
from drone.workspace.remote import Remote
from drone.workspace.restore import Workplace, go_back
from drone.workspace.secret_scan import HasSecret, SecretScan
from drone.workspace.session_directory import SessionDirectory
from drone.workspace.starting_point import (
    AcceptBranch,
    CommitSources,
    FetchBlob,
    StartingPoint,
    default_of,
    find_base,
    refuse_rewritten,
)
from drone.workspace.submodule_sources import SubmoduleSources, not_from_the_disk
from shared.work_order import PushWork, Resumed, WorkOrder


class Workspaces:
    """Gives each order the workspace of its session."""

    def __init__(
        self,
        root: Path,
        git_environment: Mapping[str, str],
        sandbox: Sandbox,
        allow_submodule: Callable[[str], None] = not_from_the_disk,
    ) -> None:
        """`root` is claimed. Raises Precondition if it is not empty and not ours.

        `git_environment` comes from the function of that name. `allow_submodule` accepts the URL of a submodule on
        the project's own host, or raises Refused.
        """
        self.root = root.absolute()
        claim_root(self.root)
        self._git = Git(dict(git_environment))
        self._sandbox = sandbox
        self._allow_submodule = allow_submodule

    def prepare(
        self,
        order: WorkOrder,
        fetch_blob: FetchBlob,
        check: Callable[[], None],
        accept: AcceptBranch = refuse_rewritten,
    ) -> Workspace:
        """Fetch new commits, and lay out the workspace at the order's base. The caller owns it until `close`.

        Submodules are fetched where the drone may; `session.submodules` has the others with the reasons.

        An order with `resumed` finds its workspace untouched if this drone has the checkpoint; then, or after set-up,
        the caller must call `go_back`.

        `check` is called while git works and may raise to end it. `accept` is called if the branch of the session's
        last work was rewritten: it returns if the order is to continue from that branch, else it raises.

        Raises OrderError if the URL, the branch or the access is wrong, FleetFault if the remote cannot be reached, the
        disk is full or another run works in the session.
        """
        git = self._git.checking(check)
        remote = Remote(order.project.git_url, order.project.slug)
        session = SessionDirectory(self.root / "sessions" / order.session.id, git, self._sandbox.user)
        session.take(check)
        try:
            with explained(remote):
                mirror = self._mirror(remote, git)
                start = find_base(order, mirror, mirror.refresh(), fetch_blob, accept)
                sources = SubmoduleSources(mirror, git, partial(self._mirror, git=git), self._allow_submodule)
                session.submodules = sources.fetched(start.commit)
                fresh = not _go_on(order, session, mirror)
                if fresh:
                    session.lay_out(order.order_id, mirror, start)
        except BaseException:
            session.release()
            raise
        sandbox = self._sandbox.for_session(scratch=session.scratch, read_only=session.lenders(mirror))
        checkpoints = WorkspaceCheckpoints(session, sandbox, start)
        return Workspace(order.order_id, session, mirror, start, sandbox, fresh, checkpoints)

    def stored_work(
        self, order: WorkOrder, wanted: PushWork, fetch_blob: FetchBlob, check: Callable[[], None]
    ) -> StoredWork:
        """The work of another order, as the control plane stored it, ready to be pushed. Raises like `prepare`."""
        git = self._git.checking(check)
        remote = Remote(order.project.git_url, order.project.slug)
        with explained(remote):
            mirror = self._mirror(remote, git)
            mirror.refresh()
            CommitSources(order.session.id, mirror, fetch_blob).ensure(wanted.work)
        return StoredWork(git.at(mirror.directory), remote, wanted)

    def look_up(self, order: WorkOrder, check: Callable[[], None]) -> None:
        """Ask the order's repository for its refs, as git does before it fetches. Raises like `prepare`."""
        remote = Remote(order.project.git_url, order.project.slug)
        with explained(remote):
            self._mirror(remote, self._git.checking(check)).read_advertised()

    def default_branch(self, order: WorkOrder, check: Callable[[], None]) -> DefaultBranch:
        """The current default branch of the order's repository, for a service that needs no workspace.

        Raises like `prepare` if the repository is at fault or cannot be reached.
        """
        git = self._git.checking(check)
        remote = Remote(order.project.git_url, order.project.slug)
        with explained(remote):
            mirror = self._mirror(remote, git)
            name, commit = default_of(mirror.refresh())
        return DefaultBranch(git.at(mirror.directory), name, commit)

    def has_conflicts(self, order: WorkOrder, branch: str, base: str, check: Callable[[], None]) -> bool:
        """Whether git cannot merge a branch of the order's repository into `base`. Raises like `prepare`."""
        git = self._git.checking(check)
        remote = Remote(order.project.git_url, order.project.slug)
        tips = []
        with explained(remote):
            mirror = self._mirror(remote, git)
            for ref, name in ((f"pull/into/{base}", base), (f"pull/from/{branch}", branch)):
                mirror.fetch_branch(name, ref)
                tips.append(mirror.own_ref(ref))
            return not can_merge(git.at(mirror.directory), *tips)

    def _mirror(self, remote: Remote, git: Git) -> Mirror:
        return Mirror(self.root / "mirrors" / f"{remote.key}.git", remote, git)


def _go_on(order: WorkOrder, session: SessionDirectory, mirror: Mirror) -> bool:
    """Use the workspace as an earlier run of the order left it, if this run continues from there and it is complete."""
    if order.resumed is None:
        return False
    commits = filter(None, (order.resumed.base, order.resumed.commit))
    if not session.can_go_on(order.order_id, mirror, commits):
        return False
    session.go_on()
    return True


@dataclass(frozen=True)
class StoredWork:
    """The work of an order, in the mirror."""

    git: Git
    remote: Remote
    wanted: PushWork

    def push(
        self, ref: str, expect: str | None, deadline_s: float, check: Callable[[], None] = lambda: None
    ) -> PushResult:
        """As `Workspace.push`."""
        target = PushTarget(ref, expect, self.wanted.order, deadline_s)
        return push(self.git.checking(check), self.remote, self.wanted.work.commit or "", target)


@dataclass(frozen=True)
class Workspace:
    """The workspace of one run, held by a lock until `close` or the end of the process."""

    order_id: str
    session: SessionDirectory
    mirror: Mirror
    start: StartingPoint
    sandbox: Sandbox
    """The drone's sandbox with this session's home and /tmp; commands of the run go here."""
    fresh: bool
    """Laid out at the base: the project's set-up commands must be run. Else it is as an earlier run left it."""
    checkpoints: WorkspaceCheckpoints

    @property
    def path(self) -> Path:
        """The directory that the agent works in."""
        return self.session.work

    @property
    def base_commit(self) -> str | None:
        """None in an empty repository."""
        return self.start.commit

    @property
    def default_branch(self) -> str | None:
        return self.start.default_branch

    @property
    def published(self) -> DefaultBranch:
        """The default branch in the mirror, independent of the agent's changes in the workspace."""
        return DefaultBranch(
            self.session.git.at(self.mirror.directory), self.start.default_branch, self.start.default_commit
        )

    def project_files(self) -> ProjectFiles:
        """Instructions and settings of the default branch; a copy of the latter is outside the workspace.

        Raises FleetFault `E-GIT-DAMAGED`.
        """
        commit = self.start.default_commit
        if commit is None:
            return ProjectFiles()
        with reading(self.session.git_dir):
            return read_project_files(self.session.history, commit, self.session.directory / "settings")

    def checkpoint(self, run_id: str, *, has_secret: HasSecret, agent_commits: bool = True) -> Snapshot:
        """Keep the workspace as it is now, under a ref of the run. No file in it is altered.

        Files in which `has_secret` finds something, and files over 20 MB, are left out by name. With `agent_commits`
        False, the agent cannot have committed since the previous checkpoint, and git is not run in the sandbox. Raises
        like `deliver`, which is no reason to end a run.
        """
        with explained(self.mirror.remote):
            return self.checkpoints.take(run_id, has_secret, agent_commits)

    def change(self, has_secret: HasSecret) -> bytes:
        """The change so far, as a patch against the base for readers: without the content of binary files.

        Files are left out as in a checkpoint. Raises like `checkpoint`.
        """
        with explained(self.mirror.remote):
            return self.checkpoints.change(has_secret)

    def go_back(self, resumed: Resumed, fetch_blob: FetchBlob) -> None:
        """Restore files and commits to a checkpoint; ignored files stay.

        Raises FleetFault: E-CHECKPOINT if the checkpoint is unavailable, E-DISK-FULL.
        """
        with explained(self.mirror.remote):
            place = Workplace(self.session, self.mirror, self.start)
            self.checkpoints.go_on_from(go_back(place, resumed, fetch_blob))

    def deliver(self, branch: str, message: str, author: str) -> Delivery:
        """Commit the changes and return the result; nothing in the workspace's `.git` is executed or trusted.

        `author` is `Name <email>`. A repeated call gives the same content. Raises FleetFault if the disk is full.
        """
        with explained(self.mirror.remote):
            start = self.start
            wanted = DeliveryRequest(branch, message, author, self.order_id, start.published, start.merged_into)
            return make_delivery(self.session, self.sandbox, self.base_commit, wanted, self.checkpoints)

    def places_of_secrets(self, made: Delivery, secrets: SecretFinder) -> list[str]:
        """Where secrets are in what `deliver` returned and a push would publish, without the secrets themselves."""
        git = self.session.git.at(self.session.git_dir).uninterrupted()
        scan = SecretScan(git, self.session.history, lambda _: False)
        with explained(self.mirror.remote):
            heads = [Head(made.head_commit, self.start.published)] if made.head_commit else []
            heads += [Head(each.tree, each.commit, f"{each.shown}/") for each in made.submodules]
            return places_of_secrets(Outgoing(git, scan, heads, made.patch), secrets)

    def push(
        self, ref: str, expect: str | None, deadline_s: float, check: Callable[[], None] = lambda: None
    ) -> PushResult:
        """Push the last delivery to the branch `ref`, which must be at `expect` (None: not exist), within `deadline_s`
        seconds.

        A commit that an earlier run of the same order left there is replaced, and a branch that a user deleted is
        created again. `check` is called while git works; an exception from it ends git and propagates.
        """
        git = self.session.git.at(self.session.git_dir).checking(check)
        return push(git, self.mirror.remote, DELIVERED, PushTarget(ref, expect, self.order_id, deadline_s))

    def may_push(self, check: Callable[[], None]) -> bool | None:
        """Whether the remote lets this drone push a branch; nothing is changed there. None: not known."""
        git = self.session.git.at(self.session.git_dir).checking(check)
        return None if self.base_commit is None else may_push(git, self.mirror.remote, self.base_commit)

    def rest(self) -> None:
        """End the processes that were kept for the next request: they are not the agent's."""
        self.session.history.close()

    def close(self) -> None:
        """Release the session for its next run."""
        self.session.release()

    def discard(self) -> None:
        """Delete the session's directory: it has no next run. What a command's leftovers still hold open may stay."""
        self.rest()
        with suppress(OSError):
            remove(self.session.directory)
        self.close()
