"""Tools from extensions: arguments checked against their schema, calls bounded, every result valid."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from drone.agent.hooks.bus import Report
from drone.agent.hooks.calling import CallFailed, Calling, WrongAnswer, plain
from drone.agent.values import ToolResult, ToolSpec
from drone.sandbox.output import HeadAndTail
from shared.messages import ToolCall
from shared.redaction import shortened

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
SHOWN = 10_000
"""Characters of a result that are shown to the model, as for a command's output."""
PROBLEMS = 3

Act = Callable[[dict[str, Any]], object]
"""Called with the arguments; returns a text or a ToolResult."""


@dataclass(frozen=True)
class ExtensionTool:
    """Implements `drone.agent.protocols.ForeignTool`."""

    spec: ToolSpec
    read_only: bool
    source: str
    act: Act
    calling: Calling
    check: Callable[[], None]
    """Raises the signal that ends the run."""
    report: Report

    def execute(self, call: ToolCall) -> ToolResult:
        """Run a call; every failure becomes a result that describes it. Raises what `check` raises."""
        try:
            result = self.calling(lambda: _result(self.act(self._arguments(call))))
        except CallFailed as failed:
            return self._failed(failed)
        assert isinstance(result, ToolResult)
        return result

    def _arguments(self, call: ToolCall) -> dict[str, Any]:
        try:
            given = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError) as error:
            raise _WrongUse(f"the arguments are not JSON ({type(error).__name__}); send one JSON object") from error
        problems = [
            f"{'.'.join(map(str, error.absolute_path)) or 'the arguments'}: {shortened(error.message, 200)}"
            for error in validator(self.spec.parameters).iter_errors(given)
        ]
        if problems or not isinstance(given, dict):
            raise _WrongUse("; ".join(problems[:PROBLEMS]) or "send one JSON object")
        return given

    def _failed(self, failed: CallFailed) -> ToolResult:
        if failed.why == "run_ends":
            self.check()
        cause = failed.__cause__
        if not isinstance(cause, _WrongUse):
            self.report(f"The tool {self.spec.name} of {self.source} failed: {failed.what}.", failed.detail)
        what = str(cause) if isinstance(cause, _WrongUse) else failed.what
        return ToolResult(f"Error: {self.spec.name}: {plain(what)}", is_error=True)


class _WrongUse(Exception):
    """An error of the model, not of the extension."""


def tool_spec(name: str, description: str, parameters: dict[str, Any] | None) -> ToolSpec:
    """Return the tool's description for the model. Raises ValueError if no endpoint would accept it."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"invalid tool name {name!r}: use at most 64 letters, digits, - and _, starting with a letter")
    schema = {"type": "object", "properties": {}} if parameters is None else json.loads(json.dumps(parameters))
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ValueError(f"the parameters of {name} are not a JSON schema of type object")
    validator(schema)
    return ToolSpec(name, plain(str(description)), schema)


def validator(schema: dict[str, Any]) -> Any:
    """Return a validator for arguments. Raises ValueError for an invalid schema."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # takes long, and few runs need it
    from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"invalid JSON schema: {error.message}") from error
    return Draft202012Validator(schema)


def _result(answer: object) -> ToolResult:
    if isinstance(answer, str):
        answer = ToolResult(answer)
    if not isinstance(answer, ToolResult) or not isinstance(answer.output, str):
        raise WrongAnswer(f"it returned {type(answer).__name__}, not a string or a ToolResult")
    text = plain(answer.output)
    shown = HeadAndTail(SHOWN)
    shown.add(text)
    code = answer.return_code if isinstance(answer.return_code, int) else None
    result = replace(answer, output=shown.text(), output_bytes=len(text.encode()), return_code=code, log=None)
    return replace(result, is_error=bool(answer.is_error))
