"""Calls a declared operation through each of its doors with the same values, and makes calls that all doors refuse."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import Any, Literal, get_args, get_origin

import httpx
from pydantic import AwareDatetime, BaseModel

from control_plane.cli.main import app as fleet
from control_plane.cli.options import flag_of, is_switch
from control_plane.contract.declarations.operation import Command, Operation, Tool, fields_of, value_type
from shared.terminal.boundary import run
from tests.support.fleet_tools import Connected

Doc = dict[str, Any]
OTHER = "payments"
"""An organization that does not exist, for a token limited to one organization."""


@dataclass(frozen=True)
class Attempt:
    """One call with one mistake."""

    operation: Operation
    mistake: str
    code: str
    given: Doc = field(default_factory=dict)
    """The fields of the request."""
    organization: str | None = None
    typed: bool = True
    """Whether a command line can contain this mistake without being refused before there is a request."""


@dataclass(frozen=True)
class Refusal:
    """A door's refusal of a call."""

    code: str
    what: str
    why: str | None
    next: str | None


def problems(attempt: Attempt, said: Mapping[str, Refusal]) -> list[str]:
    """How the doors' refusals of one attempt differ from each other, or from the expected code."""
    # A door says itself where the form of a request is described: the command's help, or the schema.
    advice = {each.next for each in said.values()}
    advised = all(advice) if attempt.code == "E-REQUEST" else len(advice) <= 1
    found = {
        f"codes: {said}": {each.code for each in said.values()} <= {attempt.code},
        f"words: {said}": len({(each.what, each.why) for each in said.values()}) <= 1,
        f"advice: {said}": advised,
    }
    return [problem for problem, right in found.items() if not right]


def derived_doors(operation: Operation) -> int:
    """The number of derived doors of an operation: only those take the same values in the same way."""
    made = (not operation.route_by_hand, isinstance(operation.tool, Tool), isinstance(operation.command, Command))
    return sum(made)


# --- what is wrong ---------------------------------------------------------------------------


def attempts(operation: Operation) -> Iterator[Attempt]:
    """The operation with each mistake that it allows, called by a viewer of one organization."""
    right = Attempt(operation, "", "E-REQUEST", sample(operation.request) if operation.request else {})
    if operation.everywhere or operation.role != "viewer":
        yield replace(right, mistake="a role too low", code="E-EVERYWHERE" if operation.role == "viewer" else "E-ROLE")
    if operation.in_organization:
        yield replace(right, mistake="another organization", code="E-ORGANIZATION-404", organization=OTHER)
    yield from _wrong_types(right)
    yield from _missing(right)
    if operation.request is not None and not operation.takes_filters:
        yield replace(right, mistake="an unknown field", given={**right.given, "loud": True}, typed=False)


def _wrong_types(right: Attempt) -> Iterator[Attempt]:
    """An invalid word for the first field that requires a number or one of a few words."""
    for name, info, _ in fields_of(right.operation.request) if right.operation.request else ():
        if value_type(info.annotation) in {int, float} or get_origin(value_type(info.annotation)) is Literal:
            yield replace(right, mistake="a wrong type", given={**right.given, name: "wide"})
            return


def _missing(right: Attempt) -> Iterator[Attempt]:
    """The call without its last required field; the command line itself refuses a missing argument."""
    required = list(right.given)
    if required:
        command = right.operation.command
        by_position = command.arguments if isinstance(command, Command) else ()
        given = {name: right.given[name] for name in required[:-1]}
        yield replace(right, mistake="a missing field", given=given, typed=required[-1] not in by_position)


def sample(model: type[BaseModel]) -> Doc:
    """The required fields of a request, each with a value of its type."""
    return {name: _value(info.annotation) for name, info, _ in fields_of(model) if info.is_required()}


def _value(annotation: Any) -> Any:
    kind = value_type(annotation)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return sample(kind)
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if get_origin(kind) is list:
        return [_value(get_args(kind)[0])]
    plain = {int: 1, float: 1.0, bool: True, dict: {}, AwareDatetime: "2026-01-01T00:00:00Z"}
    return plain.get(get_origin(kind) or kind, "x")


# --- through each door -----------------------------------------------------------------------


@dataclass(frozen=True)
class Doors:
    """The doors of one server, for the owner of one token."""

    http: httpx.Client
    tools: Connected
    environment: Mapping[str, str]

    def refusals(self, attempt: Attempt) -> dict[str, Refusal]:
        """The refusal of an attempt by each of the operation's derived doors."""
        operation, said = attempt.operation, {}
        if not operation.route_by_hand:
            said["http"] = self._http(attempt)
        if isinstance(operation.tool, Tool):
            said["mcp"] = self._tool(attempt, operation.tool)
        if isinstance(operation.command, Command) and attempt.typed:
            said["command"] = self._command(attempt, operation.command)
        return said

    def _http(self, attempt: Attempt) -> Refusal:
        operation = attempt.operation
        names = {name: "x" for name in operation.names}
        path = operation.path.format_map({"organization": attempt.organization or "default", **names})
        params = {"org": attempt.organization} if attempt.organization else {}
        if operation.takes_filters:
            answer = self.http.request(operation.method, f"/api/v1{path}", params={**params, **attempt.given})
        else:
            body = attempt.given if operation.request else None
            answer = self.http.request(operation.method, f"/api/v1{path}", params=params, json=body)
        problem = answer.json()
        return Refusal(problem["code"], problem["detail"], problem["why"], problem["next"])

    def _tool(self, attempt: Attempt, tool: Tool) -> Refusal:
        names = {name: "x" for name in attempt.operation.names}
        organization = {"organization": attempt.organization} if attempt.organization else {}
        told = self.tools.refused(tool.name, **names, **attempt.given, **organization)
        return Refusal(told["code"], told["what"], told["why"], told["next"])

    def _command(self, attempt: Attempt, command: Command) -> Refusal:
        words = [*command.words.split(), "--json", *(["--yes"] if command.confirm else [])]
        words += ["--org", attempt.organization] if attempt.organization else []
        with _environment(self.environment), redirect_stdout(StringIO()), redirect_stderr(StringIO()) as stderr:
            run(fleet, [*words, *_typed(attempt, command)])
        said = json.loads(stderr.getvalue())
        return Refusal(said["code"], said["what"], said["why"], said["next"])


def _typed(attempt: Attempt, command: Command) -> Iterator[str]:
    """The values of an attempt as words of a command line."""
    yield from ("x" for _ in attempt.operation.names)
    for name, _, about in fields_of(attempt.operation.request) if attempt.operation.request else ():
        if name in command.arguments:
            yield str(attempt.given[name])
        elif name in attempt.given:
            value, flag = attempt.given[name], flag_of(name, about).split()[0]
            for each in value if isinstance(value, list) else [value]:
                yield from ([flag.partition("/")[0]] if is_switch(about) or each is True else [flag, str(each)])


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
