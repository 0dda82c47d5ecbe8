"""What an operation is: one value that says who may call it, with what, what it answers, and through which doors.

The HTTP route, the MCP tool, the command and the client's call are derived from it, by `derived_routes`,
`derived_tools`, `derived_commands` and the client. No server module is imported here, because the command line also
reads declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from operator import getitem
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from control_plane.contract.documents.base import Request

Role = Literal["admin", "operator", "viewer"]
RANKS: Mapping[Role, int] = {"viewer": 0, "operator": 1, "admin": 2}
"""A role has all rights of those with a lower rank."""

NOUNS = (
    "agents",
    "attention",
    "audit",
    "code_hosts",
    "drones",
    "orders",
    "graphs",
    "races",
    "batches",
    "steering",
    "plans",
    "pools",
    "reviews",
    "drafts",
    "inbox",
    "organizations",
    "projects",
    "memory",
    "profiles",
    "providers",
    "budgets",
    "prices",
    "costs",
    "limits",
    "modes",
    "pull_requests",
    "schedules",
    "server",
    "task_runs",
    "tasks",
    "retention",
    "sessions",
    "tokens",
    "triggers",
    "users",
    "webhooks",
)
"""The modules next to this one, in the order in which their operations are listed."""
LONGEST = 3600.0
"""Seconds for the answer of an operation that goes through a large database, which takes minutes."""


@dataclass(frozen=True)
class About:
    """The description of a field for people.

    `Annotated[str | None, About("branch", "Branch that work starts from.")]`
    """

    label: str
    """Shown before the value, and above its column."""
    help: str = ""
    """One sentence: in help, in forms, in the OpenAPI document, to MCP clients."""
    unit: str = ""
    absent: str = ""
    """The meaning of no value: `the remote's default branch`."""
    source: str = ""
    """The source of the possible values: `providers:name` is the name in the list of providers; `agents:name|user` has
    `user` besides.
    """
    choices: tuple[str, ...] = ()
    """The possible values of a field whose type is plain text."""
    secret: bool = False
    """Never an argument: the command line reads it from a variable or from stdin."""
    flag: str = ""
    """The option on the command line, if it differs from the field's name; further names follow after a space. A switch
    has both of its sides: `--on/--off`.
    """
    metavar: str = ""
    slashes: bool = False
    """Its values may contain slashes, as names of models do; only for the last name in a path."""
    none: str = ""
    """How a change removes the value: a word (`none`), or for a list or mapping a flag (`--no-labels`)."""
    shows: str = ""
    """For a nested document, the fields of it that people see; a table has only the first."""
    input: Literal["", "stdin", "file", "duration"] = ""
    """How it is typed: `stdin` takes `-` for it, `file` a file's name or `-`, `duration` seconds or `30m`."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        described: dict[str, Any] = handler(schema)
        return {**described, "description": self.help} if self.help and handler.mode == "validation" else described


@dataclass(frozen=True)
class Effect:
    """The effect of a call on the fleet, as MCP's hints; clients use them to decide whether to ask their user."""

    reads: bool = False
    destroys: bool = False
    """It overwrites, stops or removes something."""
    repeatable: bool = False
    """A repeated call changes nothing more."""
    begins_work: bool = False
    """It causes agents to run commands in a repository."""


READS = Effect(reads=True, repeatable=True)
ADDS = Effect()
ADDS_WORK = Effect(begins_work=True)
SETS = Effect(repeatable=True)
SETS_WORK = Effect(repeatable=True, begins_work=True)
OVERWRITES = Effect(destroys=True, repeatable=True)
ENDS = Effect(destroys=True, repeatable=True)


@dataclass(frozen=True)
class Tool:
    """The MCP tool of an operation. `description` is written for a model: what it does, and what to call next."""

    name: str
    title: str
    effect: Effect
    description: str
    about: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of arguments that differ for models and people."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults that are smaller for a model than for a person: `{"limit": 20}`."""


@dataclass(frozen=True)
class Command:
    """The command of an operation. Its output is derived from the labels of the answer's fields."""

    words: str
    """`project add`; the first word is the group."""
    help: str
    example: str
    arguments: tuple[str, ...] = ()
    """Fields of the request that are given by position, after the names in the path."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults that are smaller for a person than for a script: `{"limit": 20}`."""
    without: tuple[str, ...] = ()
    """Fields of the request that are for programs: the command has no option for them."""
    columns: tuple[str, ...] = ()
    """Fields shown in a table, for an answer that is a list."""
    empty: str = "nothing here yet"
    confirm: str = ""
    """The question to confirm first: `Remove project {slug}?`; the command then also has `--yes`."""
    done: str = ""
    """One sentence, which may name fields, in place of the answer's fields: `project {slug} removed`."""
    then: str = ""
    """Printed after the answer: what to do with it."""


@dataclass(frozen=True)
class ByHand:
    """A hand-written door with this name, because derivation would make it worse for people."""

    name: str
    why: str


TOP_LEVEL = "at the top level, commands are listed without loading declarations"


@dataclass(frozen=True)
class NoDoor:
    """A door that the operation does not have."""

    why: str


@dataclass(frozen=True)
class Operation:
    """One operation of the fleet. Under `control_plane.operations`, the function with `@performs(THIS)` performs it."""

    name: str
    """Unique: `add_project`. The route's operation id begins with it."""
    role: Role
    route: str
    """`POST /projects`, under /api/v1."""
    answer: Any
    """The document, or a list of them."""
    summary: str
    tool: Tool | ByHand | NoDoor
    command: Command | ByHand | NoDoor
    request: type[Request] | None = None
    """The body, or the filters of a GET or DELETE."""
    names: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the path with their types, in the order in which the function takes them."""
    more: str = ""
    """A second sentence for the OpenAPI document."""
    status: int = 200
    errors: tuple[int, ...] = ()
    """Statuses that the OpenAPI document lists besides 401, 403 and, for an unknown organization, 404."""
    everywhere: bool = False
    """Only for a token that may act in every organization."""
    in_organization: bool = True
    """Whether it acts in the organization that the caller names; if not, in that of the caller's token."""
    idempotent: bool = False
    """Takes an idempotency key: the same key with the same request returns the same answer."""
    in_audit_log: bool = True
    """Whether its changes are recorded; not those that a page makes while a user types."""
    answers_within: float | None = None
    """Seconds that a client waits for the answer, if that may take longer than other answers."""
    route_by_hand: str = ""
    """Why its route is not derived: it streams, or returns a file."""

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.route.partition(" ")[2]

    @property
    def takes_filters(self) -> bool:
        """Whether the request's fields are in the query: these methods have no body."""
        return self.method in {"GET", "DELETE"}

    @property
    def body_optional(self) -> bool:
        """Whether a request may have no body: no field is required, and it is not a list of changes."""
        fields = self.request.model_fields.values() if self.request else ()
        return self.method == "POST" and not any(each.is_required() for each in fields)


def operations_of(noun: str) -> Iterator[Operation]:
    """The operations that a module of declarations contains, in its order."""
    declared = vars(import_module(f"control_plane.contract.declarations.{noun}")).values()
    return (each for each in declared if isinstance(each, Operation))


def every_operation() -> list[Operation]:
    """All operations."""
    return [operation for noun in NOUNS for operation in operations_of(noun)]


# --- fields --------------------------------------------------------------------------------


def fields_of(model: Any) -> Iterator[tuple[str, FieldInfo, About]]:
    """Each field of a model with its description."""
    for name, info in model.model_fields.items():
        yield name, info, about_of(name, info)


def names_of(operation: Operation) -> Iterator[tuple[str, FieldInfo, About]]:
    """The same for the names in an operation's path."""
    for name, annotation in operation.names.items():
        info = FieldInfo.from_annotation(annotation)
        yield name, info, about_of(name, info)


def about_of(name: str, info: FieldInfo) -> About:
    """The description of a field; for a field without one, its name."""
    found = [each for each in info.metadata if isinstance(each, About)]
    return found[-1] if found else About(label="", help=info.description or "", flag="", metavar=name.upper())


def annotated(info: FieldInfo, *more: object) -> Any:
    """The type of a field with all its metadata, for a generated signature."""
    return getitem(Annotated, (info.annotation, *info.metadata, *more))


def choices_of(annotation: Any, about: About) -> tuple[str, ...]:
    """The values that a field may have, if it or its type lists them: a Literal, an enum, or a list of these."""
    if about.choices:
        return about.choices
    kind = value_type(annotation)
    if get_origin(kind) is Literal:
        return tuple(str(each) for each in get_args(kind))
    if get_origin(kind) is list:
        return choices_of(get_args(kind)[0], about)
    return tuple(str(each.value) for each in kind) if hasattr(kind, "__members__") else ()


def value_type(annotation: Any) -> Any:
    """The type of a field's value without None: `int` of `int | None`."""
    if get_origin(annotation) in {Union, UnionType}:
        annotation = next(each for each in get_args(annotation) if each is not type(None))
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
