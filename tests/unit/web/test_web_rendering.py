"""What pages make of texts: escaped, without terminal codes, in words."""

from __future__ import annotations

from control_plane.web.rendering import money


def test_a_price_that_is_not_known_is_not_shown_as_nothing() -> None:
    assert [money(None), money(0.0), money(0.0312), money(12.345)] == ["price unknown", "$0.00", "$0.0312", "$12.35"]
