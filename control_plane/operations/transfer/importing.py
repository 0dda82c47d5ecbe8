"""Import an exported organization as a new one: all of it, or nothing."""

from __future__ import annotations

import base64
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any, BinaryIO

from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.contract.declarations import organizations as declared
from control_plane.contract.declarations.organizations import OrganizationDocument, OrganizationRequest
from control_plane.contract.declarations.sessions import MAX_SESSION_NAME
from control_plane.contract.documents.base import SYSTEM
from control_plane.contract.validation.checks import check_organization, shown
from control_plane.contract.validation.git_urls import parse_git_url
from control_plane.contract.validation.issued_secrets import hashed, new_secret
from control_plane.core import Caller, Core
from control_plane.core.vault import Purpose
from control_plane.db.installation import Counter, Organization
from control_plane.db.metadata import METADATA
from control_plane.db.orders import SteeringMessage
from control_plane.db.runs import Run
from control_plane.db.sessions import SessionEntry
from control_plane.db.spending import Budget
from control_plane.db.teams import Comment
from control_plane.money.spending.accounts import recount
from control_plane.operations.gateway import performs
from control_plane.operations.organizations import create_within, document_of
from control_plane.operations.transfer.checking import Checked, check, lines_of
from control_plane.operations.transfer.kinds import BY_NAME, DRONE, SUMMED, TASK, Kind, is_id
from control_plane.operations.transfer.settings import Import
from control_plane.orders.numbers import ORDERS
from control_plane.orders.status_changes import facts_columns
from shared.errors import Conflict, FleetFault
from shared.outcome import ExitStatus
from shared.reasons import CanceledEnd, OrderFacts
from shared.states import ENDED, RunStatus, TaskStatus, TurnStatus

"""The version of the format from which on it has budgets."""
BATCH = 500
"""Rows in memory at once."""
_TRIES = 3
Line = dict[str, Any]


@performs(declared.IMPORT)
def import_lines(core: Core, caller: Caller, lines: Iterable[str], name: str | None = None) -> OrganizationDocument:
    """Create an organization from the lines of `export_lines`, with `name` or its exported name. For admins everywhere.

    The new organization is paused. Ids stay; if any is in use here, all are replaced. Tasks keep their numbers. Tasks
    in progress become open and are assigned to the user, with a system comment; unfinished orders are canceled. What
    would create orders there is settled: a user decides races that were to be judged, and no session is due for new
    work below it. Drones are imported as removed, for their names. `warnings` lists what must be set up again.

    Raises Conflict for a name that is taken and for a file that is newer or too old, Invalid with the line's number for
    a broken or foreign file; nothing is changed then.
    """
    if name is not None:
        check_organization(name)
    # In the blob directory, not in /tmp, which may be in memory.
    with tempfile.TemporaryFile(dir=core.blobs.spool) as spool:
        spool.writelines(line.encode("utf-8", "surrogatepass") for line in lines)
        return import_file(core, caller, spool, name)


@performs(declared.IMPORT)
def import_file(core: Core, _caller: Caller, spool: BinaryIO, name: str | None = None) -> OrganizationDocument:
    """As `import_lines`, from a seekable file, which is read several times."""
    spool.seek(0)
    # Before the write transaction: on SQLite, that blocks all other writers.
    checked = check(spool, Import(core.settings, core.clock.now()))
    wanted = check_organization(name or checked.organization["name"])
    # A bucket may answer more slowly than a transaction may wait.
    stored = frozenset(blob for blob in checked.blobs if core.blobs.has(blob[0], sealed=blob[1]))
    for attempt in range(_TRIES):
        _refuse_taken(core, wanted)
        renewed = attempt > 0 or _is_here(core, checked.header["organization_id"])
        importing = _Import(core, checked, wanted, stored, Renewal(secrets.token_hex(8) if renewed else ""))
        try:
            return core.database.transact(partial(importing.write, spool=spool))
        except IntegrityError:
            # An id, the name or the acronym is in use here after all: check again, and replace all ids.
            continue
    raise FleetFault(
        "the organization could not be written", code="E-IMPORT", why="concurrent changes conflict with it"
    )


@dataclass(frozen=True)
class Renewal:
    """Maps each old id to one new id, whether its line comes before or after a reference to it."""

    salt: str
    """If empty, ids stay."""

    def of(self, old: str) -> str:
        return sha256(f"{self.salt}{old}".encode()).hexdigest()[: len(old)] if self.salt else old


@dataclass
class _Import:
    """The import of one file, in one transaction."""

    core: Core
    checked: Checked
    name: str
    stored: Set[tuple[str, bool]]
    """Blobs whose files exist, as their rows guarantee; usually only in the installation that exported them."""
    ids: Renewal
    acronym: str = ""
    organization_id: str = ""
    numbers: dict[str, int] = field(default_factory=dict)
    """The last number assigned, by kind."""
    put_back: list[str] = field(default_factory=list)
    """Tasks that were in progress."""
    words: dict[str, str] = field(default_factory=dict)
    """The new number of each message to an order, by its exported one."""

    @property
    def made_at(self) -> datetime:
        return datetime.fromisoformat(self.checked.header["made_at"])

    def write(self, db: Session, spool: BinaryIO) -> OrganizationDocument:
        self.put_back, self.numbers, self.words = [], {}, {}
        spool.seek(0)
        row = self._organization(db)
        self._begin_numbers(db)
        for kind, rows in _by_kind(lines_of(spool)):
            table = METADATA.tables["drones"] if kind == DRONE else BY_NAME[kind].table
            made = map(self._drone, rows) if kind == DRONE else (self._row(BY_NAME[kind], line) for line in rows)
            kept = [row for row in made if kind != "blob" or (row["sha256"], row["sealed"]) in self.stored]
            if kind == "word":
                self._write_words(db, kept)
            elif kept:
                db.execute(insert(table), kept)
        self._count_money(db)
        self._announce_tasks(db)
        self._compare(db)
        db.flush()
        return document_of(db, row).model_copy(update={"warnings": self._warnings()})

    def _organization(self, db: Session) -> Organization:
        organization = self.checked.organization
        request = OrganizationRequest(name=self.name, description=organization["description"])
        row = create_within(db, self.core, request)
        if not db.scalar(select(Organization.id).where(Organization.acronym == organization["acronym"])):
            row.acronym = organization["acronym"]
        row.concurrency, row.max_hand_offs = organization["concurrency"], organization["max_hand_offs"]
        row.last_task = organization["last_task"]
        row.limits, row.thinking = organization["limits"], organization["thinking"]
        for column in ("project_id", "reviewer_id"):
            setattr(row, column, self.ids.of(organization[column]) if organization[column] else None)
        # Nothing may begin before a user has set the keys again; in a mere copy nothing should begin at all.
        row.paused_at = self.core.clock.now()
        db.flush()
        self.organization_id, self.acronym = row.id, row.acronym
        return row

    def _begin_numbers(self, db: Session) -> None:
        """Reserve a number for each order; the lock on the counter blocks other orders until the commit."""
        counter = db.get_one(Counter, ORDERS, with_for_update=True, populate_existing=True)
        self.numbers["order"] = counter.value
        counter.value += self.checked.counts.get("order", 0)
        self.numbers["entry"] = db.scalar(select(func.max(SessionEntry.number))) or 0
        db.flush()

    def _write_words(self, db: Session, rows: list[Line]) -> None:
        """Write messages to orders, which the database numbers."""
        exported = [str(row.pop("number")) for row in rows]
        number = SteeringMessage.number
        written = db.scalars(insert(SteeringMessage).returning(number, sort_by_parameter_order=True), rows)
        self.words |= zip(exported, map(str, written), strict=True)

    def _drone(self, line: Line) -> Line:
        """A drone as a removed one: its name stays with its runs, and no machine can authenticate as it."""
        return {
            "id": self.ids.of(line["id"]),
            "organization_id": self.organization_id,
            "name": line["name"],
            "machine_id": "",
            "public_key": "",
            "labels": {},
            "fixed_labels": {},
            "serves": [],
            "token_hash": hashed(new_secret()),
            "broker_password_hash": hashed(new_secret()),
            "registered_at": self.made_at,
            "removed_at": self.made_at,
        }

    def _row(self, kind: Kind, line: Line) -> Line:
        row = kind.current(line, self.checked.version)
        for column in kind.times:
            row[column] = datetime.fromisoformat(row[column]) if row[column] is not None else None
        self._rename(kind, row)
        if kind.name in self.numbers:
            self.numbers[kind.name] += 1
            row["number"] = self.numbers[kind.name]
        if settle := _SETTLES.get(kind.name):
            settle(self, row)
        return {**row, "organization_id": self.organization_id}

    def _rename(self, kind: Kind, row: Line) -> None:
        """Replace the exported ids with the ids used here, in place."""
        for column, target in kind.refers.items():
            if (value := row[column]) is not None:
                row[column] = self._task_id(value) if target == TASK else self.ids.of(value)
        if "id" in row and "id" not in kind.refers:
            row["id"] = self._task_id(row["id"]) if kind.name == TASK else self.ids.of(row["id"])
        for column, keys in kind.inside.items():
            if isinstance(row[column], dict):
                row[column] = self._inside(row[column], keys)
            elif isinstance(row[column], list):
                row[column] = [self.ids.of(each) for each in row[column] if is_id(each)]

    def _inside(self, value: Line, keys: tuple[str, ...]) -> Line:
        return {key: self.ids.of(each) if key in keys and is_id(each) else each for key, each in value.items()}

    def _task_id(self, old: str) -> str:
        """`PAYM-0007` with the acronym used here; the number stays."""
        return f"{self.acronym}-{old.rpartition('-')[2]}"

    # --- state that cannot be kept -----------------------------------------------------------

    def _settle_session(self, row: Line) -> None:
        """A session named after its task takes the new id of the task."""
        named, *title = row["name"].split(" ", 1)
        acronym = self.checked.organization["acronym"]
        if row["task_id"] and named.startswith(f"{acronym}-") and self._task_id(named) == row["task_id"]:
            row["name"] = " ".join((row["task_id"], *title))[:MAX_SESSION_NAME]

    def _settle_task(self, row: Line) -> None:
        if row["status"] == TaskStatus.IN_PROGRESS:
            row["status"], row["assignee_id"] = TaskStatus.OPEN.value, None
            self.put_back.append(row["id"])

    def _settle_group(self, row: Line) -> None:
        """A race that no order judges yet is decided by a user: its unfinished orders end here."""
        if row["pick"] == "judge" and row["winner_id"] is None and row["judge_id"] is None:
            row["pick"] = "person"

    def _settle_stack(self, row: Line) -> None:
        """The next new work below is another occasion to bring the session up to date."""
        row["due"] = False

    def _settle_order(self, row: Line) -> None:
        if row["status"] not in ENDED:
            row |= facts_columns(OrderFacts(ended=CanceledEnd(code="exported", detail=row["status"])))
            row["status"], row["exit_status"] = "canceled", ExitStatus.CANCELED.value
            row["ended_at"] = self.made_at
        asked = row["pull_request"]
        if asked and asked.get("state") == "asked":
            why = "its organization was exported before the pull request was opened (next: fleet pull-request ORDER)"
            row["pull_request"] = {**asked, "state": "failed", "why": why}

    def _settle_turn(self, row: Line) -> None:
        if row["status"] == TurnStatus.PROCESSING:
            row["status"], row["ended_at"] = TurnStatus.ABORTED.value, self.made_at

    def _settle_batch_row(self, row: Line) -> None:
        """Nothing starts in an imported organization."""
        if row["state"] == "waiting":
            row["state"] = "canceled" if row["order_id"] is None else "submitted"

    def _settle_dispatch(self, row: Line) -> None:
        row["closed_at"] = row["closed_at"] or self.made_at
        row["published_at"] = row["published_at"] or self.made_at

    def _settle_run(self, row: Line) -> None:
        if row["status"] == RunStatus.RUNNING:
            row["status"], row["exit_status"] = RunStatus.PREEMPTED.value, ExitStatus.CANCELED.value
            row["reason"] = "its organization was exported while the run was active"
            row["ended_at"], row["doing"], row["waits_for"] = self.made_at, "", ""

    def _settle_step(self, row: Line) -> None:
        """A message whose number is unknown, as in the first files of this format, is named by no step: then what was
        read is counted.
        """
        body = row["body"]
        if row["kind"] == "user" and body.get("message"):
            row["body"] = {**body, "message": self.words.get(body["message"], "")}
        elif row["kind"] == "comment" and body.get("taken_back"):
            row["body"] = {**body, "taken_back": [self.words[old] for old in body["taken_back"] if old in self.words]}

    def _settle_wait(self, row: Line) -> None:
        row["closed_at"] = row["closed_at"] or self.made_at

    def _settle_budget(self, row: Line) -> None:
        of_all = row["kind"] == "organization"
        row["target_id"] = self.organization_id if of_all else self.ids.of(row["target_id"])

    def _settle_block(self, row: Line) -> None:
        row["closed_at"], row["reported_nusd"] = row["closed_at"] or self.made_at, row["spent_nusd"]

    def _settle_trigger(self, row: Line) -> None:
        self._settle_secret(row, "triggers.sealed_secret")

    def _settle_webhook(self, row: Line) -> None:
        self._settle_secret(row, "webhooks.sealed_secret")

    def _settle_secret(self, row: Line, purpose: Purpose) -> None:
        """Set a random secret that is never disclosed, and disable the trigger or webhook until it gets a new one."""
        made = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        row["sealed_secret"] = self.core.vault.seal_at_rest(made, purpose)
        row["enabled"] = False
        row["last_error"] = "imported without its secret: set one, then enable it"

    def _settle_provider(self, row: Line) -> None:
        row["sealed_key"] = None

    def _settle_project(self, row: Line) -> None:
        row["sealed_git_url"] = None
        removed = row["removed_at"] is not None and not self.core.settings.file_urls_allowed
        if removed and row["git_url"] and parse_git_url(row["git_url"], files_allowed=True).is_file:
            # An agent, or a race that is decided now, may still name the project: no drone may read the directory.
            row["git_url"] = "file:///-"

    def _count_money(self, db: Session) -> None:
        """Count the blocks in the budgets' periods."""
        alive = select(Budget).where(Budget.organization_id == self.organization_id, Budget.removed_at.is_(None))
        for budget in db.scalars(alive).all():
            recount(db, budget, self.core.clock.now())

    def _announce_tasks(self, db: Session) -> None:
        """Add a system comment to each task that was in progress, with the reason for its new state (S-043)."""
        text = "The task was in progress when its organization was exported; its run was not included in the export."
        now = self.core.clock.now()
        for task_id in self.put_back:
            db.add(
                Comment(
                    organization_id=self.organization_id,
                    task_id=task_id,
                    author=SYSTEM,
                    kind="imported",
                    text=f"{text} The task is assigned to the user.",
                    at=now,
                )
            )
        db.flush()

    def _compare(self, db: Session) -> None:
        """Raise FleetFault, which undoes the import, if the totals differ from those of the file."""
        sums = [func.coalesce(func.sum(getattr(Run, name)), 0) for name in SUMMED]
        found = db.execute(select(func.count(), *sums).where(Run.organization_id == self.organization_id)).one()
        expected = self.checked.totals
        if list(map(int, found)) != [expected.runs, *(expected.sums[name] for name in SUMMED)]:
            raise FleetFault("the totals of the imported data differ from those of the file", code="E-IMPORT")

    def _warnings(self) -> list[str]:
        """The steps that a user must take before the organization works here as before."""
        counts = self.checked.counts
        renamed = self.acronym != self.checked.organization["acronym"]
        said = [
            f"the organization is paused (next: fleet organization resume {self.name})",
            f"its tasks are renamed to {self.acronym}-…" if renamed and counts.get(TASK) else "",
            "provider keys were not imported (next: fleet provider edit NAME --api-key-stdin)"
            if counts.get("provider")
            else "",
            "passwords in git URLs were not imported (next: fleet project edit SLUG --git-url URL, where needed)"
            if counts.get("project")
            else "",
            "triggers and webhooks are disabled until they have a new secret"
            if counts.get("trigger") or counts.get("webhook")
            else "",
            f"{len(self.put_back)} tasks that were in progress are assigned to the user" if self.put_back else "",
            "drones and tokens were not imported (next: fleet token add --org "
            f"{self.name}, fleet api-token add --org {self.name})",
        ]
        return [each for each in said if each]


_SETTLES: Mapping[str, Callable[[_Import, Line], None]] = {
    "provider": _Import._settle_provider,
    "project": _Import._settle_project,
    "session": _Import._settle_session,
    TASK: _Import._settle_task,
    "group": _Import._settle_group,
    "order": _Import._settle_order,
    "stack": _Import._settle_stack,
    "turn": _Import._settle_turn,
    "batch_row": _Import._settle_batch_row,
    "dispatch": _Import._settle_dispatch,
    "run": _Import._settle_run,
    "step": _Import._settle_step,
    "wait": _Import._settle_wait,
    "budget": _Import._settle_budget,
    "block": _Import._settle_block,
    "trigger": _Import._settle_trigger,
    "webhook": _Import._settle_webhook,
}


def _by_kind(lines: Iterator[tuple[int, Line]]) -> Iterator[tuple[str, list[Line]]]:
    """The rows in batches of one kind each, in file order."""
    batch: list[Line] = []
    of = ""
    for _, line in lines:
        kind = line.get("kind")
        if batch and (kind != of or len(batch) == BATCH):
            yield of, batch
            batch = []
        if kind in BY_NAME or kind == DRONE:
            of = str(kind)
            batch.append(line["row"])
    if batch:
        yield of, batch


def _is_here(core: Core, organization_id: str) -> bool:
    with core.database.read() as db:
        return db.get(Organization, organization_id) is not None


def _refuse_taken(core: Core, name: str) -> None:
    with core.database.read() as db:
        if db.scalar(select(Organization.id).where(Organization.name == name)):
            raise Conflict(
                f"organization {shown(name)} already exists",
                code="E-ORGANIZATION-NAME",
                why="an import always creates a new organization",
                next="fleet organization import FILE --name ANOTHER_NAME",
            )
