"""The results of an evaluation: a table to read, and a document to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

from tests.eval.attempt import Attempt
from tests.eval.judging import Verdict
from tests.eval.task import EvalTask


@dataclass(frozen=True)
class Row:
    """One judged attempt of one agent at one task."""

    agent: str
    task: EvalTask
    repetition: int
    seed: int | None
    attempt: Attempt
    verdict: Verdict
    seconds: float

    def document(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "task": self.task.name,
            "language": self.task.language,
            "kind": self.task.kind,
            "repetition": self.repetition,
            "seed": self.seed,
            "resolved": self.verdict.resolved,
            "verdict": self.verdict.why,
            "seconds": round(self.seconds, 1),
            **asdict(self.attempt),
        }


def summary(rows: Sequence[Row], *, replayed: bool) -> str:
    """One line for each agent, as Markdown. Means are over the attempts that reported a number."""
    lines = [
        "| agent | resolved | steps, mean | input tokens | output tokens | cost in USD | seconds, mean |",
        "|---|---|---|---|---|---|---|",
    ]
    for agent in dict.fromkeys(row.agent for row in rows):
        own = [row for row in rows if row.agent == agent]
        cells = (
            f"{agent} (*replayed*)" if replayed else agent,
            f"{sum(row.verdict.resolved for row in own)} of {len(own)}",
            _known(own, lambda attempt: attempt.steps, lambda found: f"{mean(found):.1f}"),
            _known(own, lambda attempt: attempt.input_tokens, lambda found: f"{sum(found):,}"),
            _known(own, lambda attempt: attempt.output_tokens, lambda found: f"{sum(found):,}"),
            _known(own, lambda attempt: attempt.cost_usd, lambda found: f"{sum(found):.4f}"),
            f"{mean(row.seconds for row in own):.1f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def details(rows: Sequence[Row]) -> str:
    """One line for each task, as Markdown: what became of the attempts of each agent."""
    agents = list(dict.fromkeys(row.agent for row in rows))
    lines = [f"| task | language | kind | {' | '.join(agents)} |", f"|---|---|---|{'---|' * len(agents)}"]
    for name in dict.fromkeys(row.task.name for row in rows):
        own = [row for row in rows if row.task.name == name]
        cells = [", ".join(row.verdict.why for row in own if row.agent == agent) for agent in agents]
        lines.append(f"| {name} | {own[0].task.language} | {own[0].task.kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _known(rows: Sequence[Row], number: Callable[[Attempt], float | None], shown: Callable[[list[float]], str]) -> str:
    """The number over all attempts that have it; how many lack it is said."""
    found = [value for row in rows if (value := number(row.attempt)) is not None]
    if not found:
        return "unknown"
    return shown(found) if len(found) == len(rows) else f"{shown(found)} ({len(rows) - len(found)} unknown)"
