"""Modes: the tools and the instructions of an order's agent; five are built in, others are defined by name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from control_plane.contract.declarations.operation import READS, About, Command, NoDoor, Operation, Tool
from control_plane.contract.documents.base import Document, Request
from shared.work_order import ThinkingLevel

MAX_TEXT = 20_000
NAME = About("mode", "The mode's name, as --mode takes it.", source="modes:name")
PROJECT = About("project", "Project that has the mode (slug).", absent="all projects", source="projects:slug")
TEXT = About("text", "What the agent is told in this mode: how it works, and what its answer contains.")
TOOLS = About(
    "tools",
    "Tool that the agent may call: file_read, grep, glob, web_fetch, file_write, editor, shell, spawn, "
    "mcp__SERVER__TOOL or extension:NAME.",
    absent="all",
    flag="--tool",
)
READ_ONLY = About("read-only", "The agent changes no files: it has only tools that read.", flag="--read-only")
THINKING = About(
    "thinking", "How much models think in this mode, where order, session and agent say nothing.", absent="not set here"
)


class ModeRequest(Request):
    """A mode. A built-in one can be given a thinking level, and nothing else."""

    project: Annotated[str | None, PROJECT] = None
    text: Annotated[str, TEXT] = Field("", max_length=MAX_TEXT)
    tools: Annotated[list[str], TOOLS] = Field(default_factory=list, max_length=100)
    read_only: Annotated[bool, READ_ONLY] = False
    thinking: Annotated[ThinkingLevel | None, THINKING] = None


class ModeFilter(Request):
    project: Annotated[str | None, PROJECT] = None


class ModeDocument(Document):
    name: Annotated[str, NAME]
    project: Annotated[str | None, PROJECT]
    text: Annotated[str, TEXT]
    tools: Annotated[list[str], TOOLS]
    read_only: Annotated[bool, READ_ONLY]
    thinking: Annotated[str | None, THINKING]
    built_in: Annotated[bool, About("built in")]


NAMES = {"name": Annotated[str, Field(max_length=64), NAME]}
PEOPLE_DECIDE = NoDoor("modes decide which tools agents have, which is left to people")

LIST = Operation(
    name="list_modes",
    role="viewer",
    route="GET /modes",
    errors=(404,),
    request=ModeFilter,
    answer=list[ModeDocument],
    summary="List the modes, built-in ones first",
    more="With a project, those that its orders can have.",
    tool=Tool(
        "list_modes",
        "List modes",
        READS,
        "List the modes that submit_order, create_session and create_task take: built-in ones, and those defined for "
        "all projects or for one. tools are those that the agent may call; empty means all.",
    ),
    command=Command(
        "mode ls",
        "List the modes, built-in ones first.",
        "fleet mode ls --project demo",
        columns=("name", "project", "read_only", "thinking", "tools"),
    ),
)
SET = Operation(
    name="set_mode",
    role="admin",
    route="PUT /modes/{name}",
    names=NAMES,
    errors=(404,),
    request=ModeRequest,
    answer=ModeDocument,
    summary="Define a mode, or replace its definition",
    more="Orders submitted from now on have it; each keeps the definition that it began with.",
    tool=PEOPLE_DECIDE,
    command=Command(
        "mode add",
        "Define a mode for --mode, or replace its definition; orders submitted from now on have it.",
        "fleet mode add docs --text 'Write documentation. Change no code.' --tool file_read --tool editor",
    ),
)
REMOVE = Operation(
    name="remove_mode",
    role="admin",
    route="DELETE /modes/{name}",
    names=NAMES,
    errors=(404,),
    request=ModeFilter,
    answer=ModeDocument,
    summary="Remove the definition of a mode; orders that have it keep it",
    tool=PEOPLE_DECIDE,
    command=Command(
        "mode rm",
        "Remove a mode; orders that have it keep it.",
        "fleet mode rm docs",
        confirm="Remove mode {name}?",
        done="mode {name} removed",
    ),
)
