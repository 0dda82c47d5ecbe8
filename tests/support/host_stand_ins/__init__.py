"""Stand-ins for GitHub, GitLab and Gitea: real servers on loopback that hold issues, comments, reviews and checks.

They serve the repository by git, and pull requests, their heads and whether they conflict are those of the repository.
Fields and addresses are those of the published API references, which each file names; nothing was recorded from a host.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.host_stand_ins.gitea import GiteaStandIn
from tests.support.host_stand_ins.github import GitHubStandIn
from tests.support.host_stand_ins.gitlab import GitLabStandIn
from tests.support.host_stand_ins.server import Delivery, HostStandIn

KINDS: dict[str, type[HostStandIn]] = {"github": GitHubStandIn, "gitlab": GitLabStandIn, "gitea": GiteaStandIn}


def stand_in(kind: str, root: Path) -> HostStandIn:
    """A server of this kind for the repositories below `root`."""
    return KINDS[kind](root)


__all__ = ["KINDS", "Delivery", "HostStandIn", "stand_in"]
