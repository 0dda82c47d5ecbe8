"""Drafts: texts that a user typed and has not sent yet, kept on the server for all of the user's windows."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from control_plane.contract.declarations.operation import About, NoDoor, Operation
from control_plane.contract.documents.base import Document, Request

MAX_SUBJECT = 100
SUBJECT = About(
    "subject",
    "What the text is for: `order:ID:message`, `order:ID:review`, `task:ID:comment`, `new-order`, or any other key of "
    "letters, digits and . _ : @ -.",
)
NAMES = {"subject": Annotated[str, Field(max_length=MAX_SUBJECT, pattern=r"^[A-Za-z0-9._:@-]+$"), SUBJECT]}
NO_TOOL = NoDoor("drafts belong to the windows in which users type")
NO_COMMAND = NoDoor("a terminal keeps no unsent text; users write longer texts to a file")


class DraftEdit(Request):
    text: str
    version: Annotated[int, About("version", "The version that this text replaces; 0: there was none.")] = Field(
        0, ge=0, le=2**53
    )


class DraftRemoval(Request):
    version: Annotated[
        int | None, About("version", "Only if the draft still has this version.", absent="any version")
    ] = Field(None, ge=0, le=2**53)


class DraftSummary(Document):
    """A draft without its text."""

    subject: str
    version: int
    """0: there is no draft."""
    updated_at: datetime | None


class DraftDocument(DraftSummary):
    text: str


LIST = Operation(
    name="list_drafts",
    role="operator",
    route="GET /drafts",
    answer=list[DraftSummary],
    summary="List your drafts, most recently changed first",
    tool=NO_TOOL,
    command=NO_COMMAND,
)
SHOW = Operation(
    name="show_draft",
    role="operator",
    route="GET /drafts/{subject}",
    names=NAMES,
    answer=DraftDocument,
    summary="Show your draft on a subject",
    more="Without a draft, the text is empty and the version 0.",
    tool=NO_TOOL,
    command=NO_COMMAND,
)
SAVE = Operation(
    name="save_draft",
    role="operator",
    route="PUT /drafts/{subject}",
    names=NAMES,
    errors=(409, 413),
    request=DraftEdit,
    answer=DraftDocument,
    summary="Save your draft on a subject",
    more="If it has changed since `version`, nothing is saved: the 409 has the stored draft in `stored`. The pages "
    "delete a draft when they send its text; without a change, it is deleted after 90 days.",
    in_audit_log=False,
    tool=NO_TOOL,
    command=NO_COMMAND,
)
REMOVE = Operation(
    name="remove_draft",
    role="operator",
    route="DELETE /drafts/{subject}",
    names=NAMES,
    errors=(409,),
    request=DraftRemoval,
    answer=DraftDocument,
    summary="Delete your draft on a subject",
    more="Returns the deleted draft. Deleting a draft that does not exist changes nothing.",
    in_audit_log=False,
    tool=NO_TOOL,
    command=NO_COMMAND,
)
