"""The argument of `extend(api)`: an extension's interface to a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from drone.agent.guardrails.rule_set import Rule
from drone.agent.hooks.bus import Handler, HookBus, Registered
from drone.agent.hooks.calling import plain
from drone.extensions.context import ExtensionContext
from drone.extensions.tools import Act, ExtensionTool, tool_spec

MAX_MEMORY = 10_000
"""Characters of what a memory tells the model."""
_COMMAND = re.compile(r"[a-z0-9_-]{1,32}")
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

    def command(self, name: str, description: str, act: Callable[[str, ExtensionContext], object]) -> None:
        """Add the command `/name`: in a prompt or a message that begins with it, `act(arguments, context)` returns the
        text that the model is given instead; None leaves the text as it is.

        Raises ValueError for an invalid name, TypeError for a function that cannot be called.
        """
        self._only_in_extend()
        if not _COMMAND.fullmatch(name):
            raise ValueError(f"invalid name of a command: {name!r:.80}; 1 to 32 of a-z, 0-9, _ and -")
        if not callable(act) or not description.strip():
            raise TypeError(f"the command {name} needs a description, and a function that can be called")

        def run(event: Any, context: ExtensionContext) -> object:
            word, *arguments = event.text.split(maxsplit=1) or [""]
            return act("".join(arguments).strip(), context) if word == f"/{name}" else None

        for event in ("input", "message_receive"):
            self.on(event, run)

    def memory(self, provider: object) -> None:
        """Add a memory: `recall(prompt)` returns what the model is told below the prompt, '' for nothing;
        `remember(prompt, response)`, if it has that, is called once when the run has ended, with the prompt as written.

        Raises TypeError for an object without `recall`.
        """
        self._only_in_extend()
        recall, remember = getattr(provider, "recall", None), getattr(provider, "remember", None)
        if isinstance(provider, type) or not callable(recall):
            raise TypeError("a memory must be an object with recall(prompt)")

        def recalled(event: Any, _context: ExtensionContext) -> str | None:
            found = str(recall(event.text) or "").strip()[:MAX_MEMORY]
            return f"{event.text}\n\n<memory>\n{found}\n</memory>" if found else None

        def remembered(event: Any, context: ExtensionContext) -> None:
            if callable(remember):
                remember(context.prompt, event.outcome.response)

        self.on("input", recalled)
        self.on("agent_end", remembered)

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
            raise RuntimeError("commands, memories, tools and guardrails must be registered in extend(api), not later")


def rule_of(judge: object, origin: Origin, number: int = 1, *, from_file: bool = False) -> Rule:
    """Return the rule for an exported guardrail, the `number`th of its file. Raises TypeError if it is no guardrail."""
    if isinstance(judge, type) or not any(callable(getattr(judge, method, None)) for method in METHODS):
        raise TypeError(f"a guardrail must be an object with at least one of {', '.join(METHODS)}, not {judge!r:.80}")
    own = getattr(judge, "name", None)
    name = own if isinstance(own, str) and own else origin.stem if number == 1 else f"{origin.stem}-{number}"
    policy = origin.policy or getattr(judge, "policy", False) is True
    return Rule(plain(name), judge, origin.source, policy, from_file=from_file)
