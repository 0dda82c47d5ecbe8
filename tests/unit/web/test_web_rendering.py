"""What pages make of texts: escaped, without terminal codes, in words."""

from __future__ import annotations

import pytest

from control_plane.web.local_page import local_page
from control_plane.web.rendering import money


def test_a_price_that_is_not_known_is_not_shown_as_nothing() -> None:
    assert [money(None), money(0.0), money(0.0312), money(12.345)] == ["price unknown", "$0.00", "$0.0312", "$12.35"]


@pytest.mark.parametrize("address", ["//evil.example", "/\\evil", "https://evil.example", "evil", "", "/a\nb"])
def test_only_an_address_of_ours_is_gone_back_to(address: str) -> None:
    assert local_page(address) == "/"
    assert local_page("/orders/1?all=1") == "/orders/1?all=1"
