"""The envelope: opened by the right key and for the right purpose, and by nobody else."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.envelope import Binding, CannotOpen, key_id, new_private_key, open_envelope, public_key, recipient_of, seal

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLANE, DRONE, STRANGER = new_private_key(), new_private_key(), new_private_key()
ORDER = Binding(direction="order", drone="d" * 12, order="a" * 12, run="b" * 12, generation=3)
DRONE_KEYS = {key_id(public_key(DRONE)): DRONE}


def sealed(body: str = "secret words", binding: Binding = ORDER, *, sender: bytes = PLANE) -> str:
    return seal(body, binding, sender=sender, recipient=public_key(DRONE), issued_at=NOW)


def opened(envelope: str, expect: Binding = ORDER) -> str:
    return open_envelope(envelope, recipients=DRONE_KEYS, sender=public_key(PLANE), expect=expect).body


@given(body=st.text())
def test_what_was_sealed_comes_out_as_it_went_in(body: str) -> None:
    assert opened(sealed(body)) == body


def test_the_binding_and_the_time_come_out_too_and_the_envelope_names_the_key_that_opens_it() -> None:
    found = open_envelope(sealed(), recipients=DRONE_KEYS, sender=public_key(PLANE), expect=ORDER)
    assert (found.binding, found.issued_at) == (ORDER, NOW)
    assert recipient_of(sealed()) == key_id(public_key(DRONE))


def test_nothing_of_the_content_can_be_read_in_the_envelope() -> None:
    raw = base64.b64decode(sealed().partition(".")[2])
    assert b"secret" not in raw
    assert ORDER.order.encode() not in raw
    assert sealed() != sealed()


def test_an_envelope_from_somebody_else_is_refused() -> None:
    with pytest.raises(CannotOpen, match="not from the expected sender"):
        opened(sealed(sender=STRANGER))


def test_an_envelope_for_another_key_is_refused() -> None:
    other = seal("x", ORDER, sender=PLANE, recipient=public_key(STRANGER), issued_at=NOW)
    with pytest.raises(CannotOpen, match="which is unknown here"):
        opened(other)


@settings(max_examples=200)
@given(position=st.integers(min_value=0, max_value=10_000), bit=st.integers(min_value=0, max_value=7))
def test_one_changed_bit_anywhere_and_it_does_not_open(position: int, bit: int) -> None:
    name, _, text = sealed().partition(".")
    raw = bytearray(base64.b64decode(text))
    raw[position % len(raw)] ^= 1 << bit
    with pytest.raises(CannotOpen):
        opened(f"{name}.{base64.b64encode(raw).decode()}")


@given(text=st.text(max_size=200))
def test_any_text_that_is_no_envelope_is_refused_and_nothing_else_is_raised(text: str) -> None:
    with pytest.raises(CannotOpen):
        opened(f"{key_id(public_key(DRONE))}.{text}")


def test_an_envelope_that_belongs_elsewhere_is_refused_with_the_reason() -> None:
    other = {"direction": "control", "drone": "e" * 12, "order": "e" * 12, "run": "e" * 12, "generation": 4}
    for what, value in other.items():
        with pytest.raises(CannotOpen, match=f"bound to another {what}"):
            opened(sealed(), ORDER.model_copy(update={what: value}))


def test_what_the_reader_does_not_know_yet_is_not_compared() -> None:
    assert opened(sealed(), Binding(direction="order", drone=ORDER.drone)) == "secret words"
