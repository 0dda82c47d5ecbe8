"""Which calls wait for approval: none, those that could do harm, or all that change something (M-012)."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import escape
from typing import Any

from shared.messages import ToolCall
from shared.plans import PRESENT, REPORT
from shared.redaction import cut_short
from shared.work_order import Approve

READING = frozenset({"file_read", "glob", "grep", "todo", "submit", "add_comment", "ask", PRESENT, REPORT})
"""Built-in tools that change nothing outside the run."""
REQUESTING = frozenset({"web_fetch"})
"""Built-in tools that change nothing, but send a request out of the machine."""
WORKING = frozenset({"file_write", "editor", "spawn"})
"""Built-in tools that change only workspace files; with `spawn`, each call of the child is checked separately."""

_RISKS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), why)
    for pattern, why in (
        (r"^(sudo|doas|su|pkexec)$", "Runs as another user"),
        (r"^(rm|rmdir|shred|unlink|truncate)$", "Deletes files"),
        (r"^(dd|mkfs(\..+)?|fdisk|parted|mount|umount|losetup)$", "Writes to disks"),
        (r"^(shutdown|reboot|halt|poweroff|systemctl|service|init)$", "Controls the machine"),
        (r"^(kill|killall|pkill)$", "Stops processes"),
        (r"^(chmod|chown|chgrp|setfacl)$", "Changes permissions or ownership"),
        (r"^(curl|wget|nc|ncat|telnet|ssh|scp|sftp|rsync|ftp)$", "Connects to other machines"),
        (r"^(docker|podman|kubectl|helm|terraform|ansible(-playbook)?|aws|gcloud|az)$", "Changes other systems"),
        (r"^(psql|mysql|redis-cli|mongosh?|sqlite3)$", "May change a database"),
        (r"^(crontab|at|batch|nohup|setsid)$", "Starts something that runs later"),
        (r"^(eval|exec|source|\.|\$.*|.*\$\(.*)$", "Runs a command that is not known in advance"),
    )
)
_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), why)
    for pattern, why in (
        (r"\bgit(\s+-\S+(\s+(?!push\b)[^-\s]\S*)?){0,16}\s+push\b(?!-)", "Publishes commits"),
        (
            r"(?m)^(?>.*?\bgit\b).*\b(reset\s+--hard|clean\s+-\w*[fdx]|checkout\s+(--|\.)|restore\b|stash\s+(drop|clear)|branch\s+-D|filter-branch)",
            "Discards work",
        ),
        (r"\b(npm|yarn|pnpm|twine|cargo|gem|poetry|uv)\s+publish\b|\btwine\s+upload\b", "Publishes a package"),
        (r"\bgh\s+(pr|release|repo|secret|workflow|api)\b|\bglab\b", "Acts on a Git hosting service"),
        (r">\s*/(?!dev/(null|stdout|stderr)\b|tmp/)", "Writes outside the workspace"),
        (r"(?m)^(?>.*?\bfind\b).*-(delete|exec)", "May delete files"),
        (r":\(\)\s*\{", "Starts processes without limit"),
        (r"\|\s*(sudo\s+)?(ba|z|da|k|c)?sh\b", "Runs a script from a pipe"),
    )
)
_SEPARATORS = re.compile(r"\|\||&&|[;|&\n(){}`]|\$\(")
_PREFIXES = frozenset(
    {"env", "time", "nice", "ionice", "timeout", "stdbuf", "command", "builtin", "xargs", "then", "do", "else", "!"}
)
_SHELL = re.compile(r"^(ba|z|da|k|c)?sh$")
_ASSIGNMENT = re.compile(r"^\w+=")
_DEEPEST = 8
"""How many shells in each other are read; what the next one runs is not known."""


@dataclass(frozen=True)
class AskingFor:
    """Implements `drone.agent.protocols.Approvals` for one order.

    `approve` is yolo (nothing waits), risky or all; `allow` are patterns for whole command lines that never wait.
    A line of several commands is allowed only if each of them matches a pattern: `git status*` does not allow
    `git status; rm -rf .`.
    """

    approve: Approve
    allow: Sequence[str] = ()
    read_only: Collection[str] = field(default_factory=frozenset)
    """Foreign tools that declare themselves read-only."""
    refuses: Callable[[str], str | None] = lambda _: None
    """The rule of the drone's owner that refuses a shell line: no user is asked about it. None if there is none."""

    def why(self, call: ToolCall) -> str | None:
        """Return why a call has to wait; None if it may run immediately, or is refused then."""
        if self.approve == "yolo" or call.name in READING:
            return None
        if call.name in REQUESTING:
            return f"Every request needs approval: {_short(command_of(call))}" if self.approve == "all" else None
        if call.name in self.read_only:
            return None
        if call.name == "shell":
            return self._why_command(command_of(call))
        if self.approve == "all":
            return f"Every change needs approval: {call.name}"
        return None if call.name in WORKING else f"Its effects are unknown: {call.name}"

    def _why_command(self, command: str) -> str | None:
        if self._allowed(command) or self.refuses(command):
            return None
        if self.approve == "all":
            return f"Every command needs approval: {_short(command)}"
        risk = risk_of(command)
        return f"{risk}: {_short(command)}" if risk else None

    def _allowed(self, command: str) -> bool:
        parts = [part.strip() for part in _SEPARATORS.split(command) if part.strip()]
        whole = command.strip()
        if whole in self.allow or escape(whole) in self.allow:
            return True
        # A redirection writes to a file, even if the command itself does not.
        return ">" not in whole and bool(parts) and all(self._matches(part) for part in parts)

    def _matches(self, part: str) -> bool:
        return any(fnmatchcase(part, pattern) for pattern in self.allow)


def risk_of(command: str) -> str | None:
    """Return the harm a shell line could do; None if none is known.

    This only reads words and does not know what scripts do: it helps people to decide and is no security boundary. The
    sandbox is the boundary.
    """
    for phrase, why in _PHRASES:
        if phrase.search(command):
            return why
    for program in _programs(command):
        for pattern, why in _RISKS:
            if pattern.match(program):
                return why
    return None


def _programs(command: str, depth: int = 0) -> list[str]:
    """Return the program of each simple command in a line, without its directory."""
    if depth > _DEEPEST:
        return ["eval"]
    found = []
    for part in _SEPARATORS.split(command):
        words = [word for word in _words(part) if not _ASSIGNMENT.match(word)]
        while words and (words[0] in _PREFIXES or words[0].startswith("-") or words[0].isdigit()):
            words.pop(0)
        if words:
            program = words[0].rpartition("/")[2]
            found.append(program)
            if _SHELL.match(program) and "-c" in words:
                found += _programs(" ".join(words[words.index("-c") + 1 :]), depth + 1)
    return found


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part, comments=True)
    except ValueError:
        return part.split()


def command_of(call: ToolCall) -> str:
    """All of what a call would run: the line of a shell, or the arguments as they are."""
    if call.name != "shell":
        return call.arguments
    try:
        arguments: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments
    return str(arguments.get("command", "")) if isinstance(arguments, dict) else call.arguments


def _short(command: str) -> str:
    first = " ".join(command.split())
    return first if len(first) <= 200 else f"{cut_short(first, 200)} …"
