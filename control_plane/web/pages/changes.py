"""The changes of an order, file by file, with their review."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from control_plane.core import Caller, Core
from control_plane.documents.orders import OrderSummary
from control_plane.operations.access.roles import may
from control_plane.operations.orders import reading
from control_plane.operations.reviews.commenting import list_comments
from control_plane.patches.patch import FilePatch, read_patch
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.diffs.places import MOST_FORMS, TOP, CommentPlace, placed, threads_of
from control_plane.web.diffs.rows import View
from control_plane.web.diffs.shown import FILES, MORE_LINES, DiffOptions, ShownFile, shown_files, shown_part
from control_plane.web.diffs.tree import MOST, tree_of
from control_plane.web.local_page import local_page
from control_plane.web.pages.changes_address import ChangesAddress, opened_files
from control_plane.web.pages.frame import frame_for
from control_plane.web.pages.review_forms import open_forms
from control_plane.web.pages.viewed_files import mark_viewed, viewed_files
from control_plane.web.presentation import title
from control_plane.web.rendering import page, wants_part
from shared.errors import NotFound
from shared.states import ENDED

router = APIRouter(prefix="/orders", include_in_schema=False)


@router.get("/{order_id}/changes")
def changes(  # noqa: PLR0913, PLR0917 - the terms of the address
    request: Request,
    core: CoreDep,
    caller: CallerDep,
    order_id: str,
    view: View = "unified",
    open: Annotated[str, Query(max_length=4000)] = "",
    after: Annotated[int, Query(ge=0, le=10**6)] = 0,
    file: Annotated[int | None, Query(ge=0, le=10**6)] = None,
    comment: Annotated[list[str], Query(max_length=MOST_FORMS)] = [],  # noqa: B006 - FastAPI copies it
    start: Annotated[int, Query(alias="from", ge=0, le=10**8)] = 0,
) -> Response:
    """The whole panel; with `file`, more lines of one file."""
    part = wants_part(request)
    order = reading.order_summary(core, caller, order_id)
    around = frame_for(request, caller, "orders", [f"order:{order.id}"])
    address = ChangesAddress(order.id, view, opened_files(open), after, comment)
    files, why_not = _files(core, caller, order)
    context = {**around, "order": order, "title": title(order), "address": address}
    if file is not None:
        return page("changes/more.html", {**context, **_more(core, caller, files, address, file, start)})
    context |= {**_panel(core, caller, files, address), "why_not": why_not}
    return page("changes/panel.html" if part else "changes/page.html", context)


def _files(core: Core, caller: Caller, order: OrderSummary) -> tuple[list[FilePatch], str]:
    """The files of the order's patch, and if there is none, why."""
    try:
        return read_patch(reading.patch_of(core, caller, order.id)), ""
    except NotFound as error:
        ended = order.status in ENDED
        return [], str(error) if ended else "The changes appear here when the order has ended."


def _panel(core: Core, caller: Caller, files: Sequence[FilePatch], address: ChangesAddress) -> dict[str, Any]:
    marks = viewed_files(core, caller) if may(caller, "operator") else frozenset[str]()
    options = DiffOptions(address.view, address.opened, marks, address.after)
    shown = shown_files(files, options)
    return {
        **_review(core, caller, files, shown, address),
        "files": files,
        "shown": shown,
        "plus": sum(each.plus for each in files),
        "minus": sum(each.minus for each in files),
        "viewed": sum(each.digest in marks for each in files) if marks else 0,
        "tree": tree_of(files),
        "left_out": max(0, len(files) - MOST),
        "on_page": {each.file.index for each in shown},
        "step": FILES,
        "next_files": address.after + FILES if address.after + FILES < len(files) else None,
    }


def _review(
    core: Core, caller: Caller, files: Sequence[FilePatch], shown: Sequence[ShownFile], address: ChangesAddress
) -> dict[str, Any]:
    """The comments, and the forms that are open."""
    comments = list_comments(core, caller, address.order)
    forms = open_forms(core, caller, address, files, comments)
    return {
        "notes": placed(files, shown, threads_of(comments), forms),
        "pending": sum(each.status == "pending" for each in comments),
        "template_place": CommentPlace(0, "", start=1, end=1),
        "commentable": may(caller, "operator"),
        "top": TOP,
    }


def _more(  # noqa: PLR0913, PLR0917 - a panel, and which lines
    core: Core, caller: Caller, files: Sequence[FilePatch], address: ChangesAddress, file: int, start: int
) -> dict[str, Any]:
    if file >= len(files):
        raise NotFound("this file is not among the changes", code="E-HTTP-404", next="reload the page")
    shown = shown_part(files[file], start, MORE_LINES, DiffOptions(address.view))
    return {"each": shown, **_review(core, caller, files, [shown], address)}


@router.post("/{order_id}/changes/viewed")
def set_viewed(  # noqa: PLR0913, PLR0917 - the fields of the form
    core: CoreDep,
    caller: CallerDep,
    order_id: str,
    digest: Annotated[str, Form(max_length=100)] = "",
    viewed: Annotated[str, Form(max_length=10)] = "",
    next: Annotated[str, Form(max_length=8000)] = "",
) -> Response:
    """Mark a file as viewed, or not. Raises NotFound, Forbidden, Invalid."""
    order = reading.order_summary(core, caller, order_id)
    mark_viewed(core, caller, digest, viewed=bool(viewed))
    return RedirectResponse(local_page(next or f"/orders/{order.id}/changes"), 303)
