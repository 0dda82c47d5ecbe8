"""Events are cut to what may be sent, and only where they must be."""

from __future__ import annotations

from typing import Any

from drone.reporting.event_size import fit, halved
from shared.blobs import MAX_EVENT, sealed_size
from shared.envelope import Binding, new_private_key, public_key, seal
from shared.events import CommentStep, Event, ToolCallStep, ToolResultStep
from tests.support.clocks import HandClock


def sealed(body: CommentStep | ToolCallStep | ToolResultStep) -> str:
    event = Event(run_id="r" * 12, order_id="o" * 12, generation=1, seq=1, at=HandClock().now(), body=body)
    key = new_private_key()
    binding = Binding(direction="event", drone="d" * 12, order="o" * 12, run="r" * 12, generation=1)
    return seal(event.model_dump_json(), binding, sender=key, recipient=public_key(key), issued_at=HandClock().now())


def test_a_long_text_keeps_its_head_and_its_tail_and_what_fits_is_left_as_it_is() -> None:
    short = CommentStep(text="x" * 1000)
    assert fit(short) is short
    body = fit(ToolResultStep(call_id="c", output="begin" + "x" * 400_000 + "end"))
    assert isinstance(body, ToolResultStep)
    assert body.output.startswith("begin")
    assert body.output.endswith("end")
    assert len(sealed(body)) <= MAX_EVENT
    assert halved("a" * 400 + "b" * 400) == "a" * 200 + "\n[... 400 characters omitted ...]\n" + "b" * 200


def test_whatever_is_too_long_is_cut_and_the_short_parts_stay() -> None:
    def arguments(given: object) -> Any:
        body = fit(ToolCallStep(call_id="c", tool="t", arguments=given))
        assert isinstance(body, ToolCallStep)
        assert len(sealed(body)) <= MAX_EVENT
        return body.arguments

    assert arguments({"path": "a.txt", "content": "y" * 500_000})["path"] == "a.txt"
    many = arguments([f"{number}" + "z" * 9000 for number in range(100)])
    assert [text[0] for text in many[:3]] == ["0", "1", "2"]
    # Large for their many small parts, they become one text.
    assert str(arguments({"numbers": list(range(100_000))})).startswith('{"numbers": [0, 1')


def test_text_full_of_quotes_counts_for_what_it_becomes() -> None:
    assert len(sealed(fit(CommentStep(text='"\\' * 90_000)))) <= MAX_EVENT  # type: ignore[arg-type]
    body = CommentStep(text='ä\n"' * 10_000)
    assert sealed_size(body.model_dump_json()) >= len(sealed(body))
