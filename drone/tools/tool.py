"""A built-in tool: its description for the model, the check of its arguments, and its implementation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from drone.agent.values import ToolResult, ToolSpec
from drone.tools.arguments import ToolArguments, schema
from drone.tools.wrong_use import WrongUse, describe
from shared.messages import ToolCall


@dataclass(frozen=True)
class BuiltinTool:
    """A tool whose arguments are a pydantic model. It has the form of a ForeignTool, so that a toolbox has one kind."""

    name: str
    description: str
    arguments: type[ToolArguments]
    act: Callable[[Any], ToolResult]
    read_only: bool = False
    """It changes nothing and may be used in mode plan."""
    parallel: bool = False
    """It only reads files, from any thread: its calls may run at the same time."""

    @cached_property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, schema(self.arguments), self.parallel)

    def execute(self, call: ToolCall) -> ToolResult:
        """Raises WrongUse for arguments that do not fit."""
        return self.act(self.parsed(call.arguments))

    def parsed(self, text: str) -> Any:
        """Return the checked arguments. Raises WrongUse."""
        try:
            given = json.loads(text or "{}")
        except (ValueError, RecursionError) as error:
            raise WrongUse(f"{self.name}: the arguments are not JSON ({error}); send one JSON object") from error
        if not isinstance(given, dict):
            names = ", ".join(self.arguments.model_fields)
            raise WrongUse(f"{self.name}: the arguments must be one JSON object, with {names}")
        try:
            return self.arguments.model_validate(given)
        except ValidationError as error:
            raise WrongUse(describe(self.name, error)) from error
