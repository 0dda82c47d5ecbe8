"""spawn: part of the work, done by a child agent; the caller reads only its final answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drone.agent.values import ToolResult, ToolSpec
from drone.tools import telling
from drone.tools.arguments import SpawnArguments
from drone.tools.tool import BuiltinTool
from drone.tools.wrong_use import WrongUse
from shared.messages import ToolCall
from shared.redaction import cut_short

SpawnChild = Callable[[str, str, Sequence[str] | None], ToolResult]
"""Call id, task, and the names of the tools (None for all)."""
NAME = "spawn"
NOT_FOR_CHILDREN = frozenset({NAME, telling.ADD_COMMENT})
"""Only the parent reports a child's findings in the thread (S-065)."""
_DESCRIPTION = (
    "Delegate part of the work to a child agent with its own conversation, in the same workspace and on the same "
    "budget. You get its last answer. Good for searches and checks whose details you do not need to keep."
)


@dataclass(frozen=True)
class Spawn:
    """Starts child agents. They cannot start any themselves."""

    child: SpawnChild
    names: Callable[[], Sequence[str]]
    """The names of all tools; some of them are not for children."""

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    @property
    def read_only(self) -> bool:
        """A child can do only what its parent can: if the parent only reads, so does the child."""
        return True

    def execute(self, call: ToolCall) -> ToolResult:
        """Raises WrongUse for an unknown tool, and any signal that ends the child and its parent."""
        wanted: SpawnArguments = self._tool.parsed(call.arguments)
        if wanted.tools is None:
            return self.child(call.id, wanted.task, None)
        known = [name for name in self.names() if name not in NOT_FOR_CHILDREN]
        unknown = [name for name in wanted.tools if name not in known]
        if unknown:
            raise WrongUse(
                f"a child cannot use {', '.join(repr(cut_short(name, 60)) for name in unknown)}; "
                f"available tools: {', '.join(known)}"
            )
        # The child must always be able to submit.
        return self.child(call.id, wanted.task, tuple(dict.fromkeys((*wanted.tools, "submit"))))

    @property
    def _tool(self) -> BuiltinTool:
        return BuiltinTool(NAME, _DESCRIPTION, SpawnArguments, lambda _: ToolResult(""), read_only=True)
