"""`fleet batch …`: running a file of orders, its progress and its results."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.batch_follow import BatchId, follow_batch
from control_plane.cli.batch_text import batch_text
from control_plane.cli.common_options import Org
from control_plane.cli.completion import choices, listed
from control_plane.cli.connection import client
from shared.errors import Conflict, Invalid, NotFound
from shared.terminal.command_line import JsonFlag, examples, parse_labels, say
from shared.terminal.text_file import text_of

if TYPE_CHECKING:
    from control_plane.cli.batch_files.rows import RowReader
    from control_plane.contract.client.fleet import FleetClient
    from control_plane.contract.declarations.batches import BatchRowRequest

Doc = dict[str, Any]
MAX_SENT = 1_000_000
"""Bytes of rows in one request, of which a server takes 2 MB."""
_DEFAULTS = (
    "project",
    "provider",
    "base",
    "mode",
    "thinking",
    "priority",
    "max_iterations",
    "cost_limit",
    "max_run_seconds",
    "verify",
    "verify_attempts",
)
_RUN = examples(
    "fleet batch run issues.csv --template fix.j2 --project shop --parallel 8 --detach",
    "fleet batch run verified.jsonl --format swebench --repos map.json --filter 'django__.*' --slice 0:20 --detach",
)


def add_others(group: typer.Typer) -> None:
    """Register the commands."""
    group.command("run", epilog=_RUN)(run)
    shown = examples("fleet batch results BATCH --output results.jsonl", "fleet batch results BATCH --format preds")
    group.command("results", epilog=shown)(results)


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON lines, JSON or CSV; `-` reads stdin.")],
    name: Annotated[str | None, typer.Option("--name", help="Name of the batch (default: the file's name).")] = None,
    parallel: Annotated[
        int | None,
        typer.Option("--parallel", metavar="N", help="Maximum number of orders that are under way (default 4)."),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="jsonl, json, csv or swebench (default: from the file's name and contents).",
            autocompletion=choices(("jsonl", "json", "csv", "swebench")),
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--template", metavar="FILE", help="Jinja template of the prompt, with a row's columns as fields."
        ),
    ] = None,
    render: Annotated[bool, typer.Option("--render", help="Treat each row's prompt as a template, too.")] = False,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config", "-c", metavar="SPEC", help="A configuration of mini-swe-agent: a file, or key=value; repeats."
        ),
    ] = None,
    repos: Annotated[
        str | None,
        typer.Option("--repos", metavar="MAP.json", help='For SWE-bench: {"owner/name": URL or path, …}.'),
    ] = None,
    filter_: Annotated[
        str | None, typer.Option("--filter", metavar="REGEX", help="Only rows whose id it matches from the beginning.")
    ] = None,
    slice_: Annotated[
        str | None, typer.Option("--slice", metavar="RANGE", help="Only these rows, after the filter: 0:10, 50:, ::2.")
    ] = None,
    shuffle: Annotated[
        int | None, typer.Option("--shuffle", metavar="SEED", help="Shuffle before filter and slice.")
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out rows that cannot be submitted.")] = False,
    redo: Annotated[bool, typer.Option("--redo", help="Run the rows again as a new batch, NAME-2, NAME-3, ….")] = False,
    extend: Annotated[bool, typer.Option("--extend", help="Add the file's new rows to the existing batch.")] = False,
    project: Annotated[
        str | None,
        typer.Option(
            "--project", help="Project of the rows that name none (slug).", autocompletion=listed("projects:slug")
        ),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            help="Provider, or its model, of the rows that name none (default: the project's).",
            autocompletion=listed("providers:name"),
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="COMMIT", help="Commit to start from (default: the tip of the branch)."),
    ] = None,
    label: Annotated[list[str] | None, typer.Option("--label", help="Required drone label k=v; repeats.")] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            help="plan (read-only), build, test, ship or develop (default build).",
            autocompletion=choices("shared.work_order:Mode"),
        ),
    ] = None,
    thinking: Annotated[
        str | None,
        typer.Option(
            "--thinking",
            help="How much the model thinks (default: the provider's setting).",
            autocompletion=choices("shared.work_order:ThinkingLevel"),
        ),
    ] = None,
    priority: Annotated[int | None, typer.Option("--priority", help="-100 to 100; higher runs first.")] = None,
    max_iterations: Annotated[
        int | None, typer.Option("--max-iterations", help="Maximum steps of a row (default 50; 0 = unlimited).")
    ] = None,
    cost_limit: Annotated[
        float | None, typer.Option("--cost-limit", help="Maximum cost of a row in USD (default 3; 0 = unlimited).")
    ] = None,
    max_run_seconds: Annotated[
        float | None,
        typer.Option("--max-run-seconds", help="Time limit of a row in seconds (default 1800; 0 = unlimited)."),
    ] = None,
    verify: Annotated[
        list[str] | None,
        typer.Option(
            "--verify",
            metavar="COMMAND",
            help="Command that must pass at the end, for rows that have none (default: the project's); repeats.",
        ),
    ] = None,
    verify_attempts: Annotated[
        int | None, typer.Option("--verify-attempts", help="Maximum attempts of the model to fix failed checks.")
    ] = None,
    detach: Annotated[
        bool,
        typer.Option(
            "--detach/--follow", help="Return when the batch is submitted, instead of following it to its end."
        ),
    ] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> int:
    """Run a file of orders, a few at a time. The same file continues its batch.

    Ctrl-C stops following; the batch continues. Rows that have a value of their own do not take the option's.
    """
    given = locals()
    if redo and extend:
        raise Invalid("--redo and --extend cannot be used together", code="E-USAGE", next="leave one of them out")
    fleet = client(org)
    rows = _rows(fleet, given)
    wanted = name or (Path(file).stem if file != "-" else "stdin")
    batch = _submitted(fleet, wanted, rows, parallel, redo=redo, extend=extend)
    if not detach:
        return follow_batch(fleet, batch, batch_text, as_json=as_json)
    print_answer(batch, batch_text, as_json=as_json)
    if not as_json:
        say(f"  next  fleet batch show {batch['name']}")
    return 0


def _rows(fleet: FleetClient, given: Doc) -> list[BatchRowRequest]:
    """The rows to submit. Raises Invalid for a bad one, unless they are to be skipped, and if none is left."""
    from control_plane.cli.batch_files.choosing import Choice
    from control_plane.cli.batch_files.records import read_records
    from control_plane.cli.batch_files.rows import refuse_bad

    form = given["format_"]
    if form not in {None, "jsonl", "json", "csv", "swebench"}:
        raise Invalid(
            f"--format {form[:40]!r} is unknown", code="E-USAGE", next="--format jsonl, json, csv or swebench"
        )
    repositories = _repositories(fleet, given)
    reader = _reader(given, repositories[1])
    choice = Choice(given["filter_"], given["slice_"], given["shuffle"])
    records = read_records(given["file"], None if form == "swebench" else form)
    rows = reader.rows(records, choice)
    if not given["skip_bad"]:
        refuse_bad(reader.bad, len(rows) + len(reader.bad))
    for bad in reader.bad:
        say(f"skipped: line {bad.line} {bad.what}")
    for column in sorted(reader.unused):
        say(f"note: column {column} is not used")
    if not rows:
        raise Invalid(
            f"{given['file']} has no rows to run",
            code="E-BATCH-EMPTY",
            why="all were left out" if reader.bad or given["filter_"] or given["slice_"] else "it is empty",
            next="see docs/batches.md for the format",
        )
    _add_projects(fleet, repositories, rows)
    return rows


def _reader(given: Doc, projects: dict[str, str] | None) -> RowReader:
    from control_plane.cli.batch_files.mini_config import MiniConfig, read_config
    from control_plane.cli.batch_files.rows import RowReader
    from control_plane.cli.batch_files.templates import PromptTemplate

    config = read_config(given["config"], os.environ) if given["config"] else MiniConfig()
    for warning in config.warnings:
        say(f"warning: {warning}")
    text = text_of(given["template"]) if given["template"] else config.template
    options = {name: given[name] for name in _DEFAULTS if given[name] is not None}
    labels = {"labels": parse_labels(given["label"])} if given["label"] else {}
    return RowReader(
        defaults={**config.defaults, **options, **labels},
        template=PromptTemplate(text) if text is not None else None,
        swebench=given["format_"] == "swebench",
        renders=given["render"],
        projects=projects,
    )


def _repositories(fleet: FleetClient, given: Doc) -> tuple[dict[str, str], dict[str, str] | None]:
    """The map of repositories, and the project of each; None if there is no map."""
    if given["repos"] is None:
        return {}, None
    if given["project"] is not None:
        raise Invalid("--repos and --project cannot be used together", code="E-USAGE", next="leave one of them out")
    from control_plane.cli.batch_files.swebench import read_repositories, slugs_of
    from control_plane.contract.declarations.projects import LIST

    repositories = read_repositories(given["repos"])
    return repositories, slugs_of(fleet.call(LIST), repositories)


def _add_projects(
    fleet: FleetClient, repositories: tuple[dict[str, str], dict[str, str] | None], rows: Sequence[BatchRowRequest]
) -> None:
    from control_plane.cli.batch_files.swebench import add_missing

    urls, slugs = repositories
    if slugs is not None:
        used = {row.project for row in rows}
        add_missing(fleet, urls, slugs, {name for name, slug in slugs.items() if slug in used})


# --- submitting --------------------------------------------------------------------------------


def _submitted(
    fleet: FleetClient, name: str, rows: Sequence[BatchRowRequest], parallel: int | None, *, redo: bool, extend: bool
) -> Doc:
    """The batch of this name with these rows: a new one, or the existing one. Raises Conflict if it has others."""
    from control_plane.contract.declarations.batches import fingerprint

    if redo:
        name = _free_name(fleet, name)
    found = _existing(fleet, name)
    if found is None or found["status"] == "loading":
        return _sent(fleet, name, rows, parallel)
    if parallel not in {None, found["parallel"]}:
        say(f"note: batch {name} exists with --parallel {found['parallel']}, which stays")
    if found["fingerprint"] == fingerprint(row.digest for row in rows):
        say(f"batch {name} has these rows already: {found['status']}")
        return found
    return _extended(fleet, found, rows, extend=extend)


def _existing(fleet: FleetClient, name: str) -> Doc | None:
    from control_plane.contract.declarations.batches import SHOW

    try:
        found = dict(fleet.call(SHOW, batch_id=name))
    except (NotFound, Invalid) as error:
        # A name is looked up before ids: if several of these begin with it, no batch has the name.
        if isinstance(error, NotFound) or error.code == "E-ID-AMBIGUOUS":
            return None
        raise
    return found if found["name"] == name else None


def _free_name(fleet: FleetClient, name: str) -> str:
    if _existing(fleet, name) is None:
        return name
    number = 2
    while _existing(fleet, f"{name}-{number}") is not None:
        number += 1
    return f"{name}-{number}"


def _sent(fleet: FleetClient, name: str, rows: Sequence[BatchRowRequest], parallel: int | None) -> Doc:
    """Submit the rows in parts; the first order starts after the last part."""
    from control_plane.contract.declarations.batches import SUBMIT, BatchRequest
    from control_plane.contract.validation.invalid_requests import checked

    parts = list(_parts(rows))
    first = {"name": name, "rows": parts[0], "more": len(parts) > 1}
    first |= {} if parallel is None else {"parallel": parallel}
    batch = dict(fleet.call(SUBMIT, checked(BatchRequest, first, form="fleet batch run --help")))
    return _added(fleet, batch, parts[1:])


def _added(fleet: FleetClient, batch: Doc, parts: Sequence[Sequence[Doc]]) -> Doc:
    from control_plane.contract.declarations.batches import ADD_ROWS, RowsRequest

    for number, part in enumerate(parts, 1):
        request = RowsRequest.model_validate({"rows": part, "more": number < len(parts)})
        batch = dict(fleet.call(ADD_ROWS, request, batch_id=batch["id"]))
    return batch


def _parts(rows: Sequence[BatchRowRequest]) -> Iterator[list[Doc]]:
    from control_plane.contract.declarations.batches import MOST_SENT

    part: list[Doc] = []
    size = 0
    for row in rows:
        document = row.model_dump(mode="json", exclude_defaults=True)
        length = len(json.dumps(document))
        if part and (size + length > MAX_SENT or len(part) == MOST_SENT):
            yield part
            part, size = [], 0
        part.append(document)
        size += length
    yield part


def _extended(fleet: FleetClient, batch: Doc, rows: Sequence[BatchRowRequest], *, extend: bool) -> Doc:
    """Add the rows that the batch lacks. Raises Conflict, which says how the file and the batch differ."""
    known = {row["id"]: row["digest"] for row in _all_rows(fleet, batch["id"])}
    added = [row for row in rows if row.id not in known]
    changed = [row.id for row in rows if known.get(row.id, row.digest) != row.digest]
    gone = known.keys() - {row.id for row in rows}
    if extend and not changed:
        say(f"{len(added)} rows are added to batch {batch['name']}")
        return _added(fleet, batch, list(_parts(added))) if added else batch
    kinds = (("changed", changed), ("new", [row.id for row in added]), ("gone", sorted(gone)))
    differences = [
        f"{len(ids)} {kind} ({', '.join(ids[:5])}{', …' if len(ids) > 5 else ''})" for kind, ids in kinds if ids
    ]
    raise Conflict(
        f"batch {batch['name']} was submitted with other rows: {'; '.join(differences) or 'in another order'}"[:1000],
        code="E-BATCH-CHANGED",
        why="the results of a batch belong to the rows that it was submitted with",
        next="--redo runs all rows as a new batch; --name NAME names it"
        + ("" if changed else "; --extend adds the new rows"),
    )


# --- results -----------------------------------------------------------------------------------


def results(
    batch: BatchId,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="jsonl, csv, or preds for SWE-bench's evaluation (default jsonl).",
            autocompletion=choices(("jsonl", "csv", "preds")),
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write (default: stdout; for preds, preds.json)."),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            help="Only rows that are waiting, open, succeeded, failed, canceled, refused, resolved or unresolved.",
            autocompletion=choices("control_plane.contract.declarations.batches:RowState"),
        ),
    ] = None,
    org: Org = None,
) -> int:
    """Write the results of a batch, with patches: JSON lines, CSV, or predictions for SWE-bench."""
    from control_plane.cli.batch_files.results import write_results

    form = format_ or "jsonl"
    if form not in {"jsonl", "csv", "preds"}:
        raise Invalid(f"--format {form[:40]!r} is unknown", code="E-USAGE", next="--format jsonl, csv or preds")
    target = output or ("preds.json" if form == "preds" else "-")
    number = write_results(_all_rows(client(org), batch, state=state, patches=True), form, target)  # type: ignore[arg-type]
    if target != "-":
        say(f"{number:,} rows written to {target}")
    return 0


def _all_rows(fleet: FleetClient, batch: str, **terms: Any) -> Iterator[Doc]:
    """All rows, read in parts."""
    from control_plane.contract.declarations.batches import LIST_ROWS, RowFilter
    from control_plane.contract.validation.invalid_requests import checked

    after = 0
    while True:
        request = checked(RowFilter, {**terms, "after": after, "limit": 500}, form="fleet batch results --help")
        part = [row for row in fleet.call(LIST_ROWS, request, batch_id=batch) if row["number"] > after]
        if not part:
            return
        yield from part
        after = part[-1]["number"]
