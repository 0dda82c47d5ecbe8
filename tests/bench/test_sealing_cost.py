"""What it costs to seal an order for its drone and to open it there."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

from shared.envelope import Binding, key_id, new_private_key, open_envelope, public_key, seal
from tests.support.runs import order_for

KILOBYTES = 100
ROUNDS = 100
RATIO = 12
"""Times what one trip through JSON takes for the same text; 3.5 is usual."""


@pytest.mark.bench
@pytest.mark.long
def test_an_order_of_100_kilobytes_is_sealed_and_opened_within_2_ms(capsys: pytest.CaptureFixture[str]) -> None:
    took = measured()
    with capsys.disabled():
        sys.stdout.write(f"\n{took.size // 1000} kB: sealed in {took.seal:.2f} ms, opened in {took.open:.2f} ms\n")
    assert took.seal + took.open <= 2


def test_sealing_and_opening_costs_little_more_than_writing_and_reading_json() -> None:
    took = measured()
    assert took.seal + took.open <= RATIO * took.json


@dataclass(frozen=True)
class Costs:
    """Medians in milliseconds, of alternating measurements."""

    size: int
    seal: float
    open: float
    json: float


def measured() -> Costs:
    order = order_for("d" * 12, Path("/repository"), "http://localhost", prompt="Fix it. " * (KILOBYTES * 125))
    body, sender, recipient = order.model_dump_json(), new_private_key(), new_private_key()
    binding = Binding(direction="order", drone="d" * 12, order=order.order_id, run=order.run_id, generation=1)
    recipients = {key_id(public_key(recipient)): recipient}
    seals, opens, trips = [], [], []
    for _ in range(ROUNDS):
        began = perf_counter()
        envelope = seal(body, binding, sender=sender, recipient=public_key(recipient), issued_at=datetime.now(UTC))
        sealed = perf_counter()
        opened = open_envelope(envelope, recipients=recipients, sender=public_key(sender), expect=binding)
        ended = perf_counter()
        json.loads(json.dumps(body))
        tripped = perf_counter()
        assert opened.body == body
        seals.append(sealed - began)
        opens.append(ended - sealed)
        trips.append(tripped - ended)
    return Costs(len(body), *(median(each) * 1000 for each in (seals, opens, trips)))
