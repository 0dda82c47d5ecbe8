"""A batch, and two of them side by side, as text for people."""

from __future__ import annotations

from typing import Any

from control_plane.cli.answers import cost
from control_plane.cli.batch_follow import progress_line
from shared.durations import roughly

Doc = dict[str, Any]


def batch_text(batch: Doc) -> str:
    """A batch's progress and statistics."""
    name = f"{batch['name']}  {batch['id']}"
    lines = [
        f"batch      {name}",
        f"status     {batch['status']}: {progress_line(batch)}",
        f"parallel   {batch['parallel']}",
        f"resolved   {_share(batch['resolved'], batch['ended'])}",
        f"cost       {cost(batch['cost_usd'])}{_mean(batch['cost_mean_usd'], cost)}",
        f"steps      {batch['steps']:,}{_mean(batch['steps_mean'], lambda mean: f'{mean:.1f}')}",
    ]
    if batch["duration_mean_s"] is not None:
        lines.append(f"time       {roughly(batch['duration_mean_s'])} for each order")
    lines += _counted("outcome", batch["outcomes"])
    lines += _counted("exit", batch["exit_statuses"]) + _counted("checks", batch["verifications"])
    return "\n".join(lines)


def comparison_text(found: Doc) -> str:
    """Two batches side by side, and McNemar's test."""
    a, b = found["a"], found["b"]
    lines = [
        f"A          {a['name']}  {a['id']}",
        f"B          {b['name']}  {b['id']}",
        f"pairs      {found['pairs']} rows that ended in both{_left_out(found)}",
        f"resolved   A {_share(found['both'] + found['only_a'], found['pairs'])}, "
        f"B {_share(found['both'] + found['only_b'], found['pairs'])}",
        f"           both {found['both']}, only A {found['only_a']}, only B {found['only_b']}, "
        f"neither {found['neither']}",
        f"p-value    {found['p_value']:.4g}  (McNemar's exact test, two-sided)",
        f"cost       A {cost(found['cost_a_usd'])}, B {cost(found['cost_b_usd'])}{_cost_difference(found)}",
        f"steps      A {found['steps_a']:,}, B {found['steps_b']:,} ({found['steps_b'] - found['steps_a']:+,})",
        *(f"  only {each['resolved_by'].upper()}   {each['id']}" for each in found["different"]),
    ]
    return "\n".join(lines)


def _left_out(found: Doc) -> str:
    others = (
        (found["unfinished"], "have not ended"),
        (found["unpaired_a"], "only in A"),
        (found["unpaired_b"], "only in B"),
    )
    named = ", ".join(f"{number} {what}" for number, what in others if number)
    return f"; left out: {named}" if named else ""


def _cost_difference(found: Doc) -> str:
    if found["cost_a_usd"] is None or found["cost_b_usd"] is None:
        return ""
    return f" ({found['cost_b_usd'] - found['cost_a_usd']:+.4f})"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({100 * part / whole:.1f} %)" if whole else "")


def _mean(value: float | None, words: Any) -> str:
    return "" if value is None else f", {words(value)} for each order"


def _counted(label: str, counts: dict[str, int]) -> list[str]:
    return [f"{'' if at else label:<10} {count:>5}  {name}" for at, (name, count) in enumerate(counts.items())]
