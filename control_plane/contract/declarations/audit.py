"""The audit log: every change and every refusal, in a chain that shows tampering."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from control_plane.contract.declarations.operation import (
    LONGEST,
    READS,
    About,
    ByHand,
    Command,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.contract.documents.base import Document, Request

Problem = Literal["", "missing", "changed", "cut", "seal", "kept head"]
MAX_LISTED = 1000
MAX_SEQ = 2**53
SINCE = About("since", "Only records from this time on.", metavar="TIME", absent="all")
UNTIL = About("until", "Only records before this time.", metavar="TIME", absent="all")
ACTOR = About(
    "actor", "Only records of this actor: the name or id of a user, token, login session or drone.", absent="all"
)
ACTION = About("action", "Only records of this operation, such as submit or revoke_api_token.", absent="all")
TARGET = About("target", "Only records of this target: the id or the name of what was changed.", absent="all")
OUTCOME = About("outcome", "Only records with this outcome: began, changed, refused or failed.", absent="all")
DOOR = About(
    "door",
    "Only records of this door: api, cli, page, answer link, mcp, webhook, control plane or drone.",
    absent="all",
)
ADDRESS = About("address", "Only records of requests from this network address, as the records show it.", absent="all")
CODE = About("code", "Only refusals and failures with this error code.", metavar="CODE", absent="all")
EVERYWHERE = About(
    "everywhere",
    "All organizations, and what belongs to none; requires a token that is valid everywhere.",
    flag="--everywhere",
)


class AuditExportFilter(Request):
    since: Annotated[AwareDatetime | None, SINCE] = None
    until: Annotated[AwareDatetime | None, UNTIL] = None
    everywhere: Annotated[bool, EVERYWHERE] = False
    actor: Annotated[str | None, ACTOR] = Field(None, max_length=128)
    action: Annotated[str | None, ACTION] = Field(None, max_length=64)
    target: Annotated[str | None, TARGET] = Field(None, max_length=255)
    outcome: Annotated[str | None, OUTCOME] = Field(None, max_length=16)
    door: Annotated[str | None, DOOR] = Field(None, max_length=16)
    address: Annotated[str | None, ADDRESS] = Field(None, max_length=64)
    code: Annotated[str | None, CODE] = Field(None, max_length=64)


class AuditFilter(AuditExportFilter):
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
    actor_user_id: Annotated[str, About("user id")]
    """The id of the user to whom the token or login session belongs; empty for tokens without a user."""
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
    """changed, refused (the caller is at fault) or failed (the control plane is); began: of a rotation of the master
    key, which has another record when it ends."""
    code: Annotated[str, About("code")]
    """The error's code; empty for a change."""
    count: Annotated[int, About("count")]
    """How many times within the minute from `at` on, for refusals that are summed."""
    hash: Annotated[str, About("hash")]
    """SHA-256 over this record and the hash of the one before."""


class KeptHead(Request):
    """A head that was printed earlier and kept elsewhere."""

    seq: Annotated[int | None, About("seq", "The number of a head that you kept.")] = Field(None, ge=1, le=MAX_SEQ)
    hash: Annotated[str | None, About("hash", "Its hash.")] = Field(None, max_length=64)


class AuditHeadDocument(Document):
    """The newest signed place in the chain. Kept elsewhere, it shows later whether records were changed or removed."""

    seq: Annotated[int, About("number")]
    """Of the newest record at that time."""
    hash: Annotated[str, About("hash")]
    """Of that record."""
    at: Annotated[AwareDatetime, About("signed")]
    kind: Annotated[str, About("kind")]
    """head, or anchor if all records up to it were pruned."""
    key_id: Annotated[str, About("key")]
    public_key: Annotated[str, About("public key")]
    """Ed25519, base64."""
    signature: Annotated[str, About("signature")]
    """Base64; over the JSON object of at, hash, kind and seq with sorted keys and no blanks."""


class AuditVerificationDocument(Document):
    """What a check of the whole chain found."""

    problem: Problem
    """Empty if the chain is intact. missing: a record is not there, or the chain does not begin at its anchor; changed:
    a record does not have its hash, or not that of the one before; cut: the newest records are not there; seal: a
    signature is not genuine, or under another hash; kept head: the given head is not in the chain.
    """
    problem_seq: int | None
    """The record at which the check ended."""
    records: int
    """How many were checked."""
    first: int | None
    last: int | None
    anchor: int
    """The last pruned record; 0 if none was pruned."""
    sealed_to: int
    """The newest record with a signature at or after it; 0 if there is none."""


class PruneRequest(Request):
    before: Annotated[AwareDatetime, About("before", "Delete the records before this time.", metavar="TIME")]


class PrunedDocument(Document):
    records: Annotated[int, About("deleted", unit="records")]
    anchor: Annotated[int | None, About("anchor")]
    """The last deleted record, whose signed hash stays."""


LIST = Operation(
    name="list_audit_records",
    role="admin",
    route="GET /audit",
    errors=(403,),
    request=AuditFilter,
    answer=list[AuditRecordDocument],
    summary="List records of the audit log, newest first",
    more="For the next page, set `before` to the lowest number received.",
    tool=Tool(
        "list_audit_records",
        "List audit records",
        READS,
        "List the changes and refusals in the organization, newest first: who did what to which target, from which "
        "address, through which door (api, cli, page, answer link, mcp, webhook, drone, control plane), and for a "
        "refusal its error code. For older ones, set before to the lowest seq. Requires the admin role.",
        about={
            "since": "Only records from this time on, ISO 8601 with a zone. Default: all.",
            "until": "Only records before this time, ISO 8601 with a zone. Default: all.",
        },
        defaults={"limit": 20},
    ),
    command=Command(
        "audit ls",
        "List changes and refusals, newest first: who, what, from where, through which door.",
        "fleet audit ls --outcome refused --door mcp",
        defaults={"limit": 50},
        columns=("seq", "at", "actor", "door", "address", "action", "target", "outcome", "code", "count"),
        empty="no records",
    ),
)
SERVERS_OWN = NoDoor("it is about the whole installation, for its administrators")
HEAD = Operation(
    name="show_audit_head",
    role="admin",
    everywhere=True,
    in_organization=False,
    route="GET /audit/head",
    errors=(403, 404),
    answer=AuditHeadDocument,
    summary="Show the newest signed head of the audit log",
    more="Keep it elsewhere: it shows later whether records up to it were changed or removed.",
    tool=SERVERS_OWN,
    command=Command(
        "audit head",
        "Show the newest signed head, to be kept elsewhere as proof, and the public key.",
        "fleet audit head",
    ),
)
VERIFY = Operation(
    name="verify_audit_log",
    role="admin",
    everywhere=True,
    in_organization=False,
    route="GET /audit/verification",
    errors=(403,),
    request=KeptHead,
    answer=AuditVerificationDocument,
    answers_within=LONGEST,
    summary="Verify the chain of the audit log",
    more="With `seq` and `hash`, also that it still contains the head that you kept.",
    tool=SERVERS_OWN,
    command=ByHand("audit verify", "its exit code says whether the chain is intact"),
)
EXPORT = Operation(
    name="export_audit_log",
    role="admin",
    route="GET /audit/export",
    route_by_hand="it streams",
    errors=(403,),
    request=AuditExportFilter,
    answer=str,
    summary="Export the audit log as JSON Lines",
    tool=NoDoor("a model has no use for a file with all records"),
    command=ByHand("audit export", "it writes a file, and moves it into place once it is complete"),
)
PRUNE = Operation(
    name="prune_audit_log",
    role="admin",
    everywhere=True,
    in_organization=False,
    route="POST /audit/prune",
    errors=(403,),
    request=PruneRequest,
    answer=PrunedDocument,
    summary="Delete the oldest records of the audit log",
    more="A signed anchor stays, from which the rest verifies. Records of the last 24 hours cannot be deleted.",
    answers_within=LONGEST,
    tool=NoDoor("removal is left to people"),
    command=Command(
        "audit prune",
        "Delete the oldest records, for example because the disk is full. Export them first if you need them.",
        "fleet audit prune --before 2026-01-01T00:00:00Z",
        confirm="Delete all audit records before {before}?",
    ),
)
