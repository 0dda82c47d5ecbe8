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


def test_a_change_has_only_what_was_typed() -> None:
    assert fields(agents.EDIT, boss="chief") == {"boss": "chief"}


def test_a_word_takes_a_value_away_in_a_change() -> None:
    assert fields(agents.EDIT, boss="none", model="default", cost_limit="none") == {
        "boss": None,
        "model": None,
        "cost_limit": None,
    }


def test_the_same_word_is_a_name_where_something_is_made() -> None:
    assert fields(agents.ADD, boss="none")["boss"] == "none"


def test_a_flag_empties_a_mapping_in_a_change() -> None:
    assert fields(agents.EDIT, no_labels=True) == {"labels": {}}


def test_values_and_the_flag_that_takes_them_away_exclude_each_other() -> None:
    with pytest.raises(Invalid, match="--label and --no-labels cannot be used together"):
        fields(agents.EDIT, no_labels=True, labels=["gpu=yes"])


def test_a_sum_may_have_its_currency() -> None:
    assert fields(agents.EDIT, cost_limit="$0.50") == {"cost_limit": "0.50"}


def test_a_file_is_read_where_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "lead.md").write_text("You lead.\n")
    assert fields(agents.EDIT, instructions=str(tmp_path / "lead.md")) == {"instructions": "You lead."}


def test_a_switch_that_is_off_is_a_value_and_one_that_is_not_named_is_none() -> None:
    assert fields(webhooks.EDIT, enabled=False) == {"enabled": False}
    assert fields(webhooks.EDIT) == {}


def test_a_secret_that_has_a_reader_is_an_option_and_comes_from_stdin_for_a_dash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("whsec_x\n"))
    assert fields(webhooks.EDIT, secret="-") == {"secret": "whsec_x"}


def test_a_person_gets_as_many_as_the_command_says() -> None:
    assert isinstance(webhooks.DELIVERIES.command, Command)
    [limit] = [each for each in parameters(webhooks.DELIVERIES, webhooks.DELIVERIES.command) if each.name == "limit"]
    assert "default: 20" in limit.annotation.__metadata__[0].help


def test_a_mapping_without_entries_is_shown_as_what_its_absence_means() -> None:
    provider = {"name": "main", "model": "m", "context_window": 16_000, "params": {}, "fallbacks": [], "key": "none"}

    lines = lines_of(provider, providers.SHOW).splitlines()

    assert "params          none" in lines
    assert "context window  16,000 tokens" in lines
