"""Requests and documents of pull requests."""

from __future__ import annotations

from typing import Literal

from control_plane.documents.base import Document, Request


class PullRequestRequest(Request):
    title: str | None = None
    """None: the first line of what the work is about."""
    draft: bool = False


class PullRequestDocument(Document):
    """What became of an order's pull request."""

    state: Literal["asked", "opened", "updated", "ready", "failed"]
    url: str | None
    number: int | None
    via: str
    head: str
    base: str | None
    title: str
    body: str
    why: str
    order: str
    """The service order that did it."""
