"""What a user types, as the values of a request: mappings, amounts and durations with their unit, secrets."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from control_plane.cli.options import of_kind, parameters, secret, values
from control_plane.contract.declarations import agents, orders, pools, users, webhooks
from control_plane.contract.declarations.operation import Command, Operation
from shared.errors import Invalid
from shared.terminal.command_line import read_secret


def test_a_mapping_takes_json_where_it_is_json_and_text_where_not() -> None:
    given = ["temperature=0.2", "stop=[1]", "voice=a=b"]
    assert of_kind(given, dict[str, Any], "") == {"temperature": 0.2, "stop": [1], "voice": "a=b"}
    assert of_kind(["gpu=1"], dict[str, str], "") == {"gpu": "1"}
    for pair in ("temperature", "=1", ""):
        with pytest.raises(Invalid):
            of_kind([pair], dict[str, Any], "")


def test_an_amount_may_be_typed_with_its_unit() -> None:
    assert {of_kind(text, float, "USD/day") for text in ("2.5", "$2.5", "2.5/day", "$2.5/day")} == {"2.5"}


def test_a_secret_comes_from_a_variable_or_from_stdin_and_not_from_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-1")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"sk-2\nmore\n")))
    assert secret("key", "MY_KEY", from_stdin=False) == "sk-1"
    assert secret("key", None, from_stdin=True) == "sk-2"
    assert secret("key", None, from_stdin=False) is None
    with pytest.raises(Invalid):
        secret("key", "MY_KEY", from_stdin=True)
    monkeypatch.setenv("MY_KEY", "")
    with pytest.raises(Invalid, match="MY_KEY"):
        secret("key", "MY_KEY", from_stdin=False)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"whsec_x\n")))
    assert fields(webhooks.EDIT, secret="-") == {"secret": "whsec_x"}
    with pytest.raises(Invalid):
        read_secret("-", "token")


def test_a_duration_is_typed_with_its_unit_or_in_seconds_and_shown_with_its_unit() -> None:
    typed = {"30m": 1800, "90": "90", "0.5": "0.5", "0": "0"}
    assert {text: values(orders.SUBMIT, {"approval_timeout": text})["approval_timeout"] for text in typed} == typed
    for text in ("soon", "1.5h", ""):
        with pytest.raises(Invalid) as refused:
            values(orders.SUBMIT, {"approval_timeout": text})
        assert (refused.value.code, refused.value.next) == ("E-DURATION", "--approval-timeout 1h")
    assert isinstance(pools.ROTATE.command, Command)
    (expires,) = (each for each in parameters(pools.ROTATE, pools.ROTATE.command) if each.name == "expires_s")
    option = expires.annotation.__metadata__[0]
    assert (option.metavar, "default: 365d" in option.help) == ("DURATION", True)


def test_the_shell_offers_the_choices_that_a_field_or_its_type_declares() -> None:
    for operation, name, word in ((users.ADD, "role", "operator"), (agents.ADD, "thinking", "medium")):
        (found,) = (each for each in parameters(operation, Command("", "", "")) if each.name == name)
        complete = found.annotation.__metadata__[0].autocompletion
        assert complete(None, word[:2]) == [(word, "")]


def fields(operation: Operation, **given: Any) -> dict[str, Any]:
    """The fields that a command makes of these options; all others were left out."""
    assert isinstance(operation.command, Command)
    unset = {each.name: each.default for each in parameters(operation, operation.command)}
    return values(operation, {**unset, "name": "lead", **given})


def test_a_change_has_only_what_was_typed_and_a_word_or_a_flag_takes_a_value_away(tmp_path: Path) -> None:
    assert fields(agents.EDIT, boss="chief") == {"boss": "chief"}
    assert fields(agents.EDIT, boss="none", model="default", cost_limit="none") == dict.fromkeys(
        ("boss", "model", "cost_limit")
    )
    assert fields(agents.EDIT, no_labels=True) == {"labels": {}}
    assert fields(agents.EDIT, cost_limit="$0.50") == {"cost_limit": "0.50"}
    assert fields(webhooks.EDIT, enabled=False) == {"enabled": False}
    assert fields(webhooks.EDIT) == {}
    file = tmp_path / "lead.md"
    file.write_text("You lead.\n")
    assert fields(agents.EDIT, instructions=str(file)) == {"instructions": "You lead."}
    # Where something is made, the same word is a name.
    assert fields(agents.ADD, boss="none")["boss"] == "none"
    with pytest.raises(Invalid):
        fields(agents.EDIT, no_labels=True, labels=["gpu=yes"])
