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
def test_what_was_sealed_comes_out_as_it_went_in_and_cannot_be_read_in_the_envelope(body: str) -> None:
    envelope = sealed(f"secret {body}")
    found = open_envelope(envelope, recipients=DRONE_KEYS, sender=public_key(PLANE), expect=ORDER)
    assert (found.body, found.binding, found.issued_at) == (f"secret {body}", ORDER, NOW)
    assert recipient_of(envelope) == key_id(public_key(DRONE))
    raw = base64.b64decode(envelope.partition(".")[2])
    assert (b"secret" in raw, ORDER.order.encode() in raw) == (False, False)
    assert envelope != sealed(f"secret {body}")
    # What the reader does not know yet is not compared.
    assert opened(envelope, Binding(direction="order", drone=ORDER.drone)) == found.body


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
    with pytest.raises(CannotOpen, match="not from the expected sender"):
        opened(sealed(sender=STRANGER))
    with pytest.raises(CannotOpen, match="which is unknown here"):
        opened(seal("x", ORDER, sender=PLANE, recipient=public_key(STRANGER), issued_at=NOW))
    other = {"direction": "control", "drone": "e" * 12, "order": "e" * 12, "run": "e" * 12, "generation": 4}
    for what, value in other.items():
        with pytest.raises(CannotOpen, match=f"bound to another {what}"):
            opened(sealed(), ORDER.model_copy(update={what: value}))
