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


def test_what_would_remove_everything_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEPT:
        for given in ("0", "-1", "0.5", "forever", "1e3"):
            with monkeypatch.context() as patch:
                patch.setenv(f"FLEET_{name.upper()}", given)
                with pytest.raises(Invalid, match=f"FLEET_{name.upper()}: ") as refused:
                    read_settings(**GIVEN)
            assert refused.value.code == "E-SETTINGS"


def test_unlimited_or_nothing_keeps_for_ever_and_a_number_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, kept in (("", None), ("unlimited", None), ("1", 1)):
        for name in KEPT:
            monkeypatch.setenv(f"FLEET_{name.upper()}", given)
        found = FleetSettings(**GIVEN)
        assert [getattr(found, name) for name in KEPT] == [kept] * len(KEPT)
