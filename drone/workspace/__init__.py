"""Where work happens: a bare mirror for each repository, one workspace for each session, and its results.

    Workspaces(root, git_environment(gitconfig, environ, allow_file=False), sandbox)
        .prepare(order, fetch_blob, check) -> Workspace
            .go_back(resumed, fetch_blob)
            .checkpoint(run_id, has_secret=...) -> Snapshot
            .deliver(branch, message, author) -> Delivery
            .push(ref, expect, deadline_s) -> PushResult

The drone's own git directory is beside the workspace, never in it: nothing that the agent writes into its `.git`
is ever run or trusted.
"""

from __future__ import annotations

from drone.workspace.agent_instructions import DefaultBranch, read_agent_instructions
from drone.workspace.branch_changes import BranchChange
from drone.workspace.checkpoint import Snapshot
from drone.workspace.delivery import Delivery
from drone.workspace.git_settings import copy_owner_config, git_environment
from drone.workspace.merging import has_conflicts, marker_check, note_for_model, note_for_users
from drone.workspace.outgoing import SecretFinder
from drone.workspace.patches import Patches
from drone.workspace.project_files import ProjectFiles
from drone.workspace.push import PushResult
from drone.workspace.starting_point import refuse_rewritten
from drone.workspace.submodule_sources import note_of_submodules, note_of_unfetched
from drone.workspace.workspaces import Workspace, Workspaces

__all__ = [
    "BranchChange",
    "DefaultBranch",
    "Delivery",
    "Patches",
    "ProjectFiles",
    "PushResult",
    "SecretFinder",
    "Snapshot",
    "Workspace",
    "Workspaces",
    "copy_owner_config",
    "git_environment",
    "has_conflicts",
    "marker_check",
    "note_for_model",
    "note_for_users",
    "note_of_submodules",
    "note_of_unfetched",
    "read_agent_instructions",
    "refuse_rewritten",
]
