"""Project memory: notes that agents propose for later orders, and that users keep or refuse."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from control_plane.contract.declarations.operation import READS, About, Command, NoDoor, Operation, Tool
from control_plane.contract.documents.base import Document, Request

MemoryState = Literal["proposed", "kept", "refused"]
"""Only kept notes are in the prompts of orders."""
MAX_LISTED = 1000
ID = About("note", "The note's id.", source="memory:id")
TEXT = About("text", "The note, in one line.")
WHY = About("why", "Why it is worth keeping.", absent="no reason")
PROJECT = About("project", "Slug of its project.", absent="all projects", source="projects:slug")
STATE = About("state", "proposed, kept or refused.")


class MemoryRequest(Request):
    text: Annotated[str, TEXT] = Field(max_length=20_000)
    why: Annotated[str, WHY] = Field("", max_length=20_000)
    project: Annotated[str | None, PROJECT] = None


class MemoryEdit(Request):
    """Only the given fields change."""

    text: Annotated[str | None, TEXT] = Field(None, max_length=20_000)
    why: Annotated[str | None, WHY] = Field(None, max_length=20_000)


class MemoryFilter(Request):
    project: Annotated[
        str | None, About("project", "Only notes of this project (slug).", absent="all", source="projects:slug")
    ] = None
    state: Annotated[MemoryState | None, About("state", "Only notes in this state.", absent="all but refused")] = None
    limit: Annotated[int, About("limit", "Maximum number of results, newest first.")] = Field(
        MAX_LISTED, ge=1, le=MAX_LISTED
    )


class MemoryDocument(Document):
    id: Annotated[str, ID]
    state: Annotated[str, STATE]
    project: Annotated[str | None, PROJECT]
    text: Annotated[str, TEXT]
    why: Annotated[str, WHY]
    order: Annotated[str | None, About("order", "The order whose agent proposed it.", absent="written by a user")]
    created_at: Annotated[datetime, About("created", "When it was proposed or written.")]
    decided_at: Annotated[datetime | None, About("decided", "When it was kept or refused.", absent="not yet")]
    decided_by: Annotated[str | None, About("decided by", "Who kept or refused it.", absent="not decided")]


NAMES = {"note_id": Annotated[str, Field(max_length=64), ID]}
BY_PEOPLE = NoDoor("a note becomes part of prompts only if a user agrees to it")

ADD = Operation(
    name="add_memory",
    role="operator",
    route="POST /memory",
    status=201,
    errors=(404, 409, 413),
    request=MemoryRequest,
    answer=MemoryDocument,
    summary="Add a note, which is kept at once",
    more="Kept notes are in the system prompt of later orders of the project, or of all orders without a project.",
    tool=BY_PEOPLE,
    command=Command(
        "memory add",
        "Add a note to the prompts of later orders.",
        "fleet memory add 'Run the tests with make test' --project shop",
        arguments=("text",),
    ),
)
LIST = Operation(
    name="list_memory",
    role="viewer",
    route="GET /memory",
    errors=(404,),
    request=MemoryFilter,
    answer=list[MemoryDocument],
    summary="List the notes for later orders, newest first",
    tool=Tool(
        "list_memory",
        "List the notes of a project",
        READS,
        "List the notes that agents proposed for later orders with the tool remember, and those that users wrote. Kept "
        "notes are in the system prompt of later orders of their project, or of all projects. Users keep or refuse "
        "them: fleet memory accept ID, fleet memory refuse ID.",
        defaults={"limit": 100},
    ),
    command=Command(
        "memory ls",
        "List the notes for later orders.",
        "fleet memory ls --project shop",
        columns=("id", "state", "project", "text"),
        empty="no notes; agents propose them with the tool remember, and fleet memory add creates one",
    ),
)
SHOW = Operation(
    name="show_memory",
    role="viewer",
    route="GET /memory/{note_id}",
    names=NAMES,
    errors=(404,),
    answer=MemoryDocument,
    summary="Show a note",
    tool=NoDoor("list_memory returns every field"),
    command=Command("memory show", "Show a note.", "fleet memory show ID"),
)
ACCEPT = Operation(
    name="accept_memory",
    role="operator",
    route="POST /memory/{note_id}/accept",
    names=NAMES,
    errors=(404, 409),
    answer=MemoryDocument,
    summary="Keep a proposed note",
    more="409 if the notes of its project, or of the organization, would exceed their limit.",
    tool=BY_PEOPLE,
    command=Command("memory accept", "Keep a proposed note: later orders have it.", "fleet memory accept ID"),
)
REFUSE = Operation(
    name="refuse_memory",
    role="operator",
    route="POST /memory/{note_id}/refuse",
    names=NAMES,
    errors=(404, 409),
    answer=MemoryDocument,
    summary="Refuse a proposed note",
    more="The same note is not proposed again.",
    tool=BY_PEOPLE,
    command=Command("memory refuse", "Refuse a proposed note.", "fleet memory refuse ID"),
)
EDIT = Operation(
    name="edit_memory",
    role="operator",
    route="PATCH /memory/{note_id}",
    names=NAMES,
    errors=(404, 409, 413),
    request=MemoryEdit,
    answer=MemoryDocument,
    summary="Change a note",
    tool=BY_PEOPLE,
    command=Command("memory edit", "Change a note; its state stays.", "fleet memory edit ID --text 'Run make check'"),
)
REMOVE = Operation(
    name="remove_memory",
    role="operator",
    route="DELETE /memory/{note_id}",
    names=NAMES,
    errors=(404,),
    answer=MemoryDocument,
    summary="Delete a note",
    tool=BY_PEOPLE,
    command=Command(
        "memory rm",
        "Delete a note. Later orders no longer have it.",
        "fleet memory rm ID",
        confirm="Delete note {note_id}?",
        done="note {note_id} deleted",
    ),
)
