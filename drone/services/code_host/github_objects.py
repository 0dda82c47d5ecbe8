"""Objects of GitHub's API, which Gitea's API has in the same form."""

from __future__ import annotations

from drone.services.code_host.host_answers import Row, account, identity, moment, text, was_edited
from shared.code_hosts import SeenComment, SeenPull


def comment_of(row: Row, place: str, about: Row) -> SeenComment:
    """A comment at `place` on the issue or pull request `about`. Raises HostRefused without an id or a time."""
    return SeenComment(
        id=identity(row, "id"),
        place=place,
        author=text(row, "user", "login"),
        account=account(row),
        text=text(row, "body"),
        url=text(row, "html_url"),
        at=moment(row, "created_at"),
        edited=was_edited(row),
        title=text(about, "title", limit=300),
        about=text(about, "body"),
    )


def pull_of(number: int, row: Row) -> SeenPull:
    """A pull request, without its reviews, its checks and the tip of its base."""
    is_open = row.get("state") == "open"
    return SeenPull(
        number=number,
        state="open" if is_open else "merged" if row.get("merged") is True else "closed",
        head=text(row, "head", "sha"),
        branch=text(row, "head", "ref"),
        base=text(row, "base", "ref"),
        conflicts=is_open and row.get("mergeable") is False,
    )
