"""The changes of an order, file by file, with their review."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from control_plane.contract.declarations.drafts import DraftEdit
from control_plane.contract.declarations.reviews import ReviewCommentDocument
from control_plane.contract.documents.orders import OrderSummary
from control_plane.contract.validation.stale_writes import StaleWrite
from control_plane.core import Caller, Core
from control_plane.core.patches.patch import FilePatch, read_patch
from control_plane.operations import drafts
from control_plane.operations.access.roles import may
from control_plane.operations.orders import changes as reported
from control_plane.operations.orders import reading
from control_plane.operations.orders.changes import Report, Scope
from control_plane.operations.reviews.commenting import conversation_comments
from control_plane.web.access import CallerDep, CoreDep, is_https
from control_plane.web.destinations import local_page
from control_plane.web.diffs.following import Follower
from control_plane.web.diffs.labels import section_id
from control_plane.web.diffs.places import (
    MOST_FORMS,
    TOP,
    CommentForm,
    CommentPlace,
    PlacedComments,
    Thread,
    place_keyed,
    place_written,
    placed,
    threads_of,
)
from control_plane.web.diffs.rows import View
from control_plane.web.diffs.shown import FILES, MORE_LINES, DiffOptions, ShownFile, shown_files, shown_part
from control_plane.web.diffs.tree import MOST, NODES_PER_FILE, tree_of
from control_plane.web.pages.changes_address import ChangesAddress, opened_files
from control_plane.web.pages.frame import frame_for
from control_plane.web.presentation import title
from control_plane.web.rendering import page, wants_part
from shared.errors import Invalid, NotFound
from shared.states import ENDED, OrderStatus

router = APIRouter(prefix="/orders", include_in_schema=False)
VIEW = "changes_view"
"""The cookie with the view that was chosen last in this browser."""
YEAR_S = 365 * 86400


@dataclass(frozen=True)
class _Changes:
    """The diff that is shown."""

    scope: Scope
    files: Sequence[FilePatch]
    report: Report | None
    earlier: Sequence[str]
    """The turns before it that have work."""
    why_not: str = ""
    """Why there are no files; empty: nothing changed."""


@router.get("/{order_id}/changes")
def changes(  # noqa: PLR0913, PLR0917 - the terms of the address
    request: Request,
    core: CoreDep,
    caller: CallerDep,
    order_id: str,
    view: View | None = None,
    scope: Scope | None = None,
    w: Annotated[str, Query(max_length=1)] = "",
    filter: Annotated[str, Query(max_length=200)] = "",
    open: Annotated[str, Query(max_length=4000)] = "",
    after: Annotated[int, Query(ge=0, le=10**6)] = 0,
    file: Annotated[str, Query(max_length=30)] = "",
    comment: Annotated[list[str], Query(max_length=MOST_FORMS)] = [],  # noqa: B006 - FastAPI copies it
    start: Annotated[int, Query(alias="from", ge=0, le=10**8)] = 0,
) -> Response:
    """The whole panel; with `file`, more lines of one file."""
    part = wants_part(request)
    order = reading.order_summary(core, caller, order_id)
    around = frame_for(request, caller, "orders", [f"changes:{order.id}"])
    chosen: View = view or ("split" if request.cookies.get(VIEW) == "split" else "unified")
    found = _changes(core, caller, order, scope)
    asked = found.scope if scope else None
    address = ChangesAddress(order.id, chosen, opened_files(open), after, comment, asked, bool(w), filter.strip())
    context = {**around, "order": order, "title": title(order), "address": address, "found": found}
    if file:
        return page("changes/more.html", {**context, **_more(core, caller, found, address, file, start)})
    context |= _panel(core, caller, found, address)
    response = page("changes/panel.html" if part else "changes/page.html", context)
    if view is not None and not part:
        secure = is_https(core, request.scope)
        response.set_cookie(VIEW, view, max_age=YEAR_S, httponly=True, samesite="lax", secure=secure)
    return response


def _changes(core: Core, caller: Caller, order: OrderSummary, scope: Scope | None) -> _Changes:
    """The diff of a scope, and if there is none, why."""
    known = reported.reports_of(core, caller, order.id)
    chosen, report = known.of(scope)
    if report is None or report.sha256 is None:
        return _Changes(chosen, (), report, known.earlier, _why_nothing(order, report, chosen))
    try:
        return _Changes(chosen, read_patch(reported.patch_in(core, report)), report, known.earlier)
    except NotFound as error:
        return _Changes(chosen, (), None, known.earlier, str(error))


def _why_nothing(order: OrderSummary, report: Report | None, scope: Scope) -> str:
    """Why there is nothing to show, in one sentence; empty if nothing changed."""
    if report is not None and report.withheld:
        return _WITHHELD[report.withheld]
    if order.status in ENDED:
        unknown = "Only a drone of this version reports the changes of a whole branch."
        return "" if report is not None else unknown if scope == "branch" else f"The order has no patch: {order.reason}"
    if order.status in {OrderStatus.RUNNING, OrderStatus.AWAITING_APPROVAL, OrderStatus.CANCELING}:
        return "The drone reports what the agent changes after each step."
    return "The changes appear here once the agent has made some."


_WITHHELD = {
    "secret": "What changed contains what looks like a secret. The order asks before it is delivered.",
    "size": "What changed is too large to be shown while the order runs. It appears when the order has ended.",
}


def _panel(core: Core, caller: Caller, found: _Changes, address: ChangesAddress) -> dict[str, Any]:
    marks = _viewed_files(core, caller) if may(caller, "operator") else frozenset[str]()
    files = [each for each in found.files if address.filter.lower() in each.path.lower()]
    taken = NODES_PER_FILE * min(len(files), MOST)
    options = DiffOptions(address.view, address.opened, marks, address.after, address.without_space, taken)
    shown = shown_files(files, options)
    review = _review(core, caller, found, shown, address)
    notes: PlacedComments = review["notes"]
    pages = {file.index: place // FILES * FILES for place, file in enumerate(files)}
    return {
        **review,
        **_settled(notes, address, pages, {each.file.index for each in shown}),
        "why_not": found.why_not,
        "withheld": _WITHHELD.get(found.report.withheld, "") if found.report else "",
        "files": files,
        "shown": shown,
        "plus": sum(each.plus for each in files),
        "minus": sum(each.minus for each in files),
        "viewed": sum(each.digest in marks for each in files) if marks else 0,
        "tree": tree_of(files, marks, {index: len(threads) for index, threads in notes.in_files.items()}),
        "left_out": max(0, len(files) - MOST),
        "pages": pages,
        "step": FILES,
        "next_files": address.after + FILES if address.after + FILES < len(files) else None,
    }


def _review(
    core: Core, caller: Caller, found: _Changes, shown: Sequence[ShownFile], address: ChangesAddress
) -> dict[str, Any]:
    """The comments of the conversation, and the forms that are open."""
    comments = conversation_comments(core, caller, address.order)
    forms = _open_forms(core, caller, address, found.files, comments)
    return {
        "notes": placed(shown, threads_of(comments), forms, _follower(core, caller, found, comments, address.order)),
        "pending": sum(each.status == "pending" for each in comments),
        "template_place": CommentPlace(0, "", start=1, end=1),
        "commentable": may(caller, "operator"),
        "top": TOP,
    }


def _follower(
    core: Core, caller: Caller, found: _Changes, comments: Sequence[ReviewCommentDocument], order_id: str
) -> Follower:
    commented = [each for each in found.earlier if any(comment.order == each for comment in comments)]
    since = found.earlier[found.earlier.index(commented[0]) :] if commented else ()
    turns = reported.patch_since(core, caller, order_id, since) if since else ()
    return Follower(order_id, found.scope == "branch", {each.path: each for each in found.files}, turns)


def _settled(
    notes: PlacedComments, address: ChangesAddress, pages: Mapping[int, int], on_page: set[int]
) -> dict[str, Any]:
    """How many of the comments that were sent are settled, and for each one that is not, the address of the next."""
    in_order: list[tuple[int | None, Thread]] = [(None, each) for each in notes.elsewhere]
    in_order += [(index, each) for index in sorted(notes.in_files) for each in notes.in_files[index]]
    sent = [(index, each) for index, each in in_order if each.comment.status != "pending"]
    places = {each.comment.id: index for index, each in sent if not each.is_settled}
    addresses = [f"{_page_of(index, address, pages, on_page)}#comment-{id}" for id, index in places.items()]
    following = [*addresses[1:], *addresses[:1]] if len(addresses) > 1 else []
    return {
        "sent": len(sent),
        "settled": len(sent) - len(places),
        "first_unsettled": addresses[0] if addresses else "",
        "next_unsettled": dict(zip(places, following, strict=False)),
    }


def _page_of(index: int | None, address: ChangesAddress, pages: Mapping[int, int], on_page: set[int]) -> str:
    """The address of the page with this file; empty for this page."""
    if index is None or index in on_page:
        return ""
    if index in pages:
        return address(after=pages[index] or "")
    return address(filter="", after=index // FILES * FILES or "")


def _more(  # noqa: PLR0913, PLR0917 - a panel, and which lines
    core: Core, caller: Caller, found: _Changes, address: ChangesAddress, section: str, start: int
) -> dict[str, Any]:
    file = next((each for each in found.files if section_id(each) == section), None)
    if file is None:
        raise NotFound("this file is not among the changes", code="E-HTTP-404", next="reload the page")
    options = DiffOptions(address.view, without_space=address.without_space)
    shown = shown_part(file, start, MORE_LINES, options)
    return {"each": shown, **_review(core, caller, found, [shown], address)}


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
    _mark_viewed(core, caller, digest, viewed=bool(viewed))
    return RedirectResponse(local_page(next or f"/orders/{order.id}/changes"), 303)


# --- the review on the page: the forms that are open ----------------------------------------------


def _draft_subject(order_id: str) -> str:
    """Before the key of a place: the draft of a comment there; alone, the draft of the text of the whole review."""
    return f"order:{order_id}:review"


def _open_forms(
    core: Core,
    caller: Caller,
    address: ChangesAddress,
    files: Sequence[FilePatch],
    comments: Sequence[ReviewCommentDocument],
) -> list[CommentForm]:
    """The forms that the address asks for, and those in which the caller typed something without adding it."""
    if not may(caller, "operator"):
        return []
    known = {(each.path, each.text.strip()) for each in comments if each.status == "pending"}
    prefix = f"{_draft_subject(address.order)}:"
    subjects = [each.subject for each in drafts.list_drafts(core, caller) if each.subject.startswith(prefix)]
    found: dict[str, CommentForm] = {}
    for subject in subjects[:MOST_FORMS]:
        place = place_keyed(subject.removeprefix(prefix), files)
        text = drafts.show(core, caller, subject).text
        # The draft of a comment that was just added is deleted by the page a moment later.
        if place and text.strip() and (place.path, text.strip()) not in known:
            found[place.id] = CommentForm(place, text)
    for each in address.comment[:MOST_FORMS]:
        if place := place_written(each, files):
            found.setdefault(place.id, CommentForm(place))
    return list(found.values())


# --- which files a user has marked as viewed ------------------------------------------------------
#
# They are kept with the user's drafts, in one text: the digest of each file's change, newest first. So a file stays
# viewed in the next turn if its change is the same, and is not viewed any more once it differs.

_VIEWED = "viewed-files"
_MOST_MARKS = 4000
"""The oldest marks go first; a draft holds 64 KB."""
_ATTEMPTS = 5
_DIGEST = re.compile("[0-9a-f]{12}")


def _viewed_files(core: Core, caller: Caller) -> frozenset[str]:
    """The digests of the changes that the caller has seen."""
    return frozenset(drafts.show(core, caller, _VIEWED).text.split())


def _mark_viewed(core: Core, caller: Caller, digest: str, *, viewed: bool) -> None:
    """Set or remove the mark.

    Raises Forbidden for a viewer, Invalid, and StaleWrite if other windows of the user do the same without end.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        known = drafts.show(core, caller, _VIEWED)
        if not _DIGEST.fullmatch(digest):
            raise Invalid("this is no digest of a file's change", code="E-TEXT", next="reload the page")
        others = [each for each in known.text.split() if each != digest]
        marks = [digest, *others][:_MOST_MARKS] if viewed else others
        try:
            drafts.save(core, caller, _VIEWED, DraftEdit(text=" ".join(marks), version=known.version))
        except StaleWrite:
            if attempt == _ATTEMPTS:
                raise
        else:
            return
