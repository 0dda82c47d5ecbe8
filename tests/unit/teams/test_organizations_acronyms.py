"""How tasks of an organization are called (S-021), and that no two organizations call them alike."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.contract.validation.checks import check_organization
from control_plane.operations.organizations.acronyms import LONGEST, acronym_of, free_acronym
from shared.errors import Invalid

# Few letters, so that many of them begin alike.
WORD = st.builds(str.__add__, st.sampled_from("ab"), st.text("ab1", max_size=5))
NAMES = st.lists(WORD, min_size=1, max_size=8).map("_".join)


def test_an_acronym_is_the_beginning_of_a_word_or_initials_and_has_four_letters_or_more() -> None:
    expected = {
        "payments": "PAYM",
        "backend_platform": "BPPP",
        "my_big_team": "MBTT",
        "ops": "OPSS",
        "x": "XXXX",
        "one_two_three_four_five": "OTTFF",
        "a_b_c_d_e_f_g_h_i_j_k_l_m_n": "ABCDEFGHIJKL",
    }
    assert {name: acronym_of(name) for name in expected} == expected


@given(st.lists(NAMES, unique=True, max_size=30))
def test_no_two_organizations_have_the_same_acronym(names: list[str]) -> None:
    taken: set[str] = set()
    for name in names:
        acronym = free_acronym(name, taken)
        assert acronym not in taken
        assert re.fullmatch(r"[A-Z][A-Z0-9]{3,}", acronym)
        assert len(acronym) <= LONGEST
        taken.add(acronym)


def test_a_name_that_is_not_snake_case_or_is_reserved_is_refused_in_one_line() -> None:
    for name in ("a", "payments", "my_big_team", "team_2", "a" * 64, "users", "system_tests"):
        assert check_organization(name) == name
    bad = ["", "user", "system", "Payments", "pay ments", "_pay", "pay_", "pay__ments", "1pay", "pay-ments", "zählung"]
    for name in [*bad, "a" * 65, "a" * 10_000, "pay\n", "pay\0", "../pay"]:
        with pytest.raises(Invalid) as refusal:
            check_organization(name)
        assert (refusal.value.code, len(refusal.value.what) < 160) == ("E-NAME", True), name[:20]
