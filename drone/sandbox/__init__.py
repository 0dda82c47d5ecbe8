"""Where commands run: in bubblewrap if it is available, else on the bare machine with a loud warning.

`choose` returns the sandbox; `Sandbox.run` runs one command to its end and leaves no process behind.
"""

from __future__ import annotations

from drone.sandbox.choice import KINDS, choose, explain_missing
from drone.sandbox.protocol import CommandResult, CommandSpec, Sandbox, Tally

__all__ = ["KINDS", "CommandResult", "CommandSpec", "Sandbox", "Tally", "choose", "explain_missing"]
