"""The argument of `extend(api)`: an extension's interface to a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from drone.agent.guardrails.rule_set import Rule
from drone.agent.hooks.bus import Handler, HookBus, Registered
from drone.agent.hooks.calling import plain
from drone.extensions.context import ExtensionContext
from drone.extensions.tools import Act, ExtensionTool, tool_spec

METHODS = ("before_call", "after_call", "on_turn_start", "on_turn_end")


@dataclass
class Contributions:
    """Contributions of files: applied together when all files are read, or not at all."""

    handlers: list[Registered] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    tools: list[ExtensionTool] = field(default_factory=list)

    def add(self, other: Contributions) -> None:
        self.handlers += other.handlers
        self.rules += other.rules
        self.tools += other.tools


@dataclass(frozen=True)
class Origin:
    """The origin of a contribution."""

    source: str
    """Description for reports: its kind, file and directory."""
    stem: str
    """Its bare name."""
    policy: bool = False


class Api:
    """One extension's interface. It is open while `extend` runs; later, only handlers may be registered."""

    def __init__(
        self, origin: Origin, context: ExtensionContext, bus: HookBus, make_tool: Callable[..., ExtensionTool]
    ) -> None:
        self.context = context
        self.brought = Contributions()
        self._origin = origin
        self._bus = bus
        self._make_tool = make_tool
        self._state = "open"

    def on(self, event: str, handler: Handler) -> Callable[[], None]:
        """Register `handler(event, context)` for an event, `*` for all, and return a function that removes it.

        Raises ValueError for an event that does not exist, TypeError for a handler that is not callable or is async.
        """
        one = Registered(event, handler, self._origin.source, self._origin.policy)
        if self._state == "open":
            self.brought.handlers.append(one)
        elif self._state == "live":
            self._bus.add(one)
        else:
            raise RuntimeError("this extension is no longer loaded")
        return lambda: self._bus.remove(one)

    def tool(
        self, name: str, description: str, parameters: dict[str, Any] | None, act: Act, *, read_only: bool = False
    ) -> None:
        """Give the model a tool. `parameters` is a JSON schema of type object; `act(arguments)` returns a text.

        With `read_only` the tool may be used in mode plan, and without approval.

        Raises ValueError for a name or a schema that no endpoint would accept.
        """
        self._only_in_extend()
        if not callable(act):
            raise TypeError(f"the function of tool {name} is not callable")
        spec = tool_spec(name, description, parameters)
        tool = self._make_tool(spec=spec, read_only=read_only is True, source=self._origin.source, act=act)
        self.brought.tools.append(tool)

    def guardrail(self, rule: object) -> None:
        """Add a rule after those of the guardrail files. Raises TypeError for an object without any rule methods."""
        self._only_in_extend()
        self.brought.rules.append(rule_of(rule, self._origin, len(self.brought.rules) + 1))

    def goes_live(self) -> None:
        """Called when the contributions are applied."""
        self._state = "live"

    def close(self) -> None:
        """Called when the contributions are not applied, or are removed."""
        self._state = "closed"

    def _only_in_extend(self) -> None:
        if self._state != "open":
            raise RuntimeError("tools and guardrails must be registered in extend(api), not later")


def rule_of(judge: object, origin: Origin, number: int = 1, *, from_file: bool = False) -> Rule:
    """Return the rule for an exported guardrail, the `number`th of its file. Raises TypeError if it is no guardrail."""
    if isinstance(judge, type) or not any(callable(getattr(judge, method, None)) for method in METHODS):
        raise TypeError(f"a guardrail must be an object with at least one of {', '.join(METHODS)}, not {judge!r:.80}")
    own = getattr(judge, "name", None)
    name = own if isinstance(own, str) and own else origin.stem if number == 1 else f"{origin.stem}-{number}"
    policy = origin.policy or getattr(judge, "policy", False) is True
    return Rule(plain(name), judge, origin.source, policy, from_file=from_file)
