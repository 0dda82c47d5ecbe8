"""Under which names the control plane answers, and what bodies and addresses may hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from control_plane.core.settings import FleetSettings, read_settings
from control_plane.web.browser_defenses import names_of, refuse_other_names
from control_plane.web.middleware import refuse_no_text, refuse_nul
from shared.errors import Forbidden, Invalid


def settings(tmp_path: Path, **given: str) -> FleetSettings:
    return read_settings(database_url="sqlite://", broker_url="redis://x", blob_dir=tmp_path, **given)


GIVEN = {"host": "bound.example", "public_url": "https://Fleet.Example:8420", "allowed_hosts": "proxy, Old.example"}
OURS = [
    "localhost",
    "localhost.:8420",
    "127.0.0.1:1",
    "[::1]:8420",
    "192.0.2.7",
    "bound.example:8420",
    "fleet.example",
    "old.example",
    "box.lan.example",
]
OTHERS = [
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "fleet.example.evil.example",
    "2130706433",
    "fleet.example@evil.example",
    "",
    ":8420",
    "[::1",
    "\\localhost",
]


def test_names_of_the_settings_and_the_machine_and_numeric_addresses_are_ours_and_every_other_is_refused(
    tmp_path: Path,
) -> None:
    names = names_of(settings(tmp_path, **GIVEN), "Box.lan.example")
    for host in OURS:
        refuse_other_names(host, names, "http://fleet")
    names = names_of(settings(tmp_path, **GIVEN), "")
    for host in (*OTHERS, "box:8420"):
        with pytest.raises(Forbidden) as refusal:
            refuse_other_names(host, names, "http://fleet:8420")
        assert refusal.value.code == "E-HOST"
    # With the variable to set.
    assert "FLEET_ALLOWED_HOSTS=box" in str(refusal.value.next)


def test_what_is_no_name_is_refused_in_the_settings(tmp_path: Path) -> None:
    for hosts in ("*", "https://fleet.example", "fleet.example:8420", "a,,b", "a b", "*.example"):
        with pytest.raises(Invalid, match="FLEET_ALLOWED_HOSTS: "):
            settings(tmp_path, allowed_hosts=hosts)


def test_a_text_that_nothing_can_hold_is_refused_however_deep_and_what_only_looks_like_one_is_not() -> None:
    for value in ("a\0b", "\ud83d", {"key \udc00": 1}, [[{"deep": ["\0"]}]]):
        with pytest.raises(Invalid):
            refuse_no_text(json.dumps(value).encode())
    with pytest.raises(Invalid):
        refuse_nul({"path": "/a\0b", "query_string": b""})
    for value in ("💥", "\\u0000 as text", "\\ud83d", "a\n\t\x01b", {}, None):
        refuse_no_text(json.dumps(value).encode())
    for body in (b"", b"{\\u0000", b"[" * 100_000 + b"\\u0000", b"\\ud800"):
        refuse_no_text(body)
