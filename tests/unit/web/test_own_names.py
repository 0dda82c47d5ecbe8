"""Under which names the control plane answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane.core.settings import FleetSettings, read_settings
from control_plane.web.host_names import names_of, refuse_other_names
from shared.errors import Forbidden, Invalid


def settings(tmp_path: Path, **given: str) -> FleetSettings:
    return read_settings(database_url="sqlite://", broker_url="redis://x", blob_dir=tmp_path, **given)


GIVEN = {"host": "bound.example", "public_url": "https://Fleet.Example:8420", "allowed_hosts": "proxy, Old.example"}
OURS = [
    "localhost",
    "LOCALHOST:8420",
    "localhost.:8420",
    "127.0.0.1:1",
    "[::1]:8420",
    "192.0.2.7",
    "bound.example:8420",
    "fleet.example",
    "proxy:8420",
    "old.example",
    "box.lan.example",
    "box.local:8420",
]
OTHERS = [
    "evil.example",
    "evil.example:8420",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "fleet.example.evil.example",
    "evil-fleet.example",
    "2130706433",
    "0x7f.1",
    "fleet.example@evil.example",
    "",
    ":8420",
    "[",
    "[::1",
    ".local",
    "\\localhost",
]


def test_names_of_the_settings_and_the_machine_and_numeric_addresses_are_ours(tmp_path: Path) -> None:
    names = names_of(settings(tmp_path, **GIVEN), "Box.lan.example")
    for host in OURS:
        refuse_other_names(host, names, "http://fleet")


def test_every_other_name_is_refused_with_the_variable_to_set(tmp_path: Path) -> None:
    names = names_of(settings(tmp_path, **GIVEN), "")
    for host in OTHERS:
        with pytest.raises(Forbidden) as refusal:
            refuse_other_names(host, names, "http://fleet:8420")
        assert refusal.value.code == "E-HOST"
    with pytest.raises(Forbidden) as refusal:
        refuse_other_names("box:8420", names, "http://fleet:8420")
    assert "FLEET_ALLOWED_HOSTS=box" in str(refusal.value.next)


def test_what_is_no_name_is_refused_in_the_settings(tmp_path: Path) -> None:
    for hosts in ("*", "https://fleet.example", "fleet.example:8420", "a,,b", "a b", "*.example"):
        with pytest.raises(Invalid, match="FLEET_ALLOWED_HOSTS: "):
            settings(tmp_path, allowed_hosts=hosts)
