"""Validate an exported organization line by line; an error names the number of the first invalid line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO, NoReturn, get_args

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import JSON, BigInteger, Boolean, Column, DateTime, Float, Integer, String

from control_plane.contract.validation.checks import check_name, check_organization, shown
from control_plane.contract.validation.time_zones import check_zone
from control_plane.core.lookups.groups import GroupKind
from control_plane.money.spending.budget_amounts import check_limit
from control_plane.operations.transfer.kinds import (
    BY_NAME,
    DRONE,
    END,
    HEADER,
    OLDEST,
    ORGANIZATION,
    RUN_SETTINGS,
    TASK,
    VERSION,
    Kind,
    TransferTotals,
    is_id,
    plain_type,
)
from control_plane.operations.transfer.settings import Import, check_settings
from shared.amounts import MOST_USD, charged, dollars
from shared.budgets import BudgetKind, Per
from shared.errors import Conflict, FleetError, Invalid
from shared.limits import checked_limits
from shared.work_order import ModeDefinition, ThinkingLevel

MAX_LINE = 16 * 1024 * 1024
"""Bytes; a run's longest step is far shorter."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_ACRONYM = re.compile(r"[A-Z][A-Z0-9]{0,15}")
Line = dict[str, Any]


@dataclass
class Checked:
    """The contents of a whole file, from one pass over it."""

    header: Line
    organization: Line
    counts: dict[str, int] = field(default_factory=dict)
    totals: TransferTotals = field(default_factory=TransferTotals)
    blobs: set[tuple[str, bool]] = field(default_factory=set)
    """The SHA-256 of each blob, and whether it is sealed."""

    @property
    def version(self) -> int:
        return int(self.header[HEADER])


class LineRefused(Exception):
    """The reason why a line is invalid; the message completes 'line N …'."""


def check(spool: BinaryIO, to: Import) -> Checked:
    """Validate the whole file and summarize its contents.

    Raises Invalid with the line's number, Conflict for a version that is newer or too old.
    """
    return _Check(to).whole(spool)


def lines_of(spool: BinaryIO) -> Iterator[tuple[int, Line]]:
    """Number and object of each line, from the current position. Raises Invalid for a line that is no JSON object."""
    number = 0
    while raw := spool.readline(MAX_LINE + 1):
        number += 1
        if len(raw) > MAX_LINE:
            _refuse(number, f"is longer than {MAX_LINE // 1024 // 1024} MB")
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            _refuse(number, "is not JSON")
        if not isinstance(line, dict):
            _refuse(number, "is not a JSON object")
        yield number, line


class _Check:
    """The state of one pass over the file."""

    def __init__(self, to: Import) -> None:
        self._to = to
        self._known: dict[str, set[str]] = {name: set() for name in (*BY_NAME, DRONE)}
        self._checked: Checked | None = None
        self._end: Line | None = None

    def whole(self, spool: BinaryIO) -> Checked:
        number = 0
        for number, line in lines_of(spool):
            try:
                self._take(number, line)
            except LineRefused as why:
                _refuse(number, str(why))
            except Conflict:
                raise
            except FleetError as error:
                _refuse(number, f"cannot be imported: {error.what}")
        if self._checked is None or self._end is None:
            raise Invalid(
                "the file ends before its last line" if number else "the file is empty",
                code="E-IMPORT-CUT",
                why=f"none of its {number} lines marks the end",
                next="export it again: fleet organization export NAME --output FILE",
            )
        return self._checked

    def _take(self, number: int, line: Line) -> None:
        if self._end is not None:
            raise LineRefused("follows the end line")
        if number == 1:
            self._header(line)
        elif line.get("kind") == END:
            self._ends(line)
        elif set(line) != {"kind", "row"} or not isinstance(line["row"], dict) or not isinstance(line["kind"], str):
            raise LineRefused("must have exactly a kind and a row")
        elif number == 2:
            self._organization(line["kind"], line["row"])
        else:
            self._row(line["kind"], line["row"])

    def _header(self, line: Line) -> None:
        version = line.get(HEADER)
        if type(version) is not int or not is_id(line.get("organization_id")):
            raise LineRefused(f"is not the header of an exported organization: {HEADER!r} expected")
        if version > VERSION:
            raise Conflict(
                f"the file was written by a newer version: its format is {version}; the newest supported is {VERSION}",
                code="E-IMPORT-NEWER",
                next="upgrade this installation, then import again",
            )
        if version < OLDEST:
            raise Conflict(
                f"the file was written by an older version: its format is {version}; the oldest supported is {OLDEST}",
                code="E-IMPORT-OLDER",
                next="upgrade the installation that wrote it to the version before this one, then export again",
            )
        _time(line.get("made_at"), "made_at")
        self._checked = Checked(line, {})

    def _organization(self, kind: str, line: Line) -> None:
        # The first files of this format have no reviewer.
        line.setdefault("reviewer_id", None)
        if kind != "organization" or set(line) != set(ORGANIZATION) or self._checked is None:
            raise LineRefused("is not the organization's own line")
        check_organization(str(line["name"]))
        if not isinstance(line["acronym"], str) or not _ACRONYM.fullmatch(line["acronym"]):
            raise LineRefused("has an invalid acronym")
        for name in ("last_task", "concurrency", "max_hand_offs"):
            if not _fits(Integer(), line[name]) or line[name] < 0:
                raise LineRefused(f"has an invalid {name}: expected a number of at least 0 and below 2^31")
        for name in ("project_id", "reviewer_id"):
            if line[name] is not None and not is_id(line[name]):
                raise LineRefused(f"has an invalid {name}: expected an id")
        _text(line["description"], "description")
        _run_settings(line)
        self._checked.organization = line
        self._checked.counts["organization"] = 1

    def _row(self, name: str, line: Line) -> None:
        checked = self._checked
        assert checked is not None
        if name == DRONE:
            self._drone(line)
        elif (kind := BY_NAME.get(name)) is None:
            raise LineRefused(f"has an unknown kind: {shown(name)}")
        else:
            line = kind.current(line, checked.version)
            self._columns(kind, line)
            if kind.name in RUN_SETTINGS:
                _run_settings(line)
            self._references(kind, line)
            self._settings(kind, line)
            if meaning := _MEANINGS.get(kind.name):
                meaning(self, line)
        checked.counts[name] = checked.counts.get(name, 0) + 1
        if name == "run":
            checked.totals.add(line)
        if name == "blob":
            checked.blobs.add((line["sha256"], line["sealed"]))

    def _drone(self, line: Line) -> None:
        if set(line) != {"id", "name"} or not is_id(line["id"]):
            raise LineRefused("is not a valid drone line")
        check_name("drone", str(line["name"]))
        self._new(DRONE, line["id"])

    def _columns(self, kind: Kind, line: Line) -> None:
        """Check that the line has exactly the columns of its kind, each with a valid value."""
        missing = {column.name for column in kind.columns} - set(line)
        strange = set(line) - {column.name for column in kind.columns}
        if missing or strange:
            what = f"has no {min(missing)}" if missing else f"has an unknown field: {shown(min(strange))}"
            raise LineRefused(what)
        for column in kind.columns:
            _value(column, line[column.name])
            if shape := kind.shapes.get(column.name):
                _must(_has_shape(shape, line[column.name]), column)
        if kind.states is not None and line["status"] not in set(kind.states):
            raise LineRefused(f"has an unknown status: {shown(str(line['status']))}")

    def _references(self, kind: Kind, line: Line) -> None:
        for column, target in kind.refers.items():
            value = line[column]
            if value is None:
                continue
            if target != TASK and not is_id(value):
                raise LineRefused(f"has an invalid {column}: expected an id")
            if column in kind.needed and value not in self._known[target]:
                raise LineRefused(f"refers to a {target} that does not precede it: {shown(str(value))}")
            if target == TASK and value not in self._known[TASK] and kind.name not in {"session", TASK}:
                raise LineRefused(f"refers to a task that does not precede it: {shown(str(value))}")
        if "id" in line:
            self._new(kind.name, line["id"])

    def _settings(self, kind: Kind, line: Line) -> None:
        try:
            check_settings(kind.name, line, self._to)
        except ValidationError as error:
            field = ".".join(map(str, error.errors()[0]["loc"]))
            raise LineRefused(f"has an invalid {shown(field)}: {error.errors()[0]['msg']}") from None
        except ValueError as error:
            raise LineRefused(f"has invalid limits: {error}") from None

    def _new(self, kind: str, row_id: Any) -> None:
        if kind != TASK and not is_id(row_id):
            raise LineRefused("has an invalid id")
        if row_id in self._known[kind]:
            raise LineRefused(f"repeats the {kind} {shown(str(row_id))}")
        self._known[kind].add(str(row_id))

    def _ends(self, line: Line) -> None:
        checked = self._checked
        assert checked is not None
        if line.get("counts") != checked.counts:
            raise LineRefused(f"has wrong line counts; counted here: {_difference(line.get('counts'), checked.counts)}")
        if line.get("totals") != checked.totals.document:
            raise LineRefused("has totals that differ from the sums of the runs")
        self._end = line

    # --- checks by kind --------------------------------------------------------------------

    def _order(self, line: Line) -> None:
        """What a drone would be sent must be readable there."""
        own = line["mode_definition"]
        if own is None:
            return
        try:
            ModeDefinition.model_validate(own)
        except ValidationError as error:
            raise LineRefused("has an invalid mode definition") from error
        if not isinstance(own.get("read_only"), bool):
            raise LineRefused("has an invalid mode definition")

    def _entry(self, line: Line) -> None:
        if line["kind"] in {"label", "branch_summary"} and not isinstance(line["data"].get("text"), str):
            raise LineRefused("has an invalid data: expected a text")

    def _task(self, line: Line) -> None:
        acronym = self._checked.organization["acronym"] if self._checked else ""
        if line["id"] != f"{acronym}-{line['number']:04d}":
            raise LineRefused(f"has an id that does not match its number: {shown(str(line['id']))}")

    def _budget(self, line: Line) -> None:
        if line["kind"] not in set(get_args(BudgetKind)) - {"user"} or line["per"] not in get_args(Per):
            raise LineRefused("has an unknown kind or period of budgets")
        check_limit(dollars(line["limit_nusd"]))
        if not is_id(line["target_id"]):
            raise LineRefused("has an invalid target_id: expected an id")
        check_zone(line["zone"])

    def _block(self, line: Line) -> None:
        amounts = line["granted_nusd"], line["spent_nusd"]
        if min(amounts) < 0 or max(amounts) > charged(MOST_USD):
            raise LineRefused(f"has an invalid amount: expected 0 to {MOST_USD:,.0f} USD")

    def _group(self, line: Line) -> None:
        if line["kind"] not in get_args(GroupKind) or (line["kind"] == "batch") != (line["parallel"] is not None):
            raise LineRefused("has an invalid kind or parallel")

    def _batch_row(self, line: Line) -> None:
        states = {"waiting", "refused", "canceled"} if line["order_id"] is None else {"waiting", "submitted"}
        if line["state"] not in states:
            raise LineRefused("has a state that does not fit its order")


_MEANINGS: Mapping[str, Callable[[_Check, Line], None]] = {
    "order": _Check._order,
    "entry": _Check._entry,
    TASK: _Check._task,
    "budget": _Check._budget,
    "block": _Check._block,
    "group": _Check._group,
    "batch_row": _Check._batch_row,
}


def _run_settings(line: Line) -> None:
    """Settings that each new order reads."""
    levels = (None, *get_args(ThinkingLevel))
    try:
        checked_limits(line["limits"])
    except (ValueError, TypeError, AttributeError) as error:
        raise LineRefused(f"has invalid limits: {error}") from error
    if line["thinking"] not in levels:
        raise LineRefused(f"has an invalid thinking level: {shown(str(line['thinking']))}")


def _value(column: Column[Any], value: Any) -> None:
    """Return if the column can hold the value, by rules that are the same for both databases."""
    if value is None:
        _must(bool(column.nullable), column)
        return
    type_ = plain_type(column.type)
    if isinstance(type_, DateTime):
        _time(value, column.name)
    elif isinstance(type_, JSON):
        _must(isinstance(value, dict | list), column)
        _storable(value, column.name)
    elif isinstance(type_, String):
        _text(value, column.name)
        _must(type_.length is None or len(value) <= type_.length, column)
    else:
        _must(_fits(type_, value), column)


def _has_shape(shape: TypeAdapter[Any], value: Any) -> bool:
    try:
        shape.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def _fits(type_: Any, value: Any) -> bool:
    if isinstance(type_, Boolean):
        return isinstance(value, bool)
    if isinstance(type_, Integer):
        return type(value) is int and abs(value) < (2**63 if isinstance(type_, BigInteger) else 2**31)
    return isinstance(type_, Float) and type(value) in {int, float} and math.isfinite(value)


def _must(holds: bool, column: Column[Any]) -> None:
    if not holds:
        raise LineRefused(f"has an invalid {column.name}")


def _text(value: Any, name: str) -> None:
    if not isinstance(value, str) or _UNSTORABLE.search(value):
        raise LineRefused(f"has an invalid {name}: expected text")


def _time(value: Any, name: str) -> None:
    try:
        aware = datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        aware = False
    if not aware:
        raise LineRefused(f"has an invalid {name}: expected a time with a time zone")


def _storable(value: Any, name: str) -> None:
    """Return if PostgreSQL can store the JSON value: without NUL characters and unpaired surrogates."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            _text(part, name)
        elif isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list):
            waiting += part


def _difference(said: Any, found: Mapping[str, int]) -> str:
    said = said if isinstance(said, dict) else {}
    kinds = [name for name in {*said, *found} if said.get(name) != found.get(name)]
    return ", ".join(f"{shown(str(name))} {found.get(name, 0)}" for name in sorted(kinds)[:3])


def _refuse(number: int, why: str) -> NoReturn:
    raise Invalid(
        f"line {number} {why}",
        code="E-IMPORT-LINE",
        why="nothing was imported",
        next="export the file again: fleet organization export NAME --output FILE",
    )
