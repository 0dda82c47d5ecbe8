"""Lists what makes a test depend on how busy the machine is: sleeps, asserted durations, and short limits.

    python .ci/test_clocks.py tests

Each place that stays has a line in `.ci/test_clocks.txt`: file, kind and number of such places there, and why. A place
without a line is an error, and so is a line that is no longer true. Campaigns measure by the clock and are not read.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

CAMPAIGNS = ("bench", "chaos", "eval", "scale")
"""Directories of `tests` with campaigns and measurements, which do not run in `make test`."""
KEPT = Path(__file__).with_name("test_clocks.txt")
SHORTEST_S = 60
"""A limit only ends a test that hangs; on a busy machine, a shorter one ends one that works."""
CLOCKS = frozenset({"monotonic", "perf_counter", "process_time", "time", "thread_time"})
LIMITED = frozenset({"communicate", "join", "run", "wait", "wait_for", "wait_until", "check_output"})
"""Calls whose `timeout`, `seconds` or only argument is a limit."""


def places(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and kind of each place."""
    measured: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.NamedExpr) and _reads_clock(node.value):
            measured |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and each.id != "time"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if _is_sleep(node):
                yield node.lineno, "sleep"
            elif _has_short_limit(node):
                yield node.lineno, "limit"
        elif isinstance(node, ast.Assert) and _compares(node.test, measured):
            yield node.lineno, "duration"


def _called(call: ast.Call) -> tuple[str, str]:
    """What is called, and on what: `("sleep", "time")`."""
    if isinstance(call.func, ast.Attribute):
        owner = call.func.value
        return call.func.attr, owner.id if isinstance(owner, ast.Name) else "."
    return (call.func.id, "") if isinstance(call.func, ast.Name) else ("", "")


def _is_sleep(call: ast.Call) -> bool:
    """Whether it sleeps; a sleep of 0 only lets others go first."""
    lets_others = any(isinstance(each, ast.Constant) and each.value == 0 for each in call.args)
    return not lets_others and _called(call) in {("sleep", "time"), ("sleep", ""), ("sleep", "asyncio")}


def _reads_clock(node: ast.AST) -> bool:
    """Whether it calls a clock of the machine: `time.monotonic()`, `monotonic()`."""
    calls = (_called(each) for each in ast.walk(node) if isinstance(each, ast.Call))
    return any(name in CLOCKS and owner in {"time", ""} for name, owner in calls)


def _compares(test: ast.AST, measured: set[str]) -> bool:
    """Whether a comparison of size has a measured time in it."""
    for node in ast.walk(test):
        by_size = isinstance(node, ast.Compare) and any(
            isinstance(each, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for each in node.ops
        )
        if by_size and (
            _reads_clock(node) or {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} & measured
        ):
            return True
    return False


def _has_short_limit(call: ast.Call) -> bool:
    name, owner = _called(call)
    if name not in LIMITED or owner in {"clock", "asyncio"}:
        return False
    limits = [each.value for each in call.keywords if each.arg in {"timeout", "seconds"}]
    if name in {"join", "wait"} and len(call.args) == 1 and not call.keywords:
        limits.append(call.args[0])
    return any(isinstance(each, ast.Constant) and _short(each.value) for each in limits)


def _short(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < SHORTEST_S


def kept() -> dict[tuple[str, str], int]:
    """How many places of a kind stay in a file."""
    found = {}
    for line in KEPT.read_text().splitlines():
        if line and not line.startswith("#"):
            file, kind, number, _ = line.split(maxsplit=3)
            found[file, kind] = int(number)
    return found


def main(root: Path) -> int:
    """Print what has no line, and lines that are no longer true; returns the exit code."""
    lines: dict[tuple[str, str], list[int]] = {}
    for file in sorted(root.rglob("*.py")):
        if file.relative_to(root).parts[0] not in CAMPAIGNS:
            for line, kind in places(ast.parse(file.read_text())):
                lines.setdefault((str(file.relative_to(root)), kind), []).append(line)
    expected = Counter(kept())
    wrong = [each for each in sorted({*lines, *expected}) if len(lines.get(each, ())) != expected[each]]
    for file, kind in wrong:
        at = ", ".join(map(str, lines.get((file, kind), ()))) or "none"
        sys.stdout.write(f"{root}/{file}: {kind} at line {at}; .ci/test_clocks.txt has {expected[file, kind]}\n")
    if wrong:
        sys.stdout.write("Tests wait for a state, a round or a signal, and set a clock by hand: see CONTRIBUTING.md.\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
