"""A new password for the broker of a `fleet up`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from control_plane.embedded.broker_password import with_new_password
from control_plane.embedded.data_dir import DataDir


def test_only_the_password_is_new(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    data.remember(replace(data.remembered(), broker_port=6400))
    known = data.remembered()
    new = with_new_password(data)
    assert new.broker_password != known.broker_password
    assert replace(new, broker_password=known.broker_password) == known
