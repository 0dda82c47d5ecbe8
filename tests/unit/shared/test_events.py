"""What a drone may write into an event: what a database can store, and no option of git in place of a commit."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from shared.events import MAX_COUNT, MAX_DOLLARS, Event

DELIVERED = {"kind": "delivered", "branch": "fleet/1", "head_commit": "a" * 40}
ANSWER = {"kind": "assistant", "text": "done", "usage": {"output_tokens": 1, "cost_usd": 0.5}}


def refused(body: dict[str, Any] | None = None, **changes: Any) -> bool:
    values = {"run_id": "r", "order_id": "o", "generation": 1, "seq": 1, "at": "2026-01-01T00:00:00Z", "body": ANSWER}
    try:
        Event.model_validate({**values, **({"body": body} if body else {}), **changes})
    except ValidationError:
        return True
    return False


def test_an_event_with_a_value_that_cannot_be_is_refused() -> None:
    def used(**usage: Any) -> dict[str, Any]:
        return {**ANSWER, "usage": usage}

    assert not refused()
    assert not refused(DELIVERED)
    assert not refused(used(output_tokens=MAX_COUNT, cost_usd=MAX_DOLLARS))
    wrong = {
        "a refspec for a commit": refused({**DELIVERED, "head_commit": "+x:refs/heads/main"}),
        "an option for a commit": refused({**DELIVERED, "head_commit": "--upload-pack=x"}),
        "one token too many": refused(used(output_tokens=MAX_COUNT + 1)),
        "negative tokens": refused(used(output_tokens=-1)),
        "a cost of 10^300": refused(used(cost_usd=1e300)),
        "a negative cost": refused(used(cost_usd=-0.01)),
        "a cost that is no number": refused(used(cost_usd=float("nan"))),
        "an impossible time": refused(at="99999-01-01T00:00:00Z"),
        "number zero": refused(seq=0),
        "an unknown kind": refused({"kind": "nonsense"}),
    }
    assert [name for name, each in wrong.items() if not each] == []
