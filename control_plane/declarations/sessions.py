"""Sessions: chats whose orders continue from each other; list them, look at their trees, change where they continue."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from control_plane.declarations.operation import (
    ADDS,
    READS,
    SETS,
    About,
    ByHand,
    Command,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.declarations.session_documents import (
    CompactDocument,
    HeadDocument,
    SessionDocument,
    SessionSummary,
)
from control_plane.documents.base import Request
from shared.work_order import Approve, Mode

MAX_LISTED = 1000
MAX_SESSION_NAME = 255
MAX_ENTRY = 255
"""Maximum characters of a reference to an entry: its id, its order's id, a label, or `root`."""
SESSION_ID = About("session", "The session's id: 12 hexadecimal characters.", source="sessions:id", metavar="SESSION")
PROJECT = About("project", "The project's slug.", source="projects:slug")
NAME = About("name", "A name for people.")
MODE = About("mode", "The mode of its orders: plan (reads only), build, test, ship or develop.")
APPROVE = About("approve", "Which calls wait for a person: yolo (none), risky or all.", absent="yolo")
ALLOW = About("allow", "Commands that need no approval, as a shell pattern.")
ENTRY = About("entry", "An entry's id, its order's id, a label, or `root`.", metavar="ENTRY")


class SessionFilter(Request):
    model_config = ConfigDict(populate_by_name=True)

    project: Annotated[str | None, About("project", "Only sessions of this project (slug).", absent="all")] = None
    limit: Annotated[int, About("limit", "At most so many, the one with the newest turn first.")] = Field(
        50, ge=1, le=MAX_LISTED
    )
    every: Annotated[bool, About("all", "Also those of tasks and of small services.", flag="--all")] = Field(
        False, alias="all"
    )


class SessionRequest(Request):
    project: Annotated[str, PROJECT]
    name: Annotated[str, NAME] = ""
    mode: Annotated[Mode, MODE] = "build"
    approve: Annotated[Approve | None, APPROVE] = None
    """The approval mode of its orders that set none."""
    allow: Annotated[list[str], ALLOW] = Field(default_factory=list)


class SessionEdit(Request):
    """Only the fields that are set change; they hold for orders that are submitted from then on."""

    name: Annotated[str | None, NAME] = None
    mode: Annotated[Mode | None, MODE] = None
    approve: Annotated[Approve | None, APPROVE] = None
    allow: Annotated[list[str] | None, ALLOW] = None


class SwitchRequest(Request):
    entry: Annotated[str, ENTRY] = Field(max_length=MAX_ENTRY)
    """Where the next turn continues."""


class ForkRequest(Request):
    at: Annotated[
        str | None,
        About("at", "An entry's id, its order's id, a label, or `root`.", absent="the last turn", metavar="ENTRY"),
    ] = Field(None, max_length=MAX_ENTRY)
    name: Annotated[str | None, About("name", "A name for people.", absent="the same")] = None


class LabelRequest(Request):
    entry: Annotated[str, ENTRY] = Field(max_length=MAX_ENTRY)
    text: Annotated[str, About("text", "The label; '' takes it away.")]


class CompactRequest(Request):
    instructions: Annotated[str, About("instructions", "What the summary must keep.")] = ""


NAMES = {"session_id": Annotated[str, Field(max_length=64), SESSION_ID]}
ENTRY_FOR_MODELS = (
    "A turn: the id of its order, the id of its entry (get_session has both) or its label; or root, for the start."
)

LIST = Operation(
    name="list_sessions",
    role="viewer",
    route="GET /sessions",
    errors=(404,),
    run="sessions.reading:list_",
    request=SessionFilter,
    answer=list[SessionSummary],
    summary="Sessions, the one with the newest turn first",
    tool=Tool(
        "list_sessions",
        "List sessions",
        READS,
        "The sessions (chats whose orders go on from each other) of the organization, the one with the newest turn "
        "first.",
        about={"project": "Only sessions of this project (slug). Default: all."},
        defaults={"limit": 20},
    ),
    command=Command(
        "session ls",
        "List sessions, the one with the newest turn first.",
        "fleet session ls --project demo",
        columns=("id", "name", "project", "mode", "turns", "last_activity_at", "running"),
        empty="no sessions yet; every fleet submit without --session begins one",
    ),
)
CREATE = Operation(
    name="create_session",
    role="operator",
    route="POST /sessions",
    status=201,
    errors=(404, 413),
    run="sessions.changing:create",
    request=SessionRequest,
    answer=SessionDocument,
    summary="Begin a session",
    tool=Tool(
        "create_session",
        "Begin a session",
        ADDS,
        "Begin a session on a project: orders that are submitted with its id (submit_order, session) run one after the "
        "other, remember what was said before, and each starts from the last one's commit. For operators.",
        about={
            "project": "Slug of the project that is worked on; list_projects has them.",
            "name": "A name for people. Default: none.",
            "mode": "The mode of its orders: plan (reads only), build, test, ship or develop.",
            "approve": "Which calls of its orders wait for a person: yolo (none), risky, all. Default: yolo.",
            "allow": "Shell patterns of commands that need no approval, such as `npm test*`. Default: none.",
        },
    ),
    command=Command(
        "session new",
        "Begin a session; submit to it with --session.",
        "fleet session new --project demo --name 'The parser'",
        text="session_text:begun_text",
    ),
)
SHOW = Operation(
    name="show_session",
    role="viewer",
    route="GET /sessions/{session_id}",
    names=NAMES,
    errors=(404,),
    run="sessions.reading:show",
    answer=SessionDocument,
    summary="A session with its tree",
    tool=Tool(
        "get_session",
        "Show a session",
        READS,
        "A session with its turns: each with its order's id, prompt, status, response and branch. running is the order "
        "that has to end before the next one begins.",
    ),
    command=Command(
        "session show",
        "Show a session as the tree of its turns.",
        "fleet session show SESSION",
        text="session_text:session_text",
    ),
)
EDIT = Operation(
    name="edit_session",
    role="operator",
    route="PATCH /sessions/{session_id}",
    names=NAMES,
    errors=(404, 413),
    run="sessions.changing:edit",
    request=SessionEdit,
    answer=SessionDocument,
    summary="Change the fields that are given",
    tool=NoDoor("what the orders of a session may do without asking is decided by a person"),
    command=Command(
        "session edit",
        "Change a session; only what is named changes, for orders that are submitted from now on.",
        "fleet session edit SESSION --approve risky",
        text="session_text:session_text",
    ),
)
SWITCH = Operation(
    name="switch_session",
    role="operator",
    route="POST /sessions/{session_id}/switch",
    names=NAMES,
    errors=(404, 409),
    run="sessions.changing:switch",
    request=SwitchRequest,
    answer=SessionDocument,
    summary="Go on from another turn",
    more="409 while an order of the session has not ended. Nothing is lost: the turns that are left stay in the tree.",
    tool=Tool(
        "switch_session",
        "Continue a session from another turn",
        SETS,
        "Let the next order of a session continue from another turn of its tree, with the conversation and the commit "
        "of that turn: to try another way after one that failed. Nothing is lost: the turns that are left stay in the "
        "tree, and get_session shows them. Refused while an order of the session has not ended. To keep both ways, use "
        "fork_session. For operators.",
        about={"entry": ENTRY_FOR_MODELS},
    ),
    command=Command(
        "session switch",
        "Let the next turn continue from another place of the tree; nothing is lost.",
        "fleet session switch SESSION ORDER",
        arguments=("entry",),
        text="session_text:switched_text",
    ),
)
FORK = Operation(
    name="fork_session",
    role="operator",
    route="POST /sessions/{session_id}/fork",
    names=NAMES,
    status=201,
    errors=(404, 409, 413),
    run="sessions.changing:fork",
    request=ForkRequest,
    answer=SessionDocument,
    summary="A new session from a turn",
    more="409 while an order of the session has not ended.",
    tool=Tool(
        "fork_session",
        "Fork a session",
        ADDS,
        "Begin a new session that continues from a turn of this one, which stays as it is: to try several ways side by "
        "side. Submit to the id in the answer (submit_order, session). Refused while an order of the session has not "
        "ended. For operators.",
        about={
            "at": f"{ENTRY_FOR_MODELS} Default: where the next order of the session would continue.",
            "name": "A name for people. Default: that of the session it is forked from.",
        },
    ),
    command=Command(
        "session fork",
        "Begin a new session from a place of this one, which stays as it is.",
        "fleet session fork SESSION --at ORDER",
        text="session_text:forked_text",
    ),
)
LABEL = Operation(
    name="label_entry",
    role="operator",
    route="POST /sessions/{session_id}/labels",
    names=NAMES,
    errors=(404, 413),
    run="sessions.changing:label",
    request=LabelRequest,
    answer=SessionDocument,
    summary="Label a turn",
    tool=NoDoor("labels help people remember turns; a model names a turn by its order's id"),
    command=ByHand("session label", "its sentence says whether a label was set or taken away"),
)
COMPACT = Operation(
    name="compact_session",
    role="operator",
    route="POST /sessions/{session_id}/compact",
    names=NAMES,
    errors=(404, 413),
    run="sessions.changing:compact",
    request=CompactRequest,
    answer=CompactDocument,
    summary="Ask for a compaction",
    more="A running order is told; an idle session keeps it for its next turn.",
    tool=Tool(
        "compact_session",
        "Compact a session",
        SETS,
        "Let a summary stand for the conversation of a session so far, before the next question to its model: to save "
        "tokens before a new subject, or when the context window is nearly full. The order that runs does it; if none "
        "runs, the next one does. told says which. The turns stay in get_session. For operators.",
        about={"instructions": "What the summary must keep, in words for the model. Default: nothing in particular."},
    ),
    command=Command(
        "session compact",
        "Let a summary stand for the conversation so far, before the next question to the model.",
        "fleet session compact SESSION --instructions 'Keep the API'",
        text="session_text:compaction_text",
    ),
)
HEAD = Operation(
    name="show_head",
    role="viewer",
    route="GET /sessions/{session_id}/head",
    names=NAMES,
    errors=(404,),
    run="sessions.reading:head_of",
    answer=HeadDocument,
    summary="The last work, and where it can be had",
    tool=NoDoor("get_session has the branch and the commit of each turn"),
    command=ByHand("session checkout", "it prints git commands, or runs them in a clone"),
)
BUNDLE = Operation(
    name="show_bundle",
    role="viewer",
    route="GET /sessions/{session_id}/bundle",
    names=NAMES,
    errors=(404,),
    run="sessions.reading:bundle_of",
    answer=bytes,
    summary="The last work as a git bundle",
    more="Builds on what the remote had when the order ran.",
    tool=NoDoor("it is a binary file"),
    command=ByHand("session checkout", "it fetches from the bundle where the branch is not on the remote"),
    route_by_hand="it answers with a binary file",
)
