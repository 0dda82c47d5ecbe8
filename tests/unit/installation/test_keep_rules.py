"""The table `[keep]` of the owner's policy: defaults, no limit, and values that would remove what is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.installation.owner_rules import KeepRules
from drone.installation.policy import load
from shared.errors import Precondition


def written(directory: Path, text: str) -> Path:
    file = directory / "policy.toml"
    file.write_text(f"[keep]\n{text}\n")
    return file


def test_without_a_table_the_defaults_apply(tmp_path: Path) -> None:
    assert load(tmp_path / "none.toml").keep == KeepRules(7, 30, 30, None, None)


def test_days_sizes_and_none_are_read(tmp_path: Path) -> None:
    text = 'run_days = 14\nworkspace_days = "none"\nmirror_days = 1\nworkspace_space = "2 MiB"\nmirror_space = "none"'
    assert load(written(tmp_path, text)).keep == KeepRules(14, None, 1, 2 * 1024 * 1024, None)


@pytest.mark.parametrize(
    "text", ["run_days = 6", "workspace_days = 0", "mirror_days = 1.5", 'mirror_space = "0"', "mirror_space = 0"]
)
def test_what_would_remove_too_much_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(Precondition, match="line 2") as refused:
        load(written(tmp_path, text))
    assert f"keep.{text.split(maxsplit=1)[0]} is invalid: expected" in refused.value.why
