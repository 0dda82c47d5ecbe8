"""What a value must look like before it is stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.validation.checks import (
    check_labels,
    check_name,
    check_organization,
    check_text,
    check_variable,
    shown,
    unknown,
)
from shared.errors import FleetError, Invalid, TooLarge


def test_usual_values_are_taken_and_others_refused() -> None:
    names = ["a", "0", "web", "my-app_2.0", "x" * 64]
    assert [check_name("project", name) for name in names] == names
    organizations = ["default", "my_team", "team2"]
    assert [check_organization(name) for name in organizations] == organizations
    for name in ("user", "system", "My_team", "my-team", "_x", "x_", "2x", "", "a__b"):
        with pytest.raises(Invalid):
            check_organization(name)
    labels: list[dict[str, str]] = [{}, {"gpu": "yes"}, {"a/b.c-d_e": "1.2:3/4+5"}, {"k": ""}]
    assert [check_labels(each) for each in labels] == labels
    with pytest.raises(Invalid):
        check_labels({f"k{number}": "v" for number in range(1000)})
    assert check_variable("_OPENAI_API_KEY2") == "_OPENAI_API_KEY2"
    with pytest.raises(TooLarge):
        check_text("the prompt", "123456", limit=5)


@given(text=st.text(max_size=200))
def test_a_name_that_is_taken_is_safe_in_a_path_a_url_and_a_shell(text: str) -> None:
    taken = taken_as(text)
    assert taken.isascii()
    assert set(taken) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert not taken.startswith((".", "-", "_"))


def taken_as(text: str) -> str:
    """The name, or '' where it is refused."""
    try:
        return check_name("project", text)
    except Invalid:
        return ""


def test_a_name_of_10000_characters_is_counted_and_not_repeated() -> None:
    with pytest.raises(Invalid, match="invalid project name") as refusal:
        check_name("project", "x" * 10_000)
    assert len(refusal.value.what) < 130
    assert refusal.value.why == "it has 10000 characters; 64 are allowed"


def test_what_is_shown_is_never_over_80_characters_and_has_no_control_characters() -> None:
    assert len(shown("x" * 10_000)) <= 82
    assert "\x1b" not in shown("\x1b[31mred")


def test_an_unknown_name_comes_with_near_ones_and_the_command_that_lists_all() -> None:
    error: FleetError = unknown("drone", "ana", ["anna", "berta"], "fleet drones")
    assert error.code == "E-DRONE-404"
    assert error.next == "did you mean anna? Otherwise: fleet drones"
    assert unknown("drone", "zzz", ["anna"], "fleet drones").next == "fleet drones"
