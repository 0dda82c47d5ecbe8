"""What an order starts from: the tip of a branch, the head of its session's last work, or an empty repository."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from drone.workspace.git import GitFailed
from drone.workspace.mirror import Advertised, Mirror
from shared.errors import FleetFault, OrderError
from shared.work_order import WorkOrder

FetchBlob = Callable[[str, str], bytes]
"""Returns the content of a blob, by run and SHA-256."""
_USUAL = ("main", "master", "trunk", "develop")


@dataclass(frozen=True)
class StartingPoint:
    """The commit to start from, and its related names."""

    commit: str | None
    """None in an empty repository."""
    branch: str
    """The name of the workspace's own branch."""
    default_branch: str | None
    default_commit: str | None
    published: str | None = None
    """The remote's own tip, which every other drone can fetch."""


def find_base(order: WorkOrder, mirror: Mirror, advertised: Advertised, fetch_blob: FetchBlob) -> StartingPoint:
    """Decide where an order starts, and ensure that the mirror has the commit.

    Raises OrderError if the project's branch does not exist, FleetFault if the work of the session's last order is
    unavailable.
    """
    default, default_commit = default_of(advertised)
    branch = order.project.branch or default or _USUAL[0]
    if order.resumed:
        base, tip = order.resumed.base, advertised.branches.get(branch, advertised.head)
        _see_to_again(order, mirror, fetch_blob)
        return StartingPoint(base, branch, default, default_commit, _published(mirror, base, tip))
    tip = _tip(order, advertised, default)
    commit = order.base.commit or tip
    if order.base.commit:
        _see_to(order, mirror, fetch_blob)
    return StartingPoint(commit, branch, default, default_commit, tip)


def default_of(advertised: Advertised) -> tuple[str | None, str | None]:
    """Name and commit of the remote's default branch; both None in an empty repository."""
    default = _default_branch(advertised)
    return default, advertised.branches.get(default or "", advertised.head)


def _default_branch(advertised: Advertised) -> str | None:
    """Where the remote's HEAD points; if that does not exist, the only branch, or one with a usual name."""
    branches = [name for name in advertised.branches if not name.startswith(("fleet/", "fleet-late/"))]
    if advertised.head_ref and (named := advertised.head_ref.removeprefix("refs/heads/")) in branches:
        return named
    if advertised.head or len(branches) == 1:
        same = [name for name in branches if advertised.head in (None, advertised.branches[name])]
        return same[0] if same else None
    return next((name for name in _USUAL if name in branches), None)


def _tip(order: WorkOrder, advertised: Advertised, default: str | None) -> str | None:
    wanted = order.project.branch
    branches = advertised.branches
    if not advertised.refs and not advertised.head:
        return None
    if wanted:
        if wanted not in branches:
            raise _no_branch(order, wanted, branches)
        return branches[wanted]
    tip = branches.get(default) if default else advertised.head
    if tip is None:
        raise _no_branch(order, "", branches)
    return tip


def _no_branch(order: WorkOrder, wanted: str, branches: dict[str, str]) -> OrderError:
    close = get_close_matches(wanted, branches, n=5, cutoff=0.4) or sorted(branches)[:5]
    what = (
        f'the repository has no branch "{wanted}"'
        if wanted
        else "the repository's HEAD does not name an existing branch"
    )
    return OrderError(
        what,
        code="E-GIT-BRANCH",
        why=f"existing branches: {', '.join(close) or 'none'}",
        next=f"fleet project edit {order.project.slug} --branch {close[0] if close else 'BRANCH'}",
    )


def _see_to(order: WorkOrder, mirror: Mirror, fetch_blob: FetchBlob) -> None:
    """Ensure that the mirror has the base commit: it is there already, on the remote, or in a stored bundle."""
    commit = order.base.commit or ""
    for attempt in (_nothing, _from_branch, _from_bundle):
        try:
            attempt(order, mirror, fetch_blob)
        except GitFailed:
            continue  # the next source may still have it; the error below names the commit
        if mirror.has(commit):
            return
    raise FleetFault(
        f"the work that this order continues from ({commit[:12]}) is unavailable",
        code="E-GIT-BASE",
        why=f"neither the branch {order.base.branch or '(none)'} nor a stored bundle has the commit",
        next="start a new session, or submit the order again: fleet submit PROMPT --project SLUG",
    )


def _see_to_again(order: WorkOrder, mirror: Mirror, fetch_blob: FetchBlob) -> None:
    """Ensure that the mirror has the commit that the order began from, even if no remote branch has it any more."""
    base = order.resumed.base if order.resumed else None
    if base is None:
        return
    for attempt in (_nothing, _by_name, _from_branch, _from_bundle):
        try:
            attempt(order, mirror, fetch_blob)
        except (GitFailed, FleetFault):
            continue  # the next source may still have it; the error below names the commit
        if mirror.has(base):
            return
    raise FleetFault(
        f"the commit {base[:12]} that this order started from is no longer available",
        code="E-CHECKPOINT",
        why="no branch of the remote contains it, and the remote does not serve it by its id",
        next="fleet retry ORDER",
    )


def _published(mirror: Mirror, base: str | None, tip: str | None) -> str | None:
    """What a bundle may build on: the remote's tip, or a branch that has the base if the tip's history does not.

    If no branch has it any more, the bundle holds everything that the tip does not have.
    """
    if base is None or tip is None or mirror.is_ancestor(base, tip):
        return tip
    return mirror.branch_with(base) or tip


def _by_name(order: WorkOrder, mirror: Mirror, fetch_blob: FetchBlob) -> None:
    del fetch_blob
    if order.resumed and order.resumed.base:
        mirror.fetch_commit(order.resumed.base, f"base/{order.session.id}")


def _nothing(order: WorkOrder, mirror: Mirror, fetch_blob: FetchBlob) -> None:
    del order, mirror, fetch_blob


def _from_branch(order: WorkOrder, mirror: Mirror, fetch_blob: FetchBlob) -> None:
    del fetch_blob
    if order.base.branch:
        mirror.fetch_branch(order.base.branch, f"base/{order.session.id}")


def _from_bundle(order: WorkOrder, mirror: Mirror, fetch_blob: FetchBlob) -> None:
    if not (order.base.bundle and order.base.bundle_run):
        return
    content = fetch_blob(order.base.bundle_run, order.base.bundle)
    with tempfile.TemporaryDirectory(prefix="drone-") as directory:
        bundle = Path(directory, "base.bundle")
        bundle.write_bytes(content)
        mirror.fetch_bundle(bundle, f"bundle/{order.session.id}")
