"""Several orders side by side: what they were asked, what they cost, and what they changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.responses import Response

from control_plane.contract.declarations.races import RaceDocument
from control_plane.contract.documents.orders import OrderSummary, StepDocument
from control_plane.core import Caller, Core
from control_plane.core.patches.patch import FilePatch, read_patch
from control_plane.operations import races
from control_plane.operations.orders import reading
from control_plane.operations.orders.step_reading import StepRange, read_steps
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.conversation.view import checks_of
from control_plane.web.diffs.code_text import code_html
from control_plane.web.diffs.labels import path_key, shown_path
from control_plane.web.diffs.shown import COLOURED_NODES, NODES, DiffOptions, ShownFile, shown_part
from control_plane.web.diffs.words import changed_words
from control_plane.web.pages.frame import frame_for
from control_plane.web.rendering import page, wants_part
from shared.errors import NotFound, Refused

router = APIRouter(include_in_schema=False)
_MOST = 6
_OFFERED = 50
_MOST_FILES = 60
"""Files that have a tab."""


@router.get("/compare")
def compare(
    request: Request, core: CoreDep, caller: CallerDep, file: Annotated[str, Query(max_length=8)] = ""
) -> Response:
    """Up to six orders, or those of a race, and the changes of one file in each."""
    asked = ComparisonAddress.of(request.query_params, file)
    found = _race_compared(core, caller, asked)
    asked = asked.of_race(found) if found is not None else asked
    part = wants_part(request)
    topics = [f"order:{each}" for each in asked.ids]
    around = frame_for(request, caller, "orders", topics)
    race = found.race if found is not None else None
    context = {**around, **_comparison(core, caller, asked), "topics": topics, "asked": asked, "race": race}
    exists = found is not None or any(column.order for column in context["columns"]) or not (asked.ids or asked.race)
    return page("compare/columns.html" if part else "compare/page.html", context, 200 if exists else 404)


@dataclass(frozen=True)
class ComparedOrder:
    """One column. Without `order`, the order does not exist, or belongs to another organization."""

    id: str
    """As the address writes it."""
    without: str
    """The address of the page without this column."""
    order: OrderSummary | None = None
    prompt: Markup | None = None
    """None if it is the same as in the first column."""
    checks: Sequence[StepDocument] = ()
    files: Sequence[FilePatch] = ()
    steps: int = 0
    diff: ShownFile | None = None
    """The chosen file."""
    same_as: str = ""
    """Title of the earlier column that changes the chosen file in the same way."""

    @property
    def plus(self) -> int:
        return sum(each.plus for each in self.files)

    @property
    def minus(self) -> int:
        return sum(each.minus for each in self.files)


@dataclass(frozen=True)
class FileTab:
    """A file that one of the orders changes."""

    name: str
    key: str
    address: str
    orders: int
    """How many orders change it."""


@dataclass(frozen=True)
class ComparisonAddress:
    """What the address asks for."""

    ids: Sequence[str]
    file: str = ""
    more: int = 0
    """Orders beyond the most that are compared."""
    race: str = ""
    """The race whose orders are compared."""

    @classmethod
    def of(cls, query: QueryParams, file: str) -> ComparisonAddress:
        named = [*query.getlist("order"), *query.getlist("orders")]
        ids = list(dict.fromkeys(id.strip()[:64] for each in named for id in each.split(",") if id.strip()))
        return cls(ids[:_MOST], file, max(0, len(ids) - _MOST), query.get("race", "")[:64])

    def of_race(self, document: RaceDocument) -> ComparisonAddress:
        """The same for all orders of a race."""
        return replace(self, ids=[order.id for order in document.orders], more=0, race=document.race.id)

    def address(self, ids: Sequence[str], file: str) -> str:
        if self.race and list(ids) == list(self.ids):
            return f"/compare?{urlencode([('race', self.race), *([('file', file)] if file else [])])}"
        return f"/compare?{urlencode([*(('order', each) for each in ids), *([('file', file)] if file else [])])}"


def _race_compared(core: Core, caller: Caller, asked: ComparisonAddress) -> RaceDocument | None:
    """The race that the address names, if there is one."""
    if not asked.race:
        return None
    try:
        return races.show(core, caller, asked.race)
    except Refused:
        return None


def _comparison(core: Core, caller: Caller, asked: ComparisonAddress) -> dict[str, Any]:
    columns = [_ColumnReader(core, caller, asked).column(each) for each in asked.ids]
    tabs = _tabs(columns, asked)
    chosen = asked.file or (tabs[0].key if tabs else "")
    return {
        "columns": _with_diffs(_with_prompts(columns), chosen),
        "tabs": tabs[:_MOST_FILES],
        "left_out": max(0, len(tabs) - _MOST_FILES),
        "chosen": next((each for each in tabs if each.key == chosen), None),
        "offered": _offered(core, caller, columns) if len(columns) < _MOST and not asked.race else [],
        "here": asked.address(asked.ids, asked.file),
    }


@dataclass(frozen=True)
class _ColumnReader:
    core: Core
    caller: Caller
    asked: ComparisonAddress

    def column(self, id: str) -> ComparedOrder:
        without = self.asked.address([each for each in self.asked.ids if each != id], self.asked.file)
        try:
            order = reading.order_summary(self.core, self.caller, id)
        except NotFound:
            return ComparedOrder(id, without)
        last = read_steps(self.core, self.caller, order.id, StepRange(limit=1, newest=True))
        return ComparedOrder(
            id,
            without,
            order=order,
            checks=checks_of(self.core, self.caller, order),
            files=self._files(order),
            steps=last[0].seq if last else 0,
        )

    def _files(self, order: OrderSummary) -> list[FilePatch]:
        try:
            return read_patch(reading.patch_of(self.core, self.caller, order.id))
        except NotFound:
            return []


def _with_prompts(columns: Sequence[ComparedOrder]) -> list[ComparedOrder]:
    """Each prompt, with what differs from the first one marked."""
    present = [each for each in columns if each.order]
    return [_with_prompt(each, present[0]) if each.order else each for each in columns]


def _with_prompt(column: ComparedOrder, first: ComparedOrder) -> ComparedOrder:
    assert column.order is not None
    assert first.order is not None
    prompt, other = column.order.prompt, first.order.prompt
    if column is not first and prompt == other:
        return column
    words = changed_words(other, prompt) if prompt != other else None
    return replace(column, prompt=code_html(prompt, words[1] if words else ()))


def _with_diffs(columns: Sequence[ComparedOrder], key: str) -> list[ComparedOrder]:
    """The chosen file in each column, once for columns that change it in the same way."""
    seen: dict[str, str] = {}
    found = []
    lines = NODES // COLOURED_NODES // max(1, len(columns))
    for each in columns:
        file = next((file for file in each.files if path_key(file.path) == key), None)
        if file is None or each.order is None:
            found.append(each)
        elif file.digest in seen:
            found.append(replace(each, same_as=seen[file.digest]))
        else:
            seen[file.digest] = each.id
            found.append(replace(each, diff=shown_part(file, 0, lines, DiffOptions())))
    return found


def _tabs(columns: Sequence[ComparedOrder], asked: ComparisonAddress) -> list[FileTab]:
    """The files that any of the orders changes, those of most orders first."""
    counts = Counter(path for each in columns for path in {file.path for file in each.files})
    paths = sorted(counts, key=lambda path: (-counts[path], path))
    keys = {path: path_key(path) for path in paths}
    return [FileTab(shown_path(each), keys[each], asked.address(asked.ids, keys[each]), counts[each]) for each in paths]


def _offered(core: Core, caller: Caller, columns: Sequence[ComparedOrder]) -> list[OrderSummary]:
    """Orders that could be added: newest first, those of the same project."""
    known = {each.order.id for each in columns if each.order}
    project = next((each.order.project for each in columns if each.order), None)
    try:
        listed = reading.list_orders(core, caller, project=project, limit=_OFFERED)
    except NotFound:
        # The project was removed.
        listed = reading.list_orders(core, caller, limit=_OFFERED)
    return [each for each in listed if each.id not in known]
