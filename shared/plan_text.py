"""Plans as Markdown: how people read and edit them in a terminal, an editor or an MCP client.

```
# Title

Summary.

1. [x] Text of the point,
   in any number of lines.
   Files: a.py, b/c.py
   Verify: make test
2. [ ] A point that is not approved.
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shared.plans import AgentPlan, PlanPoint

_POINT = re.compile(r"(\d+)[.)][ \t]+(?:\[([ xX]?)\](?:[ \t]+|$))?(.*)$")
_FIELD = re.compile(r"(files|verify)[ \t]*:[ \t]*(.*)$", re.IGNORECASE)
_INDENT = "   "


class NotAPlan(Exception):
    """The text cannot be read as a plan; the message says why, with the line."""


def plan_text(plan: AgentPlan) -> str:
    """The plan as Markdown, which `read_plan` reads."""
    blocks = [f"# {_one_line(plan.title)}"]
    if plan.summary.strip():
        blocks.append(_summary(plan.summary.strip()))
    blocks.append("\n".join(line for number, point in enumerate(plan.points, 1) for line in _lines(number, point)))
    return "\n\n".join(blocks) + "\n"


def read_plan(text: str) -> AgentPlan:
    """The plan that a Markdown text describes. Points count in their order, whatever their numbers.

    A point without a box is approved. Raises NotAPlan.
    """
    lines = text.replace("\r\n", "\n").lstrip("\ufeff").split("\n")
    heads = [index for index, line in enumerate(lines) if _POINT.match(line)]
    if not heads:
        raise NotAPlan("no line begins with a number, such as `1. [x] What to do`")
    title, summary = _opening(lines[: heads[0]])
    ends = [*heads[1:], len(lines)]
    points = [_point(lines[head:end], head + 1) for head, end in zip(heads, ends, strict=True)]
    return AgentPlan(title=title, summary=summary, points=tuple(points))


def _lines(number: int, point: PlanPoint) -> Iterator[str]:
    first, *rest = point.text.strip().splitlines() or [""]
    yield f"{number}. [{'x' if point.approved else ' '}] {first}"
    yield from (f"{_INDENT}{line}".rstrip() for line in rest)
    if point.files:
        yield f"{_INDENT}Files: {', '.join(point.files)}"
    if point.verify.strip():
        yield f"{_INDENT}Verify: {_one_line(point.verify)}"


def _summary(text: str) -> str:
    # A line of the summary that begins with a number would be read as a point.
    return "\n".join(f"{_INDENT}{line}" if _POINT.match(line) else line for line in text.splitlines())


def _opening(lines: Sequence[str]) -> tuple[str, str]:
    """Title and summary: the first heading, or the first line, and what follows it."""
    text = "\n".join(lines).strip()
    first, _, rest = text.partition("\n")
    title = first.lstrip("#").strip()
    if not title:
        raise NotAPlan("line 1: the title is missing, such as `# Title`")
    return title, rest.strip()


def _point(lines: Sequence[str], number: int) -> PlanPoint:
    match = _POINT.match(lines[0])
    assert match is not None
    body = [match[3].strip(), *(_unindented(line) for line in lines[1:])]
    fields: dict[str, str] = {}
    # Only the last lines are fields: a text may contain such a word anywhere else.
    while len(body) > 1:
        found = _FIELD.match(body[-1].strip())
        if body[-1].strip() and found is None:
            break
        body.pop()
        if found is not None:
            fields.setdefault(found[1].lower(), found[2].strip())
    text = "\n".join(body).strip()
    if not text:
        raise NotAPlan(f"line {number}: the point has no text")
    files = tuple(filter(None, (each.strip() for each in fields.get("files", "").split(","))))
    approved = match[2] is None or match[2].lower() == "x"
    return PlanPoint(text=text, files=files, verify=fields.get("verify", ""), approved=approved)


def _unindented(line: str) -> str:
    return line.removeprefix(_INDENT).rstrip()


def _one_line(text: str) -> str:
    return " ".join(text.split())
