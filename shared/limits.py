"""The limits of a run, declared once: name, meaning, unit and bounds. Defaults and types are those of `Limits`.

Each can be set for an order or task, a session, an agent, a project and an organization; the first of these that sets
it counts (O-020). What the owner of a drone allows bounds all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

from shared.work_order import Limits

LimitLevel = Literal["order", "task", "session", "agent", "project", "organization", "default"]
"""Where the value of a limit comes from."""
LimitValue = bool | int | float
_DAY = 86_400
_MONTH = 31 * _DAY


@dataclass(frozen=True)
class LimitSetting:
    """One limit; its name is that of the field of `Limits`."""

    name: str
    help: str
    """What it bounds, and what 0 means, if that is special."""
    most: float = 1
    least: float = 0
    unit: str = ""

    @property
    def default(self) -> LimitValue:
        value: LimitValue = self.kind(Limits.model_fields[self.name].default)
        return value

    @property
    def kind(self) -> type[bool] | type[int] | type[float]:
        """The type of its values."""
        kinds: dict[Any, type[bool] | type[int] | type[float]] = {bool: bool, int: int, float: float}
        return kinds[Limits.model_fields[self.name].annotation]

    def checked(self, given: Any) -> LimitValue:
        """The value in the type of the limit. Raises ValueError, which names the limit and its bounds."""
        if self.kind is bool:
            if not isinstance(given, bool):
                raise ValueError(f"{self.name} must be true or false")
            return given
        if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given):
            raise ValueError(f"{self.name} must be a number")
        if self.kind is int and given != int(given):
            raise ValueError(f"{self.name} must be a whole number")
        if not self.least <= given <= self.most:
            raise ValueError(f"{self.name} must be {self.least:,g} to {self.most:,g}")
        return self.kind(given)


LIMITS: tuple[LimitSetting, ...] = (
    LimitSetting("max_iterations", "Answers of the model; 0 = unlimited.", 1_000_000_000),
    LimitSetting("cost_limit", "Cost of the model's answers; 0 = unlimited.", 1_000_000, unit="USD"),
    LimitSetting("token_limit", "Input and output of all answers; 0 = unlimited.", 10**12, unit="tokens"),
    LimitSetting(
        "max_run_seconds", "Working time; waiting for a user does not count; 0 = unlimited.", _MONTH, unit="s"
    ),
    LimitSetting(
        "command_timeout", "One shell command, unless its call asks for another time; 0 = none.", _DAY, unit="s"
    ),
    LimitSetting("max_format_errors", "Consecutive answers that cannot be acted on.", 1000, least=1),
    LimitSetting("retry_enabled", "Whether failed model calls are repeated."),
    LimitSetting("max_retries", "Repetitions of a failed model call.", 100),
    LimitSetting("base_delay", "Wait before the first repetition; doubled for each further one.", 3600, unit="s"),
    LimitSetting("approval_timeout", "Wait for a decision, which then counts as denied; 0 = none.", _MONTH, unit="s"),
    LimitSetting("progress_timeout", "Silence after which a run is ended; 0 = none.", _MONTH, unit="s"),
    LimitSetting("verify_attempts", "How often failed checks are returned to the model.", 1000),
    LimitSetting("compaction_enabled", "Whether a full window is compacted without being asked."),
    LimitSetting(
        "reserve_tokens",
        "Room for the answer: compaction starts that far below the window; 0 = a quarter, at most 8192.",
        10_000_000,
        unit="tokens",
    ),
    LimitSetting(
        "keep_recent_tokens",
        "End of the conversation that a compaction keeps; 0 = a quarter of the window, at most 16384.",
        10_000_000,
        unit="tokens",
    ),
)
_BY_NAME: Mapping[str, LimitSetting] = {each.name: each for each in LIMITS}
NAMES = ", ".join(_BY_NAME)


def checked_limits(given: Mapping[str, Any] | None) -> dict[str, LimitValue] | None:
    """The values in their types. Raises ValueError for an unknown name or a value out of bounds."""
    if given is None:
        return None
    if unknown := sorted(set(given) - set(_BY_NAME)):
        raise ValueError(f"unknown limit {unknown[0][:80]!r}; the limits are {NAMES}")
    return {name: _BY_NAME[name].checked(value) for name, value in given.items()}


@dataclass(frozen=True)
class EffectiveLimits:
    """The limits of a run, and where each one comes from."""

    limits: Limits
    sources: Mapping[str, LimitLevel] = field(default_factory=dict)
    """Of those that are not the default."""


def effective(levels: Sequence[tuple[LimitLevel, Mapping[str, Any]]]) -> EffectiveLimits:
    """The limits that apply; of several levels that set one, the first counts."""
    values: dict[str, Any] = {}
    sources: dict[str, LimitLevel] = {}
    for level, given in reversed(levels):
        values.update(given)
        sources.update(dict.fromkeys(given, level))
    return EffectiveLimits(Limits.model_validate(values), sources)
