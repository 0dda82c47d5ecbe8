"""What a group learns from its calls: limits from headers, what others use, and from refusals a limit of its own."""

from __future__ import annotations

from control_plane.money.rates.call_log import MINUTE, add, amounts_of, used
from control_plane.money.rates.state import GroupState, ModelState
from shared.rates import LONGEST_PAUSE, CallReport, Rate

LEAST = 4.0
"""Requests per minute: a learned limit never falls below."""
STORM = 1.5
"""Seconds. Refusals of calls that had a permit when the last one became known count as one with it."""
SPREAD = 600.0
"""Seconds after a refusal in which calls are spread evenly: many endpoints enforce their limits in short intervals."""
CORRECTED_FOR = 15.0
"""Seconds after a refusal in which reports of other runs still raise the learned limit: they come late."""
GROWS_FIRST = 180.0
"""Seconds from a refusal until the learned limit is raised for the first time: each attempt may cost a refusal."""
GROWS_EVERY = 60.0
GROWTH = 0.02
BUSY = 0.7


def take_report(state: GroupState, model_name: str, report: CallReport, now: float) -> None:
    """Correct what was counted for a call by what it really used, and learn from its answer."""
    model = state.model(model_name)
    began = min(now, report.at if report.at is not None else now - min(report.age_s, 600.0))
    _count(state, model, report, began)
    for rate in report.rates:
        if rate.limit >= 1:
            model.limits[rate.kind] = (rate.limit, now)
            _note_others(model, rate, began, now)
    if report.refused:
        _refused(state, model, report, (began, now))
    elif report.made and report.used is not None and began > model.refused_at:
        state.refusals = 0
    if model.learned and now - model.refused_at < CORRECTED_FOR:
        model.learned = max(model.learned, _got_through(model))


def grow(model: ModelState, now: float) -> None:
    """Raise a learned limit slowly while it is used and not refused, and faster the longer this lasts.

    A limit that headers name is reached and then applies alone.
    """
    if not model.learned or now < max(model.refused_at + GROWS_FIRST, model.grown_at + GROWS_EVERY):
        return
    if used(model.log, "requests", now - MINUTE, now) < BUSY * model.learned:
        return
    model.proven = model.learned
    model.learned += max(1.0, GROWTH * model.learned * 2.0**model.growths)
    model.grown_at, model.growths = now, min(model.growths + 1, 6)
    named = model.named_limits().get("requests")
    if named is not None and model.learned >= named:
        model.learned = 0.0


def _count(state: GroupState, model: ModelState, report: CallReport, began: float) -> None:
    made = report.made and not report.refused
    counted = amounts_of(report.expected, requests=1.0) if report.at is not None else (0.0, 0.0, 0.0, 0.0)
    really = amounts_of(report.used or report.expected) if made else (0.0, 0.0, 0.0, 0.0)
    change = [a - b for a, b in zip(really, counted, strict=True)]
    for log in (state.log, model.log):
        add(log, began, change)


def _note_others(model: ModelState, rate: Rate, began: float, now: float) -> None:
    """Compare what the endpoint counted with what this fleet used by then: others may use the same key."""
    model.elsewhere.pop(rate.kind, None)
    if rate.remaining is None:
        return
    ours = used(model.log, rate.kind, began - MINUTE, began + 1.0)
    others = rate.limit - rate.remaining - ours
    if others > max(2.0, rate.limit / 10):
        lasts = 60.0 if rate.reset_s is None else min(60.0, rate.reset_s)
        model.elsewhere[rate.kind] = (others, now + lasts)


def _refused(state: GroupState, model: ModelState, report: CallReport, times: tuple[float, float]) -> None:
    """Pause the group, spread its calls, and learn a limit if that was not enough or none is known."""
    began, now = times
    same_storm = model.refused_at > 0 and began <= model.refused_at + STORM
    was_spread = now < state.spread_until
    lowest = model.proven if model.growths else LEAST
    state.refusals += not same_storm
    model.refused_at, model.growths = now, 0
    state.spread_until = now + SPREAD
    backoff = 2.0 ** min(state.refusals, 5)
    asked = report.retry_after_s
    pause = backoff if asked is None else min(asked if state.refusals < 3 else max(asked, backoff), LONGEST_PAUSE)
    state.paused_until = max(state.paused_until, now + pause)
    if not same_storm:
        _learn(state, model, lowest, was_spread=was_spread)


def _learn(state: GroupState, model: ModelState, lowest: float, *, was_spread: bool) -> None:
    """Set the learned limit after a refusal. `lowest`: what was not refused before the limit was last raised."""
    known, passed = _known_limit(state, model), _got_through(model)
    if known is None:
        model.learned = max(passed, LEAST)
    elif state.refusals > 1:
        # Nothing was accepted in between: the limit is lower than before.
        model.learned = max(min(passed, known), LEAST)
    elif model.learned and was_spread:
        model.learned = max(min(max(passed, lowest), known), LEAST)
    elif was_spread and passed < 0.9 * known:
        model.learned = max(passed, known / 2, LEAST)


def _known_limit(state: GroupState, model: ModelState) -> float | None:
    """Requests per minute by the headers, the settings and earlier refusals; None: unknown."""
    found = [model.named_limits().get("requests"), state.group_limits().get("requests"), model.learned or None]
    return min((limit for limit in found if limit is not None), default=None)


def _got_through(model: ModelState) -> float:
    """Requests that the endpoint accepted in the minute before the last refusal."""
    return used(model.log, "requests", model.refused_at - 60.0, model.refused_at)
