"""What a value must look like before it is stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.contract.validation.checks import (
    check_labels,
    check_name,
    check_text,
    check_variable,
    unknown,
)
from shared.errors import FleetError, Invalid, TooLarge


def test_usual_values_are_taken_and_others_refused() -> None:
    names = ["a", "0", "web", "my-app_2.0", "x" * 64]
    assert [check_name("project", name) for name in names] == names
    labels: list[dict[str, str]] = [{}, {"gpu": "yes"}, {"a/b.c-d_e": "1.2:3/4+5"}, {"k": ""}]
    assert [check_labels(each) for each in labels] == labels
    with pytest.raises(Invalid):
        check_labels({f"k{number}": "v" for number in range(1000)})
    assert check_variable("_OPENAI_API_KEY2") == "_OPENAI_API_KEY2"
    with pytest.raises(TooLarge):
        check_text("the prompt", "123456", limit=5)
    with pytest.raises(Invalid, match="invalid project name") as refusal:
        check_name("project", "\x1b[31m" + "x" * 10_000)
    assert (len(refusal.value.what) < 130, "\x1b" in refusal.value.what) == (True, False)


@given(text=st.text(max_size=200))
def test_a_name_that_is_taken_is_safe_in_a_path_a_url_and_a_shell(text: str) -> None:
    try:
        taken = check_name("project", text)
    except Invalid:
        return
    assert set(taken) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert not taken.startswith((".", "-", "_"))


def test_an_unknown_name_comes_with_near_ones_and_the_command_that_lists_all() -> None:
    error: FleetError = unknown("drone", "ana", ["anna", "berta"], "fleet drones")
    assert error.code == "E-DRONE-404"
    assert error.next == "did you mean anna? Otherwise: fleet drones"
    assert unknown("drone", "zzz", ["anna"], "fleet drones").next == "fleet drones"
