"""The settings of the retention: 0 would remove everything, so it is refused; `unlimited` keeps for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane.core.settings import KEPT, FleetSettings, read_settings
from shared.errors import Invalid

GIVEN = {"database_url": "sqlite:////x.db", "broker_url": "redis://x/0", "blob_dir": Path("/x")}


def test_the_defaults_keep_the_history_of_people_for_long_and_readings_for_a_week() -> None:
    found = read_settings(**GIVEN)
    assert [getattr(found, name) for name in KEPT] == [365, 90, 180, 30, 7, 30, None]


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("given", ["0", "-1", "0.5", "forever", "1e3"])
def test_what_would_remove_everything_is_refused_with_what_to_write_instead(
    monkeypatch: pytest.MonkeyPatch, name: str, given: str
) -> None:
    monkeypatch.setenv(f"FLEET_{name.upper()}", given)
    with pytest.raises(Invalid, match=f"FLEET_{name.upper()}: .*from 1 on, or unlimited") as refused:
        read_settings(**GIVEN)
    assert refused.value.code == "E-SETTINGS"


@pytest.mark.parametrize("given", ["", "unlimited"])
def test_unlimited_or_nothing_keeps_for_ever(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    for name in KEPT:
        monkeypatch.setenv(f"FLEET_{name.upper()}", given)
    found = FleetSettings(**GIVEN)
    assert [getattr(found, name) for name in KEPT] == [None] * len(KEPT)


def test_a_number_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_KEEP_LOGS_DAYS", "14")
    assert read_settings(**GIVEN).keep_logs_days == 14
