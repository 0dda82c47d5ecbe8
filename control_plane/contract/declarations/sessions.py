"""Sessions: chats whose orders continue from each other; list them, look at their trees, change where they continue."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from control_plane.contract.declarations.operation import (
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
from control_plane.contract.declarations.run_settings import LIMITS, LIMITS_FOR_MODELS
from control_plane.contract.declarations.session_documents import (
    CompactDocument,
    HeadDocument,
    SessionDocument,
    SessionSummary,
)
from control_plane.contract.documents.base import ModeName, Request
from control_plane.contract.documents.limits import LimitsGiven
from shared.work_order import Approve, ThinkingLevel

MAX_LISTED = 1000
MAX_SESSION_NAME = 255
MAX_ENTRY = 255
"""Maximum characters of a reference to an entry: its id, its order's id, a label, or `root`."""
SESSION_ID = About("session", "The session's id, or a unique prefix of it.", source="sessions:id", metavar="SESSION")
PROJECT = About("project", "The project's slug.", source="projects:slug")
NAME = About("name", "Display name.")
MODE = About(
    "mode",
    "Mode of its orders: plan (read-only), build, test, ship, develop or one of your own.",
    source="modes:name",
)
APPROVE = About("approve", "Calls that require approval: yolo (none), risky or all.", absent="yolo")
THINKING = About(
    "thinking",
    "How much the model of its orders thinks: off, minimal, low, medium, high or xhigh.",
    absent="the provider's setting",
)
RESTACK = About(
    "restack", "Bring it up to date when a session that it builds on has new work.", flag="--restack/--no-restack"
)
ALLOW = About("allow", "Shell pattern of commands that need no approval.", absent="none", none="--no-allow")
ENTRY = About("entry", "An entry's id, its order's id, a label, or `root`.", metavar="ENTRY")


class SessionFilter(Request):
    model_config = ConfigDict(populate_by_name=True)

    project: Annotated[
        str | None, About("project", "Only sessions of this project (slug).", absent="all", source="projects:slug")
    ] = None
    text: Annotated[
        str | None, About("text", "Only sessions whose title or prompts contain all of these words.", absent="all")
    ] = Field(None, min_length=1, max_length=200)
    limit: Annotated[int, About("limit", "Maximum number of results, most recent turn first.")] = Field(
        50, ge=1, le=MAX_LISTED
    )
    every: Annotated[bool, About("all", "Include sessions of tasks and services.", flag="--all")] = Field(
        False, alias="all"
    )
    mine: Annotated[bool, About("mine", "Only sessions that you started.", flag="--mine")] = False


class SessionRequest(Request):
    project: Annotated[str, PROJECT]
    name: Annotated[str, NAME] = ""
    mode: Annotated[ModeName, MODE] = "build"
    approve: Annotated[Approve | None, APPROVE] = None
    """The approval mode of its orders that set none."""
    thinking: Annotated[ThinkingLevel | None, THINKING] = None
    allow: Annotated[list[str], ALLOW] = Field(default_factory=list)
    limits: Annotated[dict[str, Any], LIMITS, LimitsGiven] = Field(default_factory=dict)


class SessionEdit(Request):
    """Only the given fields change, for orders that are submitted from now on."""

    name: Annotated[str | None, NAME] = None
    mode: Annotated[ModeName | None, MODE] = None
    approve: Annotated[Approve | None, APPROVE] = None
    thinking: Annotated[ThinkingLevel | None, THINKING] = None
    restack: Annotated[bool | None, RESTACK] = None
    allow: Annotated[list[str] | None, ALLOW] = None
    limits: Annotated[dict[str, Any] | None, LIMITS, LimitsGiven] = None


class SwitchRequest(Request):
    entry: Annotated[str, ENTRY] = Field(max_length=MAX_ENTRY)
    """Where the next turn continues."""
    summarize: Annotated[
        bool,
        About(
            "summarize",
            "Let the next turn begin with a summary of the branch that is left; the turn pays for it.",
            flag="--summarize",
        ),
    ] = False


class ForkRequest(Request):
    at: Annotated[
        str | None,
        About("at", "An entry's id, its order's id, a label, or `root`.", absent="the last turn", metavar="ENTRY"),
    ] = Field(None, max_length=MAX_ENTRY)
    name: Annotated[str | None, About("name", "Display name.", absent="the original session's")] = None


class LabelRequest(Request):
    entry: Annotated[str, ENTRY] = Field(max_length=MAX_ENTRY)
    text: Annotated[str, About("text", "The label; '' removes it.")]


class CompactRequest(Request):
    instructions: Annotated[str, About("instructions", "What the summary must keep.")] = ""


NAMES = {"session_id": Annotated[str, Field(max_length=64), SESSION_ID]}
ENTRY_FOR_MODELS = (
    "The turn: its order's id, its entry's id (get_session has both) or its label; `root` is the start of the session."
)

LIST = Operation(
    name="list_sessions",
    role="viewer",
    route="GET /sessions",
    errors=(404,),
    request=SessionFilter,
    answer=list[SessionSummary],
    summary="List sessions, most recent turn first",
    tool=Tool(
        "list_sessions",
        "List sessions",
        READS,
        "List the sessions of the organization, most recent turn first. A session is a chat: each of its orders "
        "continues from the one before.",
        defaults={"limit": 20},
    ),
    command=Command(
        "session ls",
        "List sessions, most recent turn first.",
        "fleet session ls --project demo",
        columns=("id", "title", "project", "owner", "mode", "turns", "last_activity_at", "running"),
        empty="no sessions yet; fleet submit without --session starts one",
    ),
)
CREATE = Operation(
    name="create_session",
    role="operator",
    route="POST /sessions",
    status=201,
    errors=(404, 413),
    request=SessionRequest,
    answer=SessionDocument,
    summary="Start a session",
    tool=Tool(
        "create_session",
        "Start a session",
        ADDS,
        "Start a session on a project. Orders submitted with its id (submit_order, argument session) run one at a "
        "time, share one conversation, and each starts from the previous one's commit. Requires the operator role.",
        about={
            "allow": "Shell patterns of commands that need no approval, such as `npm test*`. Default: none.",
            "limits": LIMITS_FOR_MODELS,
        },
    ),
    command=Command(
        "session new",
        "Start a session; submit orders to it with --session.",
        "fleet session new --project demo --name 'The parser'",
    ),
)
SHOW = Operation(
    name="show_session",
    role="viewer",
    route="GET /sessions/{session_id}",
    names=NAMES,
    errors=(404,),
    answer=SessionDocument,
    summary="Show a session with its tree",
    tool=Tool(
        "get_session",
        "Show a session",
        READS,
        "Show a session with its turns: each has its order's id, prompt, status, response and branch. running is the "
        "order that must end before the next one begins.",
    ),
    command=Command(
        "session show",
        "Show a session as the tree of its turns.",
        "fleet session show SESSION",
    ),
)
EDIT = Operation(
    name="edit_session",
    role="operator",
    route="PATCH /sessions/{session_id}",
    names=NAMES,
    errors=(404, 413),
    request=SessionEdit,
    answer=SessionDocument,
    summary="Change the given fields",
    tool=NoDoor("only people decide what a session's orders may do without approval"),
    command=Command(
        "session edit",
        "Change a session; only the given options change, for orders submitted from now on.",
        "fleet session edit SESSION --approve risky",
    ),
)
SWITCH = Operation(
    name="switch_session",
    role="operator",
    route="POST /sessions/{session_id}/switch",
    names=NAMES,
    errors=(404, 409),
    request=SwitchRequest,
    answer=SessionDocument,
    summary="Continue from another turn",
    more="409 while an order of the session has not ended. The turns that it moves away from stay in the tree.",
    tool=Tool(
        "switch_session",
        "Continue a session from another turn",
        SETS,
        "Make the next order of a session continue from another turn of its tree, with that turn's conversation and "
        "commit, for example to try another approach after a failure. Nothing is lost: the turns that it moves away "
        "from stay in the tree, where get_session shows them. Fails with 409 while an order of the session has not "
        "ended. To continue from both turns, use fork_session. Requires the operator role.",
        about={
            "entry": ENTRY_FOR_MODELS,
            "summarize": "true: the next turn begins with a summary of the branch that is left, which its model writes "
            "first. Default: false.",
        },
    ),
    command=Command(
        "session switch",
        "Continue the session from another turn of its tree; no turn is lost.",
        "fleet session switch SESSION ORDER",
        arguments=("entry",),
    ),
)
FORK = Operation(
    name="fork_session",
    role="operator",
    route="POST /sessions/{session_id}/fork",
    names=NAMES,
    status=201,
    errors=(404, 409, 413),
    request=ForkRequest,
    answer=SessionDocument,
    summary="Fork a session at a turn",
    more="409 while an order of the session has not ended.",
    tool=Tool(
        "fork_session",
        "Fork a session",
        ADDS,
        "Start a new session that continues from a turn of this one, for example to compare several approaches. This "
        "session does not change. Submit orders to the returned id (submit_order, argument session). Fails with 409 "
        "while an order of this session has not ended. Requires the operator role.",
        about={
            "at": f"{ENTRY_FOR_MODELS} Default: the turn that the session's next order would continue from.",
        },
    ),
    command=Command(
        "session fork",
        "Start a new session from a turn of this one, which does not change.",
        "fleet session fork SESSION --at ORDER",
    ),
)
LABEL = Operation(
    name="label_entry",
    role="operator",
    route="POST /sessions/{session_id}/labels",
    names=NAMES,
    errors=(404, 413),
    request=LabelRequest,
    answer=SessionDocument,
    summary="Label a turn",
    tool=NoDoor("labels are for people; a model refers to a turn by its order's id"),
    command=ByHand("session label", "its output says whether the label was set or removed"),
)
COMPACT = Operation(
    name="compact_session",
    role="operator",
    route="POST /sessions/{session_id}/compact",
    names=NAMES,
    errors=(404, 413),
    request=CompactRequest,
    answer=CompactDocument,
    summary="Request a compaction",
    more="A running order compacts before its next question to the model, an idle session when its next turn begins.",
    tool=Tool(
        "compact_session",
        "Compact a session",
        SETS,
        "Replace the conversation of a session so far with a summary, before the next question to its model: to save "
        "tokens before a new topic, or when the context window is nearly full. The running order does it, or the next "
        "one if none is running; told says which. get_session still shows all turns. Requires the operator role.",
    ),
    command=Command(
        "session compact",
        "Replace the conversation so far with a summary, before the next question to the model.",
        "fleet session compact SESSION --instructions 'Keep the API'",
    ),
)
HEAD = Operation(
    name="show_head",
    role="viewer",
    route="GET /sessions/{session_id}/head",
    names=NAMES,
    errors=(404,),
    answer=HeadDocument,
    summary="Show the latest work and where to fetch it",
    tool=NoDoor("get_session has the branch and the commit of each turn"),
    command=ByHand("session checkout", "it prints git commands, or runs them in a clone"),
)
BUNDLE = Operation(
    name="show_bundle",
    role="viewer",
    route="GET /sessions/{session_id}/bundle",
    names=NAMES,
    errors=(404,),
    answer=bytes,
    summary="Download the latest work as a git bundle",
    more="Requires the commits that the remote had when the order ran.",
    tool=NoDoor("it is a binary file"),
    command=ByHand("session checkout", "it fetches from the bundle if the branch is not on the remote"),
    route_by_hand="it returns a binary file",
)
