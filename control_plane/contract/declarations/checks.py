"""What is known of a provider or project that was tried on a drone."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from control_plane.contract.declarations.operation import About
from control_plane.contract.documents.base import Document

CHECK = About("check", "Try it on a drone as soon as one takes it.", flag="--check/--no-check", shows="state summary")
CHECK_AGAIN = About("check", "Try it again if the change matters to it.", flag="--check/--no-check", absent="as before")


class CheckDocument(Document):
    """Null is unknown: the fields of a result are known once the state is ok or failed."""

    state: Literal["unchecked", "checking", "ok", "failed", "skipped"]
    summary: str
    """One sentence: it works, why it does not, or what its check waits for."""
    at: datetime | None = None
    """When the result was reported."""
    drone: str | None = None
    """The drone that tried it, or is to try it."""
    order: str | None = None
    """The order that tries it."""
    code: str | None = None
    detail: str | None = None
    next: str | None = None


class ProviderCheckDocument(CheckDocument):
    """What a provider can do."""

    first_token_ms: int | None = None
    total_ms: int | None = None
    price: Literal["set", "listed", "unknown"] | None = None
    input_usd: float | None = None
    """USD per million tokens."""
    output_usd: float | None = None
    tool_calls: Literal["native", "text", "ignored"] | None = None
    streams: bool | None = None
    reports_usage: bool | None = None
    context_window: int | None = None
    window_from: Literal["set", "listed", "assumed"] | None = None


class CheckedCommandDocument(Document):
    phase: Literal["setup", "verify"]
    command: str
    passed: bool
    return_code: int | None = None
    duration_ms: int
    output: str


class ProjectCheckDocument(CheckDocument):
    """What happened to a project's repository and commands."""

    remote_ms: int | None = None
    default_branch: str | None = None
    branch: str | None = None
    may_push: bool | None = None
    commands: list[CheckedCommandDocument] | None = None
