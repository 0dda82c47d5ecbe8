"""The clock of the broker, by which permits are decided, set by hand."""

from __future__ import annotations

import pytest
import redis

from tests.support.clocks import HandClock


@pytest.fixture
def broker_clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    """What the broker answers when this process asks for its time; it stands still until a test advances it."""
    clock = HandClock()
    monkeypatch.setattr(redis.client.Pipeline, "time", lambda _: divmod(round(clock.now().timestamp() * 1e6), 10**6))
    return clock
