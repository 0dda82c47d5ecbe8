"""Decides who of a group calls next: the most urgent first, then organizations in turn, then first come, first served.

Permits are given up to a second and a half ahead, each with its time, so that no part of the limit is lost while a run
asks; a more urgent run waits for no more than these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from control_plane.money.rates.call_log import (
    MINUTE,
    PART,
    Amounts,
    Entry,
    Limits,
    Slot,
    add,
    amounts_of,
    next_slot,
    part_of,
    used,
)
from control_plane.money.rates.feedback import grow, take_report
from control_plane.money.rates.state import FreeCalls, GroupState, WaitingRun
from shared.rates import KINDS, UNLIMITED, Kind, ModelPermit, PermitRequest, Tokens

AHEAD = 1.5
"""Seconds."""
ASKS_AGAIN = (0.2, 10.0)
"""A waiting run asks again at least and at most after so many seconds."""
REPORTED_SOON = 1.0
"""The same while other runs may make calls without asking: their reports may show that fewer were made."""
GRACE = 2.0
"""A waiting run that has not asked for so long after its time is gone."""
FREE_SECONDS = 10.0
FREE_BELOW = 0.5
"""While less than this part of a limit is used, runs may make calls without asking, up to the same part together."""
MOST_FREE = 50
HALF_LIFE = 30.0
"""Seconds after which half of what an organization used is forgotten."""


@dataclass(frozen=True)
class Asker:
    """The run that asks."""

    run_id: str
    organization_id: str
    provider_id: str
    model: str
    rpm: int
    tpm: int
    rank: int
    """The highest goes first."""

    @property
    def run_and_model(self) -> str:
        """Names its calls without asking."""
        return f"{self.run_id} {self.model}"


def seconds_until_call(state: GroupState, model: str, now: float) -> float:
    """How long a run of the group that begins now would wait for its first call, if no other run waited."""
    state.forget_old(now)
    asker = Asker(run_id="", organization_id="", provider_id="", model=model, rpm=0, tpm=0, rank=0)
    return PermitDecision(state, asker, now).soonest()


@dataclass
class PermitDecision:
    """One request, and the group's state, which it changes."""

    state: GroupState
    asker: Asker
    now: float
    _logs: dict[str, list[Entry]] = field(default_factory=dict)
    """The logs with the permits of those who go first, who have not asked yet; '' for all models."""

    def answer(self, request: PermitRequest) -> ModelPermit:
        """Take in the reports, and decide about the next call, if there is one."""
        state, asker = self.state, self.asker
        state.forget_old(self.now)
        state.runs[asker.run_id] = self.now
        state.settings[asker.provider_id] = (asker.rpm, asker.tpm, self.now)
        self._free_calls(request.unended)
        for report in request.reports:
            take_report(state, asker.model, report, self.now)
            if report.at is None and report.made:
                self._serve(asker.organization_id, amounts_of(report.used or report.expected))
        grow(state.model(asker.model), self.now)
        permit = ModelPermit() if request.expected is None else self._decide(request.expected)
        return permit.model_copy(update=self._freedom(request.unended))

    def soonest(self) -> float:
        """Seconds until one call more fits; nothing is granted."""
        need = amounts_of(Tokens())
        return self._next(self._waiting_run(self.now, need)).at - self.now

    # --- the next call ---------------------------------------------------------------

    def _decide(self, expected: Tokens) -> ModelPermit:
        state, asker = self.state, self.asker
        need = amounts_of(expected)
        known = state.waiting.pop(asker.run_id, None)
        me = self._waiting_run(known.since if known else self.now, need)
        state.waiting = {run: each for run, each in state.waiting.items() if each.asks_at + GRACE > self.now}
        self._logs = {"": list(state.log), asker.model: list(state.model(asker.model).log)}
        slot = self._slot_of(me)
        if slot is not None and slot.at <= self.now + AHEAD:
            self._grant(slot.at, need)
            return ModelPermit(granted=True, at=slot.at, wait_s=slot.at - self.now)
        return self._wait(me)

    def _waiting_run(self, since: float, need: Amounts) -> WaitingRun:
        asker = self.asker
        return WaitingRun(
            rank=asker.rank,
            organization_id=asker.organization_id,
            since=since,
            model=asker.model,
            need=need,
            asks_at=self.now,
        )

    def _slot_of(self, me: WaitingRun) -> Slot | None:
        """The asking run's time, after those that go first; None if these use up all that can be given now."""
        served = {org: self._served(org) for org in self._organizations(me)}
        # Who asks later than permits are given ahead cannot use a time that could be given now.
        others = [each for each in self.state.waiting.values() if each.asks_at <= self.now + AHEAD]
        while True:
            ranked = sorted([me, *others], key=lambda each: (-each.rank, served[each.organization_id], each.since))
            for first in ranked:
                slot = self._next(first)
                # One that asks only after this time leaves it to the next one.
                if first.asks_at <= slot.at:
                    break
            if first is me:
                return slot
            others.remove(first)
            if slot.at > self.now + AHEAD:
                if first.model == me.model:
                    return None
                continue
            for name in ("", first.model):
                add(self._log(name), slot.at, first.need)
            served[first.organization_id] += self._share(first.need, first.model)

    def _next(self, run: WaitingRun) -> Slot:
        """The earliest time for this run's call."""
        state = self.state
        log = self._log(run.model)
        limits = state.models[run.model].effective_limits() if run.model in state.models else {}
        slot = Slot(max(self.now, state.paused_until))
        everywhere = next_slot(self._log(""), state.group_limits(), run.need, slot.at, self._reserved())
        slot = everywhere if everywhere.kind else slot
        here = next_slot(log, limits, run.need, slot.at, self._reserved(run.model))
        slot = here if here.kind else slot
        rpm = self._requests_per_minute(limits)
        if self.now < state.spread_until and rpm and log and (spread := log[-1][0] + MINUTE / rpm) > slot.at:
            slot = Slot(spread, "requests")
        return slot

    def _grant(self, at: float, need: Amounts) -> None:
        state = self.state
        for log in (state.log, state.model(self.asker.model).log):
            add(log, at, need)
        self._serve(self.asker.organization_id, need)

    def _wait(self, me: WaitingRun) -> ModelPermit:
        state = self.state
        slot, position = self._next(me), self._position(me)
        limits = {**state.model(me.model).effective_limits(), **_smaller(state, me.model)}
        rpm = self._requests_per_minute(state.model(me.model).effective_limits())
        left = slot.at - self.now + ((position - 1) * MINUTE / rpm if rpm else 0.0)
        most = REPORTED_SOON if state.free else ASKS_AGAIN[1]
        wait = min(max(left - AHEAD / 2, ASKS_AGAIN[0]), most)
        me.asks_at = self.now + wait
        state.waiting[self.asker.run_id] = me
        kind: Kind = slot.kind or KINDS[0]
        paused = slot.at <= state.paused_until
        return ModelPermit(
            wait_s=wait,
            left_s=left,
            kind=kind,
            limit=0.0 if paused else limits.get(kind, 0.0),
            position=position,
            waiting=len(state.waiting),
            urgent=sum(each.rank > me.rank for each in state.waiting.values()),
        )

    def _position(self, me: WaitingRun) -> int:
        """Its place in the queue, if organizations take turns."""
        mine = 0
        others: dict[str, int] = {}
        urgent = 0
        for each in self.state.waiting.values():
            if each.rank > me.rank:
                urgent += 1
            elif each.rank == me.rank and each.organization_id == me.organization_id:
                mine += each.since < me.since
            elif each.rank == me.rank:
                others[each.organization_id] = others.get(each.organization_id, 0) + 1
        return 1 + urgent + mine + sum(min(count, mine + 1) for count in others.values())

    # --- calls without asking ----------------------------------------------------------

    def _free_calls(self, calls: int, tokens: float = 0.0) -> None:
        """Reserve what the run may use, or has used, without asking, in place of what was reserved for it before."""
        key = self.asker.run_and_model
        self.state.free.pop(key, None)
        if calls:
            until = self.now + FREE_SECONDS
            self.state.free[key] = FreeCalls(model=self.asker.model, calls=calls, tokens=tokens, until=until)

    def _freedom(self, unended: int) -> dict[str, Any]:
        """What the run may do without asking, and while nothing answers."""
        state, asker = self.state, self.asker
        here = state.model(asker.model)
        pairs = [
            (here.log, here.effective_limits(), self._reserved(asker.model)),
            (state.log, state.group_limits(), self._reserved()),
        ]
        paused = self.now < state.paused_until
        if not paused and not any(limits for _, limits, _ in pairs):
            return {"limited": False, **_free(UNLIMITED.free_calls, UNLIMITED.free_tokens)}
        runs = max(1, len(state.runs))
        share = {"limited": True, "share": self._requests_per_minute(pairs[0][1]) / runs}
        if paused or state.waiting or self.now < state.spread_until:
            return share
        free: dict[Kind, float] = {}
        for log, limits, reserved in pairs:
            for kind, limit in limits.items():
                if self._is_busy(log, kind, limit, reserved[kind]):
                    return share
                free[kind] = min(free.get(kind, limit), FREE_BELOW * part_of(kind, limit) / runs)
        calls = int(min(free.pop("requests", MOST_FREE), MOST_FREE))
        if not calls:
            return share
        tokens = min(free.values(), default=0.0)
        self._free_calls(calls + unended, tokens)
        return {**share, **_free(calls + unended, tokens or UNLIMITED.free_tokens)}

    def _is_busy(self, log: list[Entry], kind: Kind, limit: float, reserved: float) -> bool:
        rules = ((MINUTE, limit), (PART, part_of(kind, limit)))
        until = self.now + AHEAD
        return any(used(log, kind, self.now - span, until) + reserved >= FREE_BELOW * most for span, most in rules)

    def _reserved(self, model: str | None = None) -> dict[Kind, float]:
        return {kind: self.state.reserved(kind, model) for kind in KINDS}

    # --- fairness --------------------------------------------------------------------------

    def _organizations(self, me: WaitingRun) -> Iterator[str]:
        yield me.organization_id
        yield from (each.organization_id for each in self.state.waiting.values())

    def _served(self, organization_id: str) -> float:
        """What the organization used lately of the limits; older use counts less."""
        value, at = self.state.served.get(organization_id, (0.0, self.now))
        return value * math.exp2((at - self.now) / HALF_LIFE)

    def _serve(self, organization_id: str, need: Amounts) -> None:
        share = self._share(need, self.asker.model)
        self.state.served[organization_id] = (self._served(organization_id) + share, self.now)

    def _share(self, need: Amounts, model: str) -> float:
        """A call's part of the limits: of the one of which it takes the largest part."""
        limits = _smaller(self.state, model)
        return max((need[KINDS.index(kind)] / limit for kind, limit in limits.items()), default=0.0)

    def _log(self, name: str) -> list[Entry]:
        if name not in self._logs:
            self._logs[name] = list(self.state.models[name].log) if name in self.state.models else []
        return self._logs[name]

    def _requests_per_minute(self, limits: Limits) -> float:
        found = [each["requests"] for each in (limits, self.state.group_limits()) if "requests" in each]
        return min(found, default=0.0)


def _smaller(state: GroupState, model: str) -> dict[Kind, float]:
    """The limits for a model's calls: the smaller ones of its own and the group's."""
    here = state.models[model].effective_limits() if model in state.models else {}
    everywhere = state.group_limits()
    return {kind: min(limit[kind] for limit in (here, everywhere) if kind in limit) for kind in {**here, **everywhere}}


def _free(calls: int, tokens: float) -> dict[str, Any]:
    return {"free_s": FREE_SECONDS, "free_calls": calls, "free_tokens": tokens}
