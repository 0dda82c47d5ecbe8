"""What it costs to seal an order for its drone and to open it there."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

from shared.envelope import Binding, key_id, new_private_key, open_envelope, public_key, seal
from tests.support.runs import order_for

KILOBYTES = 100
ROUNDS = 60
RATIO = 12
"""Times what one trip through JSON takes for the same text; 3.5 is usual."""


@pytest.mark.bench
@pytest.mark.long
def test_an_order_of_100_kilobytes_is_sealed_and_opened_within_2_ms(capsys: pytest.CaptureFixture[str]) -> None:
    ours, _ = measured()
    with capsys.disabled():
        sys.stdout.write(f"\nsealed and opened in {ours:.2f} ms\n")
    assert ours <= 2


def test_sealing_and_opening_costs_little_more_than_writing_and_reading_json() -> None:
    ours, through_json = measured()
    assert ours <= RATIO * through_json


def measured() -> tuple[float, float]:
    """Medians in milliseconds of alternating measurements: ours, and a trip of the same text through JSON."""
    order = order_for("d" * 12, Path("/repository"), "http://localhost", prompt="Fix it. " * (KILOBYTES * 125))
    body, sender, recipient = order.model_dump_json(), new_private_key(), new_private_key()
    binding = Binding(direction="order", drone="d" * 12, order=order.order_id, run=order.run_id, generation=1)
    recipients = {key_id(public_key(recipient)): recipient}
    ours, trips = [], []
    for _ in range(ROUNDS):
        began = perf_counter()
        envelope = seal(body, binding, sender=sender, recipient=public_key(recipient), issued_at=datetime.now(UTC))
        opened = open_envelope(envelope, recipients=recipients, sender=public_key(sender), expect=binding)
        ended = perf_counter()
        json.loads(json.dumps(body))
        trips.append(perf_counter() - ended)
        ours.append(ended - began)
        assert opened.body == body
    return median(ours) * 1000, median(trips) * 1000
