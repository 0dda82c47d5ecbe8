"""Code hosts: comments, reviews and checks at GitHub, GitLab or Gitea start and continue orders."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from control_plane.contract.declarations.operation import READS, SETS_WORK, About, Command, NoDoor, Operation, Tool
from control_plane.contract.documents.base import Document, Request
from shared.code_hosts import HostKind

MAX_LISTED = 1000
NAME = About("code host", "Name of the connection.", source="code_hosts:name")
KIND = About("kind", "The kind of code host.")
PROJECT = About("project", "Slug of the project that its orders work on.", source="projects:slug")
REPOSITORY = About("repository", "The repository there, as OWNER/NAME.", absent="as in the project's git URL")
SECRET = About(
    "secret",
    "Secret that signs its webhooks.",
    absent="generated",
    secret=True,
    input="stdin",
)
MENTION = About("mention", "The word that addresses the fleet in a comment.", absent="@fleet")
POLL = About(
    "read every",
    "Seconds between two readings without a webhook; 0 = read only after webhooks.",
    unit="s",
    flag="--poll",
    absent="300",
)
STRANGERS = About(
    "strangers",
    "What a mention by a user who is not mapped gets: silent = nothing, reply = one sentence per thread.",
    absent="silent",
)
FOLLOW_UPS = About(
    "follow-ups",
    "Most orders per pull request that failed checks and conflicts start.",
    flag="--follow-ups",
    absent="3",
)
DRONE = About(
    "drone",
    "Drone whose workstation has the login.",
    absent="any drone",
    source="drones:name",
    none="none",
)
ENABLED = About("state", "Enable or disable it.", flag="--on/--off")
LOGIN = About("login", "The user's login at the code host.")
USER = About("user", "E-mail address of the user in the fleet.", source="users:email")
Strangers = Literal["silent", "reply"]
Login = Annotated[str, Field(max_length=128), LOGIN]
Seconds = Annotated[int, Field(ge=0, le=86_400), POLL]
FollowUps = Annotated[int, Field(ge=0, le=100), FOLLOW_UPS]


class CodeHostRequest(Request):
    name: Annotated[str, NAME]
    kind: Annotated[HostKind, KIND]
    project: Annotated[str, PROJECT]
    repository: Annotated[str | None, REPOSITORY] = None
    secret: Annotated[str | None, SECRET] = Field(None, repr=False)
    mention: Annotated[str, MENTION] = "@fleet"
    poll_seconds: Seconds = 300
    strangers: Annotated[Strangers, STRANGERS] = "silent"
    max_follow_ups: FollowUps = 3
    drone: Annotated[str | None, DRONE] = None


class CodeHostEdit(Request):
    """Only the fields that are set change."""

    secret: Annotated[str | None, SECRET] = Field(None, repr=False)
    mention: Annotated[str | None, MENTION] = None
    poll_seconds: Annotated[int | None, Field(ge=0, le=86_400), POLL] = None
    strangers: Annotated[Strangers | None, STRANGERS] = None
    max_follow_ups: Annotated[int | None, Field(ge=0, le=100), FOLLOW_UPS] = None
    drone: Annotated[str | None, DRONE] = None
    enabled: Annotated[bool | None, ENABLED] = None


class HostUserRequest(Request):
    user: Annotated[str, USER]


class HostEventFilter(Request):
    limit: Annotated[int, About("limit", "Maximum number of results, newest first.")] = Field(100, ge=1, le=MAX_LISTED)


class HostUserDocument(Document):
    login: str
    user: str
    """E-mail address; `not a member` if the user left the organization, and starts nothing any more."""


class CodeHostDocument(Document):
    id: str
    name: Annotated[str, NAME]
    kind: Annotated[str, KIND]
    project: Annotated[str, PROJECT]
    repository: Annotated[str, REPOSITORY]
    url: Annotated[str, About("webhook address")]
    """Where the code host sends its webhooks."""
    secret: Annotated[str | None, About("secret")]
    """Shown once, when it is generated."""
    mention: Annotated[str, MENTION]
    poll_seconds: Annotated[int, POLL]
    strangers: Annotated[str, STRANGERS]
    max_follow_ups: Annotated[int, FOLLOW_UPS]
    drone: Annotated[str | None, DRONE]
    enabled: Annotated[bool, ENABLED]
    users: Annotated[list[HostUserDocument], About("users", shows="login user")]
    last_at: Annotated[datetime | None, About("last read")]
    last_error: Annotated[str, About("last error")]
    unwritten: Annotated[int, About("comments not written")]
    """Comments of the fleet that the host refused so often that they were given up."""
    write_error: Annotated[str, About("why")]
    created_at: datetime


class HostEventDocument(Document):
    """Something that happened at the code host, and what became of it."""

    at: Annotated[datetime, About("at")]
    kind: Annotated[Literal["comment", "review", "check", "conflict", "pull"], About("kind")]
    place: Annotated[str, About("place")]
    """`issues/3` or `pulls/4`."""
    author: Annotated[str, About("author")]
    outcome: Annotated[str, About("outcome")]
    order: Annotated[str | None, About("order")]


class CodeHostAnswer(Document):
    """The answer to the sender of a webhook."""

    outcome: Literal["noted", "ignored"]
    why: str


NAMES = {"name": Annotated[str, NAME]}
OF_USER = {**NAMES, "login": Login}
WORK_FROM_OUTSIDE = NoDoor("it decides who can start work from outside, so only people set it up")

ADD = Operation(
    name="add_code_host",
    role="admin",
    route="POST /code-hosts",
    status=201,
    errors=(404, 409, 412, 413),
    request=CodeHostRequest,
    answer=CodeHostDocument,
    summary="Connect a project to its repository at a code host",
    more="The answer contains the secret for its webhooks, which is shown only once.",
    tool=WORK_FROM_OUTSIDE,
    command=Command(
        "hosts add",
        "Connect a project to its repository at GitHub, GitLab or Gitea.",
        "fleet hosts add shop --kind github --project shop",
        arguments=("name",),
        then="  next  fleet hosts map {name} LOGIN USER",
    ),
)
LIST = Operation(
    name="list_code_hosts",
    role="viewer",
    route="GET /code-hosts",
    answer=list[CodeHostDocument],
    summary="List the connections to code hosts",
    tool=Tool(
        "list_code_hosts",
        "List the connections to code hosts",
        READS,
        "List the repositories at GitHub, GitLab or Gitea whose comments, reviews and failed checks start and continue "
        "work orders. users are the logins that may start work, last_error says why the host could not be read. "
        "list_host_events shows what happened there.",
    ),
    command=Command(
        "hosts ls",
        "List the connections to code hosts.",
        "fleet hosts ls",
        columns=("name", "enabled", "kind", "repository", "project", "last_at", "last_error"),
        empty="no code hosts; fleet hosts add creates one",
    ),
)
SHOW = Operation(
    name="show_code_host",
    role="viewer",
    route="GET /code-hosts/{name}",
    names=NAMES,
    errors=(404,),
    answer=CodeHostDocument,
    summary="Show a connection to a code host",
    tool=NoDoor("list_code_hosts returns every field"),
    command=Command("hosts show", "Show a connection to a code host.", "fleet hosts show shop"),
)
EDIT = Operation(
    name="edit_code_host",
    role="admin",
    route="PATCH /code-hosts/{name}",
    names=NAMES,
    errors=(404, 413),
    request=CodeHostEdit,
    answer=CodeHostDocument,
    summary="Change the given fields",
    tool=WORK_FROM_OUTSIDE,
    command=Command("hosts edit", "Change a connection to a code host.", "fleet hosts edit shop --strangers reply"),
)
REMOVE = Operation(
    name="remove_code_host",
    role="admin",
    route="DELETE /code-hosts/{name}",
    names=NAMES,
    errors=(404,),
    answer=CodeHostDocument,
    summary="Remove a connection to a code host; its orders are kept",
    tool=NoDoor("removal is left to people"),
    command=Command(
        "hosts rm",
        "Remove a connection to a code host; its orders are kept.",
        "fleet hosts rm shop",
        confirm="Remove code host {name}?",
        done="code host {name} removed",
    ),
)
MAP = Operation(
    name="map_host_user",
    role="admin",
    route="PUT /code-hosts/{name}/users/{login}",
    names=OF_USER,
    errors=(404, 412, 413),
    request=HostUserRequest,
    answer=CodeHostDocument,
    summary="Let an account of the code host start work as a user of the fleet",
    more="The user needs the operator role whenever work is started.",
    tool=WORK_FROM_OUTSIDE,
    command=Command(
        "hosts map",
        "Let an account of the code host start work as a user of the fleet.",
        "fleet hosts map shop alice alice@example.org",
        arguments=("user",),
        done="{name}: the account may start work",
    ),
)
UNMAP = Operation(
    name="unmap_host_user",
    role="admin",
    route="DELETE /code-hosts/{name}/users/{login}",
    names=OF_USER,
    errors=(404,),
    answer=CodeHostDocument,
    summary="Stop an account of the code host from starting work",
    tool=WORK_FROM_OUTSIDE,
    command=Command(
        "hosts unmap",
        "Stop an account of the code host from starting work.",
        "fleet hosts unmap shop alice",
        done="{name}: the account no longer starts work",
    ),
)
EVENTS = Operation(
    name="list_host_events",
    role="viewer",
    route="GET /code-hosts/{name}/events",
    names=NAMES,
    errors=(404,),
    request=HostEventFilter,
    answer=list[HostEventDocument],
    summary="List what happened at a code host, newest first",
    more="Each event names what became of it, and the order that it started or that received it.",
    tool=Tool(
        "list_host_events",
        "List what happened at a code host",
        READS,
        "List the comments, reviews, failed checks, conflicts and closed pull requests that were read from a code "
        "host, newest first. outcome says what became of each, order is the work order that it started or that "
        "received it; get_order shows it.",
        defaults={"limit": 20},
    ),
    command=Command(
        "hosts events",
        "List what happened at a code host, newest first.",
        "fleet hosts events shop",
        defaults={"limit": 20},
        columns=("at", "kind", "place", "author", "outcome", "order"),
        empty="nothing happened there yet that concerns the fleet",
    ),
)
SYNC = Operation(
    name="sync_code_host",
    role="operator",
    route="POST /code-hosts/{name}/sync",
    names=NAMES,
    errors=(404, 409),
    answer=CodeHostDocument,
    summary="Read a code host now, and try again to write what it refused",
    tool=Tool(
        "sync_code_host",
        "Read a code host now",
        SETS_WORK,
        "Read a code host now instead of at the next webhook or interval, and try again to write the comments that it "
        "refused. What is found may start work orders; list_host_events shows it. Requires the operator role.",
    ),
    command=Command(
        "hosts sync",
        "Read a code host now, and try again to write what it refused.",
        "fleet hosts sync shop",
        done="{name} is read now",
        then="  next  fleet hosts events {name}",
    ),
)
