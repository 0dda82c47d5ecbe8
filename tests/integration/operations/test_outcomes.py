"""What came of an order is one word, the same in document, terminal, page, webhook and exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from control_plane.cli import graphs as graph_commands
from control_plane.cli.batch_follow import follow_batch
from control_plane.cli.orders import follow_to_the_end
from control_plane.cli.rendering import outcome_text
from control_plane.contract.declarations.graphs import GraphRequest
from control_plane.contract.declarations.orders import OutcomeFilter
from control_plane.contract.declarations.webhooks import WebhookRequest
from control_plane.contract.documents.orders import OrderDocument, OrderSummary
from control_plane.db.automation import WebhookDelivery
from control_plane.operations import graphs
from control_plane.operations.automation import webhooks
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.orders.reading import list_orders
from control_plane.web.presentation import shown_state
from shared.events import Delivered
from shared.outcome import Verification
from shared.work_order import WorkOrder
from tests.support.batches import rows, rows_of, submit_batch, work_off
from tests.support.batches import shown as shown_batch
from tests.support.command_lines import Unasked
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

NOTHING = Delivered()
CHANGE = Delivered(base_commit="b" * 40, head_commit="c" * 40, pushed=True)
UNPUSHED = CHANGE.model_copy(update={"pushed": False, "push_error": "the remote refused the branch"})
FAILED = {"status": "failed"}
ENDS: dict[str, tuple[Delivered, dict[str, Any], tuple[str, str, int]]] = {
    "done": (CHANGE, {}, ("done", "ok", 0)),
    "nothing to change": (NOTHING, {}, ("unchanged", "ok", 0)),
    "a closing question": (NOTHING, {"response": "Which file do you mean?"}, ("asks", "ask", 1)),
    "a part left out": (
        CHANGE.model_copy(update={"left_out": ("vendor/: a nested git repository",)}),
        {},
        ("incomplete", "ask", 1),
    ),
    "not pushed": (UNPUSHED, {}, ("incomplete", "ask", 1)),
    "steps": (CHANGE, {"exit_status": "max_iterations"}, ("incomplete", "ask", 1)),
    "money": (CHANGE, FAILED | {"exit_status": "cost_limit"}, ("incomplete", "ask", 1)),
    "time": (CHANGE, FAILED | {"exit_status": "time_limit"}, ("incomplete", "ask", 1)),
    "a guardrail": (CHANGE, FAILED | {"exit_status": "halted"}, ("incomplete", "ask", 1)),
    "unusable answers": (NOTHING, FAILED | {"exit_status": "format_errors"}, ("incomplete", "ask", 1)),
    "the provider": (NOTHING, FAILED | {"exit_status": "model_error"}, ("failed", "fail", 1)),
    "its checks": (CHANGE, FAILED | {"exit_status": "verification_failed"}, ("failed", "fail", 1)),
    "a refusal": (NOTHING, FAILED | {"exit_status": "refused"}, ("failed", "fail", 1)),
}
MARKS = {"done": "✓", "unchanged": "✓", "asks": "?", "incomplete": "!", "failed": "✗", "canceled": "✗"}


class Followed:
    """A client whose stream has only the end of this order."""

    def __init__(self, order: OrderDocument) -> None:
        self._document = order.model_dump(mode="json")

    def follow(self, _order_id: str) -> Iterator[tuple[str, Any]]:
        yield "end", self._document


def of(order: WorkOrder, delivered: Delivered) -> Delivered:
    """The same on the order's own branch."""
    return delivered.model_copy(update={"branch": f"fleet/{order.order_id}"})


def shown(order: OrderDocument) -> tuple[str, str, int]:
    """The word of the terminal, the kind of the page's mark, and the exit code of `--follow`."""
    mark, word, *_ = outcome_text(order.model_dump(mode="json")).replace(":", " ").split()
    page = shown_state(order)
    assert (page.words, mark, order.outcome) == (word, MARKS[word], word)
    return word, page.kind, follow_to_the_end(Followed(order), order.id, as_json=True)


@pytest.mark.dialects
def test_the_outcome_of_each_end_is_read_alike_everywhere(
    plane: Plane, oka: DroneStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    plane.collector(), plane.supervisor()
    hook = WebhookRequest(name="hook", url="https://example.org/hook", events=["order.succeeded", "order.failed"])
    webhooks.create(plane.core, plane.admin, hook)
    found: dict[str, Any] = {}
    for name, (delivered, fields, _) in ENDS.items():
        order = plane.begun(oka)
        assert plane.order(order.order_id).outcome is None
        oka.report(order, of(order, delivered), oka.ended(**fields))
        found[name] = shown(plane.reaches(order.order_id, str(fields.get("status", "succeeded"))))
    assert found == {name: expected for name, (_, _, expected) in ENDS.items()}
    sent = [row.data["outcome"] for row in plane.rows(WebhookDelivery)]
    assert sorted(sent) == sorted(word for word, _, _ in found.values())

    for delivered in (CHANGE, UNPUSHED, NOTHING):
        order = plane.begun(oka)
        oka.report(order, of(order, delivered), oka.ended(verification=Verification.FAILED))
        plane.reaches(order.order_id, "succeeded")
    waits = plane.submit()
    listed = list_orders(plane.core, plane.admin)
    filtered = {word: {each.id for each in list_orders(plane.core, plane.admin, outcome=word)} for word in OUTCOMES}
    assert {each.id: {word for word in OUTCOMES if each.id in filtered[word]} for each in listed} == {
        each.id: outcomes_shown(each) if each.id != waits else set() for each in listed
    }


OUTCOMES = get_args(OutcomeFilter)


def outcomes_shown(order: OrderSummary) -> set[str]:
    """The words of a row, and that its checks failed where that failed the order."""
    words = {shown_state(order).words.replace(" ", "_")}
    return words | {"checks_failed"} if order.exit_status == "verification_failed" else words


def test_a_canceled_order_is_read_as_that_also_if_its_run_had_succeeded(plane: Plane, oka: DroneStandIn) -> None:
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    cancel(plane.core, plane.admin, order.order_id)
    oka.report(order, of(order, CHANGE), oka.ended())
    assert shown(plane.reaches(order.order_id, "canceled")) == ("canceled", "off", 1)


# --- orders that belong together ------------------------------------------------------------------


@pytest.mark.dialects
def test_a_batch_is_as_green_as_its_worst_row_on_each_database(
    plane: Plane, oka: DroneStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    plane.collector(), plane.supervisor()
    ends = {str(number): each for number, each in enumerate(ENDS.values())}
    green = [number for number, (_, _, (*_, code)) in ends.items() if code == 0]
    codes = {}
    for name, ids in (("all", list(ends)), ("green", green)):
        submit_batch(plane, rows_of(ids), name)
        assert (shown_batch(plane, name).outcome, shown_batch(plane, name).outcomes) == (None, {})
        work_off(plane, lambda drone, order: end_as(drone, order, ends[order.prompt.split()[-1]]), name)
        batch, words = shown_batch(plane, name), {number: ends[number][2][0] for number in ids}
        assert {row.id: row.outcome for row in rows(plane, name)} == words
        assert batch.outcomes == Counter(words.values())
        codes[batch.outcome] = follow_batch(Unasked(), batch.model_dump(mode="json"), str, as_json=True)  # type: ignore[arg-type]
    assert codes == {"failed": 1, "done": 0}


def end_as(drone: DroneStandIn, order: WorkOrder, end: tuple[Delivered, dict[str, Any], Any]) -> None:
    delivered, fields, _ = end
    assert drone.claim(order)
    drone.report(order, drone.started(), of(order, delivered), drone.ended(**fields))


def test_a_graph_is_as_green_as_its_worst_order(
    plane: Plane, oka: DroneStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    plane.collector(), plane.supervisor()
    found: dict[str, Any] = {}
    for name in ("done", "nothing to change", "a closing question", "not pushed", "steps", "its checks"):
        request = {"project": "app", "orders": [{"name": each, "prompt": each} for each in ("one", "two")]}
        graph = graphs.submit(plane.core, plane.admin, GraphRequest.model_validate(request))
        assert (graph.outcome, graph.done) == (None, 0)
        for end in (ENDS["done"], ENDS[name]):
            order = plane.until(oka.take)
            end_as(oka, order, end)
            plane.until(lambda order=order: plane.order(order.order_id).ended_at is not None)
        ended = graphs.show(plane.core, plane.admin, graph.id)
        code = graph_commands._followed(Unasked(), ended.model_dump(mode="json"), as_json=True)
        found[name] = ended.outcome, ended.done, code
    assert found == {
        "done": ("done", 2, 0),
        "nothing to change": ("done", 2, 0),
        "a closing question": ("asks", 1, 1),
        "not pushed": ("incomplete", 1, 1),
        "steps": ("incomplete", 1, 1),
        "its checks": ("failed", 1, 1),
    }
