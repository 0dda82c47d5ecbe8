"""New passwords for a `fleet up`."""

from __future__ import annotations

from dataclasses import replace

from control_plane.embedded.data_dir import Remembered


def test_only_the_passwords_are_new() -> None:
    known = Remembered(port=1, broker_port=6400, broker_password="old", flower_password="old")
    new = known.with_new_passwords()
    assert len({"old", new.broker_password, new.flower_password}) == 3
    assert replace(new, broker_password="old", flower_password="old") == known
