"""Common parts of `fleet doctor` and `drone doctor`: checks with stable codes, one fix each, and their output.

The output never contains a secret: all shown text passes through `without_secrets` first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from shared.errors import FleetError
from shared.terminal.output import Style, paint, print_json, printable, put, say

_URL_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]+(?=@)")
# `fs_encoding` is a name in a traceback: secrets of links and sessions have 64 hexadecimal digits.
_FLEET_TOKEN = re.compile(r"\b(f[adj](?=_[A-Za-z0-9_-]{8})|f[lqs](?=_[0-9a-f]{32}))_[A-Za-z0-9_-]+")


class State(StrEnum):
    """The result of a check. Only FAIL makes a doctor exit with 1."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


OK, WARN, FAIL = State.OK, State.WARN, State.FAIL
_STYLES: dict[State, Style] = {OK: "green", WARN: "yellow", FAIL: "red"}


@dataclass(frozen=True)
class Check:
    """One check: its subject, the finding, and one fix if there is a problem."""

    code: str
    """Stable, `D-GIT`: scripts match on it."""
    state: State
    what: str
    """The subject, in two or three words: `git`, `server`."""
    found: str
    """The finding, in one line: `2.39.5`, `does not answer at https://…`."""
    fix: str = ""
    """A command to paste, or one sentence."""
    safe_fix: Callable[[], object] | None = None
    """Applies `fix`, if that cannot lose anything; called only with `--fix`."""


def run_doctor(
    examine: Callable[[], Sequence[Check]],
    *,
    fix: bool = False,
    as_json: bool = False,
    extra: Mapping[str, object] | None = None,
) -> int:
    """Examine, apply the safe fixes if requested, print the checks, and return the exit code: 1 only with a FAIL.

    After fixes, everything is examined again, so that the output shows the current state. `extra` comes before `checks`
    and `ok` in the JSON document.
    """
    checks = examine()
    if fix and repair(checks):
        checks = examine()
    if as_json:
        print_json({**(extra or {}), **document(checks)})
    else:
        put(render(checks))
    return 0 if well(checks) else 1


def well(checks: Sequence[Check]) -> bool:
    """Whether nothing failed; warnings are allowed."""
    return all(check.state is not FAIL for check in checks)


def repair(checks: Sequence[Check]) -> int:
    """Apply and report the safe fix of each check that is not OK; return the number of applied fixes."""
    applied = 0
    for check in checks:
        if check.state is OK or check.safe_fix is None:
            continue
        try:
            check.safe_fix()
        except (OSError, FleetError) as failure:
            say(f"not fixed: {check.what}: {without_secrets(str(failure))}")
        else:
            applied += 1
            say(f"fixed: {check.what}: {check.fix}")
    return applied


def document(checks: Sequence[Check]) -> dict[str, object]:
    """The checks as JSON: `checks`, each with code, state, what, found, fix and fixable; and `ok`."""
    return {"checks": [_plain(check) for check in checks], "ok": well(checks)}


def render(checks: Sequence[Check]) -> str:
    """The checks as lines for people, each fix below its finding, with totals in the last line."""
    width = max((len(check.what) for check in checks), default=0)
    lines = []
    for check in checks:
        state = paint(f"{check.state:<4}", _STYLES[check.state], sys.stdout)
        lines.append(f"  {state}  {_clean(check.what):<{width}}  {_clean(check.found)}  [{_clean(check.code)}]")
        if check.state is not OK and check.fix:
            lines.append(f"        → {_clean(check.fix)}")
    return "\n".join([*lines, _sum(checks)]) + "\n"


def without_secrets(text: str) -> str:
    """`text` without passwords in URLs and without the fleet's tokens."""
    return _FLEET_TOKEN.sub(r"\1_***", _URL_PASSWORD.sub(r"\1:***", text))


def _plain(check: Check) -> dict[str, object]:
    return {
        "code": check.code,
        "state": check.state.upper(),
        "what": check.what,
        "found": _clean(check.found),
        "fix": _clean(check.fix) or None,
        "fixable": check.safe_fix is not None,
    }


def _sum(checks: Sequence[Check]) -> str:
    failures = sum(check.state is FAIL for check in checks)
    warnings = sum(check.state is WARN for check in checks)
    if not failures and not warnings:
        return "  no problems found"
    fixable = sum(check.state is not OK and check.safe_fix is not None for check in checks)
    hint = f"; --fix can fix {fixable}" if fixable else ""
    return f"  {_count(failures, 'failure')}, {_count(warnings, 'warning')}{hint}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _clean(text: str) -> str:
    return printable(without_secrets(text)).replace("\n", " ")
