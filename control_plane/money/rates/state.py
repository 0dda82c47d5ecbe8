"""The state of a group of runs that share a key at an endpoint, as it is stored in the broker."""

from __future__ import annotations

from pydantic import BaseModel, Field

from control_plane.money.rates.call_log import FUTURE, Amounts, Entry, Limits, forget
from shared.rates import LONGEST_PAUSE, Kind

HEADERS_LAST = 900.0
"""Seconds for which a limit from headers applies if no answer repeats it."""
SETTINGS_LAST = 600.0
"""Seconds for which the limits of a provider apply to the group after the last call through this provider."""
LEARNED_LASTS = 3600.0
RUN_LASTS = 60.0
"""A run that did not call for so long does not count as active."""


class ModelState(BaseModel):
    """What is known about one model: endpoints limit the calls of each model separately."""

    log: list[Entry] = Field(default_factory=list)
    limits: dict[Kind, tuple[float, float]] = Field(default_factory=dict)
    """From headers, each with the time at which it was seen."""
    elsewhere: dict[Kind, tuple[float, float]] = Field(default_factory=dict)
    """What others use of a limit, by the headers' remaining amounts, each with the time until which it counts."""
    learned: float = 0.0
    """Requests per minute, from refusals; 0: none was refused."""
    proven: float = 0.0
    """The learned limit before it was last raised."""
    refused_at: float = 0.0
    grown_at: float = 0.0
    growths: int = 0
    """How often the learned limit was raised since the last refusal."""

    def named_limits(self) -> dict[Kind, float]:
        """The limits from headers, without what others use of them."""
        return {kind: limit for kind, (limit, _seen_at) in self.limits.items()}

    def effective_limits(self) -> dict[Kind, float]:
        """The limits for calls of this model: from headers and refusals, without what others use of them.

        At least half of a limit is left: some endpoints name a remaining amount that means something else.
        """
        found = {kind: max(limit / 2, limit - self._elsewhere(kind)) for kind, limit in self.named_limits().items()}
        if self.learned:
            found["requests"] = min(self.learned, found.get("requests", self.learned))
        return found

    def _elsewhere(self, kind: Kind) -> float:
        return self.elsewhere.get(kind, (0.0, 0.0))[0]


class WaitingRun(BaseModel):
    """A run that waits for a permit."""

    rank: int
    organization_id: str
    since: float
    model: str
    need: Amounts
    asks_at: float
    """When it asks again."""


class FreeCalls(BaseModel):
    """Calls that a run may make without asking, and has not reported."""

    model: str
    calls: float
    tokens: float
    until: float


class GroupState(BaseModel):
    """All that the runs of a group share. Losing it is harmless: the endpoint still refuses what exceeds its limits."""

    models: dict[str, ModelState] = Field(default_factory=dict)
    log: list[Entry] = Field(default_factory=list)
    """The calls of all models."""
    settings: dict[str, tuple[int, int, float]] = Field(default_factory=dict)
    """`rpm` and `tpm` of the group's providers by id, and when a run last called through each."""
    paused_until: float = 0.0
    spread_until: float = 0.0
    """Until then, calls are spread evenly over the minute."""
    refusals: int = 0
    """Consecutive refusals, with no accepted call in between."""
    waiting: dict[str, WaitingRun] = Field(default_factory=dict)
    free: dict[str, FreeCalls] = Field(default_factory=dict)
    """By run and model. They count as used until the run's next report, which says how many it made."""
    served: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """By organization: the share of the limits that it used lately, and the time of this value."""
    runs: dict[str, float] = Field(default_factory=dict)
    """When each run last asked."""

    def model(self, name: str) -> ModelState:
        return self.models.setdefault(name, ModelState())

    def group_limits(self) -> Limits:
        """The limits of the providers' settings, which apply to all models together."""
        rpm = [rpm for rpm, _, _ in self.settings.values() if rpm]
        tpm = [tpm for _, tpm, _ in self.settings.values() if tpm]
        found: dict[Kind, float] = {}
        if rpm:
            found["requests"] = min(rpm)
        if tpm:
            found["tokens"] = min(tpm)
        return found

    def reserved(self, kind: Kind, model: str | None = None) -> float:
        """What may be used without asking, of one model or of all."""
        mine = [each for each in self.free.values() if model is None or each.model == model]
        return sum(each.calls if kind == "requests" else each.tokens for each in mine)

    def forget_old(self, now: float) -> None:
        """Remove all that no longer matters, so that the state stays small, and what a clock that was ahead left."""
        if self.paused_until > now + LONGEST_PAUSE:
            self.paused_until = 0.0
        self.waiting = {run: each for run, each in self.waiting.items() if each.since <= now + FUTURE}
        self.free = {key: each for key, each in self.free.items() if now < each.until <= now + LONGEST_PAUSE}
        forget(self.log, now)
        for model in self.models.values():
            forget(model.log, now)
            model.refused_at, model.grown_at = min(model.refused_at, now), min(model.grown_at, now)
            model.limits = {k: v for k, v in model.limits.items() if now - v[1] < HEADERS_LAST}
            model.elsewhere = {k: v for k, v in model.elsewhere.items() if now < v[1]}
            if now - max(model.refused_at, model.grown_at) > LEARNED_LASTS:
                model.learned = 0.0
        self.models = {name: m for name, m in self.models.items() if m.log or m.limits or m.learned}
        self.settings = {k: v for k, v in self.settings.items() if now - v[2] < SETTINGS_LAST}
        self.runs = {run: at for run, at in self.runs.items() if now - at < RUN_LASTS}
        self.served = {k: v for k, v in self.served.items() if now - v[1] < 300.0}
