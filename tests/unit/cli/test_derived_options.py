"""What is typed at a derived command, as fields of its request."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from control_plane.cli.labeled_fields import lines_of
from control_plane.cli.options import parameters, values
from control_plane.declarations import agents, providers, webhooks
from control_plane.declarations.operation import Command, Operation
from shared.errors import Invalid


def fields(operation: Operation, **given: Any) -> dict[str, Any]:
    """The fields that a command makes of these options; all others were left out."""
    assert isinstance(operation.command, Command)
    unset = {each.name: each.default for each in parameters(operation, operation.command)}
    return values(operation, {**unset, "name": "lead", **given})


def test_a_change_has_only_what_was_typed_and_a_word_or_a_flag_takes_a_value_away() -> None:
    assert fields(agents.EDIT, boss="chief") == {"boss": "chief"}
    assert fields(agents.EDIT, boss="none", model="default", cost_limit="none") == dict.fromkeys(
        ("boss", "model", "cost_limit")
    )
    assert fields(agents.EDIT, no_labels=True) == {"labels": {}}
    assert fields(agents.EDIT, cost_limit="$0.50") == {"cost_limit": "0.50"}
    assert fields(webhooks.EDIT, enabled=False) == {"enabled": False}
    assert fields(webhooks.EDIT) == {}
    # Where something is made, the same word is a name.
    assert fields(agents.ADD, boss="none")["boss"] == "none"
    with pytest.raises(Invalid):
        fields(agents.EDIT, no_labels=True, labels=["gpu=yes"])


def test_a_file_is_read_where_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "lead.md").write_text("You lead.\n")
    assert fields(agents.EDIT, instructions=str(tmp_path / "lead.md")) == {"instructions": "You lead."}


def test_a_secret_that_has_a_reader_is_an_option_and_comes_from_stdin_for_a_dash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("whsec_x\n"))
    assert fields(webhooks.EDIT, secret="-") == {"secret": "whsec_x"}


def test_a_mapping_without_entries_is_shown_as_what_its_absence_means() -> None:
    provider = {"name": "main", "model": "m", "context_window": 16_000, "params": {}, "fallbacks": [], "key": "none"}

    lines = lines_of(provider, providers.SHOW).splitlines()

    assert "params          none" in lines
    assert "context window  16,000 tokens" in lines
