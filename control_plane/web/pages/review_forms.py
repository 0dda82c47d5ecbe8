"""The review of an order's changes on its page: the threads, and the forms that are open."""

from __future__ import annotations

from collections.abc import Sequence

from control_plane.core import Caller, Core
from control_plane.declarations.reviews import ReviewCommentDocument
from control_plane.operations import drafts
from control_plane.operations.access.roles import may
from control_plane.patches.patch import FilePatch
from control_plane.web.diffs.places import MOST_FORMS, CommentForm, place_keyed, place_written
from control_plane.web.pages.changes_address import ChangesAddress


def draft_subject(order_id: str) -> str:
    """Before the key of a place: the draft of a comment there; alone, the draft of the text of the whole review."""
    return f"order:{order_id}:review"


def open_forms(
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
    prefix = f"{draft_subject(address.order)}:"
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
