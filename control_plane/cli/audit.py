"""`fleet audit verify|export`: the commands of the audit log that are not derived."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.connection import client
from control_plane.cli.exported_lines import write_lines
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, say

Doc = dict[str, Any]
_PROBLEMS = {
    "missing": "record {problem_seq} is missing",
    "changed": "record {problem_seq} was changed, or one before it replaced",
    "cut": "the records from {problem_seq} on were removed",
    "seal": "the signature under record {problem_seq} is not genuine, or the record was replaced",
    "kept head": "record {problem_seq} is not the one that you kept",
}


def add_others(group: typer.Typer) -> None:
    """Register the commands."""
    shown = examples("fleet audit verify", "fleet audit verify --head 4711:9f86d081884c7d65…")
    group.command("verify", epilog=shown)(verify)
    shown = examples(
        "fleet audit export --everywhere --output audit.jsonl", "fleet audit export --outcome refused --door drone"
    )
    group.command("export", epilog=shown)(export)


def verify(
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="NUMBER:HASH", help="A head that you kept, of `fleet audit head`: it must still be there."
        ),
    ] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> int:
    """Verify the chain of the audit log, with its signatures. Exits with 1 if it is not intact."""
    from control_plane.contract.declarations import audit

    found = client(org).call(audit.VERIFY, _kept(head))
    print_answer(found, _outcome, as_json=as_json)
    return 1 if found["problem"] else 0


def export(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE|-", help="Output file (default: stdout).")
    ] = "-",
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only records from this time on.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only records before this time.")] = None,
    everywhere: Annotated[
        bool,
        typer.Option("--everywhere", help="All organizations, with the newest signed head."),
    ] = False,
    actor: Annotated[
        str | None,
        typer.Option("--actor", help="Only records of this user, token, login session or drone: the name or id."),
    ] = None,
    action: Annotated[str | None, typer.Option("--action", help="Only records of this operation.")] = None,
    target: Annotated[str | None, typer.Option("--target", help="Only records of this target: the id or name.")] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", help="Only records with this outcome: began, changed, refused or failed.")
    ] = None,
    door: Annotated[
        str | None,
        typer.Option("--door", help="Only records of this door: api, cli, page, mcp, webhook, control plane or drone."),
    ] = None,
    address: Annotated[
        str | None, typer.Option("--address", help="Only records of requests from this network address.")
    ] = None,
    code: Annotated[
        str | None, typer.Option("--code", metavar="CODE", help="Only refusals and failures with this error code.")
    ] = None,
    org: Org = None,
) -> None:
    """Export the audit log as JSON lines, oldest record first, with all hashes.

    With filters, records are missing between those that are written, so the export alone does not prove the chain.
    """
    from control_plane.contract.declarations.audit import AuditExportFilter
    from control_plane.contract.validation.invalid_requests import checked

    given = {"since": since, "until": until, "everywhere": everywhere, "actor": actor, "action": action}
    given |= {"target": target, "outcome": outcome, "door": door, "address": address, "code": code}
    filters = checked(AuditExportFilter, given, form="fleet audit export --help")
    chosen = filters.model_dump(mode="json", exclude_none=True)
    end = write_lines(client(org).export_audit_log(chosen), output)
    say(f"exported {end['records']:,} records")


def _kept(head: str | None) -> Any:
    from control_plane.contract.declarations.audit import KeptHead

    if head is None:
        return KeptHead()
    number, _, kept_hash = head.partition(":")
    if not number.isdigit() or not kept_hash:
        raise Invalid(f"invalid head {head[:80]!r}: expected NUMBER:HASH", code="E-AUDIT-KEPT", next="fleet audit head")
    return KeptHead(seq=int(number), hash=kept_hash)


def _outcome(found: Doc) -> str:
    if found["problem"]:
        return f"not intact: {_PROBLEMS[found['problem']].format(**found)}"
    if not found["records"]:
        return "intact: no records"
    pruned = f"; pruned up to {found['anchor']:,}" if found["anchor"] else ""
    return f"intact: records {found['first']:,} to {found['last']:,}, signed up to {found['sealed_to']:,}{pruned}"
