"""Restores a workspace to a checkpoint: its files, and the agent's own commits."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from drone.installation.disk import FULL, fault_of
from drone.sandbox.trees import remove_entry, unlock, walk
from drone.workspace.bundles import read_bundle
from drone.workspace.checkpoint import Known
from drone.workspace.failures import explain
from drone.workspace.git import GitFailed
from drone.workspace.mirror import Mirror
from drone.workspace.session_directory import CHECKPOINT_REFS, LONGEST_PATH, SessionDirectory
from drone.workspace.staging import mend_work_tree, remove_special_files
from drone.workspace.starting_point import FetchBlob, StartingPoint
from shared.errors import FleetError, FleetFault, NotFound
from shared.work_order import Resumed


@dataclass(frozen=True)
class Workplace:
    """The location of the workspace, and the starting point of its order."""

    session: SessionDirectory
    mirror: Mirror
    start: StartingPoint


def go_back(place: Workplace, resumed: Resumed, fetch_blob: FetchBlob) -> Known:
    """Restore the work tree, the index and the agent's `.git` to the checkpoint; files that git ignores stay.

    The commit is taken from this disk, or else from the stored bundle. Raises FleetFault with the code E-CHECKPOINT
    if neither has it complete, E-DISK-FULL if it does not fit.
    """
    try:
        return _from_disk_or_bundle(place, resumed, fetch_blob)
    except (GitFailed, NotFound, OSError) as failure:
        # For any error: the next run on this drone must not find this workspace and try the same again.
        place.session.forget_checkpoints()
        raise _fault(place, resumed, failure) from failure


def _from_disk_or_bundle(place: Workplace, resumed: Resumed, fetch_blob: FetchBlob) -> Known:
    try:
        return _put_back(place, resumed)
    except (GitFailed, OSError):
        if not (resumed.commit and resumed.bundle and resumed.bundle_run):
            raise
    _take_bundle(place.session, fetch_blob(resumed.bundle_run, resumed.bundle))
    return _put_back(place, resumed)


def _put_back(place: Workplace, resumed: Resumed) -> Known:
    session, start = place.session, place.start
    commit = resumed.commit or start.commit
    if resumed.commit:
        _check(place, resumed)
    mend_work_tree(session.work)
    _fill(session, commit)
    session.make_agents_git(place.mirror, start, resumed.head or start.commit)
    session.show_changes_to(resumed.head or start.commit)
    git = session.git.at(session.git_dir)
    if resumed.commit:
        git.text("update-ref", f"{CHECKPOINT_REFS}/{resumed.run_id}", resumed.commit)
    session.keep_index()
    return Known(session.tree_of(commit), resumed.head, resumed.commit, resumed.run_id)


def _check(place: Workplace, resumed: Resumed) -> None:
    """Check that the commit is here with everything that it needs, and that it matches the checkpoint."""
    git = place.session.git.at(place.session.git_dir)
    base = place.start.commit
    git.raw("rev-list", "--objects", "--quiet", resumed.commit, *([f"^{base}"] if base else []))
    parents = git.text("rev-parse", f"{resumed.commit}^@").split()
    if parents != [commit for commit in [resumed.head or base] if commit]:
        raise GitFailed("rev-parse", None, "the commit's parents do not match the checkpoint")


def _fill(session: SessionDirectory, commit: str | None) -> None:
    """Make the work tree hold only the files of the commit and those that git ignores."""
    session.take_kept_index()
    try:
        _fill_once(session, commit)
    except (GitFailed, OSError):
        # Directories that the agent locked, or an index that was being written during a power cut.
        unlock(session.work)
        (session.git_dir / "index").unlink(missing_ok=True)
        _fill_once(session, commit)


def _fill_once(session: SessionDirectory, commit: str | None) -> None:
    remove_special_files(session.work)
    session.fill(commit, clean=True)
    # git skips everything named `.git`, even if that made a repository of a directory with files of ours.
    files = session.git.raw("ls-files", "-z").split(b"\0")
    names = [tuple(os.fsdecode(file).split("/")) for file in files]
    inside = {each[:depth] for each in names for depth in range(1, len(each))}
    for visited in walk(session.work):
        if visited.length < LONGEST_PATH and visited.names in inside:
            remove_entry(".git", visited.descriptor)


def _take_bundle(session: SessionDirectory, content: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="drone-") as directory:
        bundle = Path(directory, "checkpoint.bundle")
        bundle.write_bytes(content)
        read_bundle(session.git.at(session.git_dir), bundle)


def _fault(place: Workplace, resumed: Resumed, failure: Exception) -> FleetError:
    if isinstance(failure, OSError) and failure.errno in FULL:
        return fault_of(failure)
    if isinstance(failure, GitFailed) and (error := explain(failure, place.mirror.remote)).code == "E-DISK-FULL":
        return error
    return FleetFault(
        f"the checkpoint of run {resumed.run_id} that this run resumes from ({resumed.commit[:12]}) is unavailable",
        code="E-CHECKPOINT",
        why=str(failure),
        next="fleet retry ORDER",
    )
