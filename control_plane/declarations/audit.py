"""The audit log: every change and every refusal, in a chain that shows tampering."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from control_plane.declarations.operation import READS, About, Command, Operation, Tool
from control_plane.documents.base import Document, Request

MAX_LISTED = 1000
MAX_SEQ = 2**53
ACTOR = About("actor", "Only records of this actor: the name or id of a token, login session or drone.")
ACTION = About("action", "Only records of this operation, such as submit or revoke_api_token.")
TARGET = About("target", "Only records of this target: the id or the name of what was changed.")
OUTCOME = About("outcome", "Only records with this outcome: changed, refused or failed.")
EVERYWHERE = About(
    "everywhere",
    "All organizations, and what belongs to none; requires a token that is valid everywhere.",
    flag="--everywhere",
)


class AuditFilter(Request):
    since: Annotated[AwareDatetime | None, About("since", "Only records from this time on.", metavar="TIME")] = None
    until: Annotated[AwareDatetime | None, About("until", "Only records before this time.", metavar="TIME")] = None
    actor: Annotated[str | None, ACTOR] = Field(None, max_length=128)
    action: Annotated[str | None, ACTION] = Field(None, max_length=64)
    target: Annotated[str | None, TARGET] = Field(None, max_length=255)
    outcome: Annotated[str | None, OUTCOME] = Field(None, max_length=16)
    everywhere: Annotated[bool, EVERYWHERE] = False
    before: Annotated[int | None, About("before", "Only records with a lower number, for the next page.")] = Field(
        None, ge=1, le=MAX_SEQ
    )
    limit: Annotated[int, About("limit", "Maximum number of results, newest first.")] = Field(100, ge=1, le=MAX_LISTED)


class AuditRecordDocument(Document):
    """One change or refusal."""

    seq: Annotated[int, About("number")]
    at: Annotated[AwareDatetime, About("time")]
    actor_kind: Annotated[str, About("actor kind")]
    """token, session (a browser), drone, control plane (on its own) or unknown (not authenticated)."""
    actor: Annotated[str, About("actor")]
    """The name at that time."""
    actor_id: Annotated[str, About("actor id")]
    """The id of the API token, directly or behind a login session, or of the drone."""
    door: Annotated[str, About("door")]
    """api, cli (the client's own statement), page, mcp, webhook, drone or control plane."""
    address: Annotated[str, About("address")]
    """The client's network address."""
    action: Annotated[str, About("action")]
    """The operation's name."""
    target: Annotated[str, About("target")]
    organization: Annotated[str, About("organization")]
    """The name at that time; empty if the caller is in none."""
    outcome: Annotated[str, About("outcome")]
    """changed, refused (the caller is at fault) or failed (the control plane is)."""
    code: Annotated[str, About("code")]
    """The error's code; empty for a change."""
    count: Annotated[int, About("count")]
    """How many times within the minute from `at` on, for refusals that are summed."""
    hash: Annotated[str, About("hash")]
    """SHA-256 over this record and the hash of the one before."""


LIST = Operation(
    name="list_audit_records",
    role="admin",
    route="GET /audit",
    errors=(403,),
    run="audit.reading:list_records",
    request=AuditFilter,
    answer=list[AuditRecordDocument],
    summary="List records of the audit log, newest first",
    more="For the next page, set `before` to the lowest number received.",
    tool=Tool(
        "list_audit_records",
        "List audit records",
        READS,
        "List the changes and refusals in the organization, newest first: who did what to which target, from which "
        "address, through which door (api, cli, page, mcp, webhook, drone, control plane), and for a refusal its error "
        "code. For older ones, set before to the lowest seq. Requires the admin role.",
        about={
            "since": "Only records from this time on, ISO 8601 with a zone. Default: all.",
            "until": "Only records before this time, ISO 8601 with a zone. Default: all.",
            "actor": "Only records of this actor: name or id of a token, login session or drone. Default: all.",
            "action": "Only records of this operation. Default: all.",
            "target": "Only records of this target: the id or name of what was changed. Default: all.",
            "outcome": "Only records with this outcome: changed, refused or failed. Default: all.",
            "before": "Only records with a lower seq, for the next page. Default: the newest.",
        },
        defaults={"limit": 20},
    ),
    command=Command(
        "audit ls",
        "List changes and refusals, newest first: who, what, from where, through which door.",
        "fleet audit ls --outcome refused",
        defaults={"limit": 50},
        columns=("seq", "at", "actor", "door", "address", "action", "target", "outcome", "code", "count"),
        empty="no records",
    ),
)
