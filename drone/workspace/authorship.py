"""Who a commit is by: the drone, for an order, or a user."""

from __future__ import annotations

from drone.workspace.git import Git

AUTHOR_NAME = "Dronefleet"
AUTHOR_EMAIL = "drone@localhost"


def is_by_order(git: Git, commit: str, order_id: str) -> bool:
    """Whether a drone made the commit, and for this order as far as its trailers say.

    A user who amends a drone's commit keeps its trailers, but becomes its committer. Raises GitFailed.
    """
    shown = "--format=%ce%n%(trailers:key=Fleet-Order,valueonly)"
    committer, *orders = git.text("log", "-1", shown, commit).split("\n")
    return committer == AUTHOR_EMAIL and (order_id in orders or not any(orders))
