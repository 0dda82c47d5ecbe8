"""What came of an order is one word, the same in document, list, terminal, page, webhook and exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from sqlalchemy import select

from control_plane.cli import graphs as graph_commands
from control_plane.cli.batch_follow import follow_batch
from control_plane.cli.orders import follow_to_the_end
from control_plane.cli.rendering import outcome_text
from control_plane.contract.declarations.batches import BatchRequest
from control_plane.contract.declarations.graphs import GraphRequest
from control_plane.contract.declarations.orders import OutcomeFilter
from control_plane.contract.declarations.webhooks import WebhookRequest
from control_plane.contract.documents.orders import OrderDocument
from control_plane.core import Caller, Core
from control_plane.db.automation import WebhookDelivery
from control_plane.db.groups import OrderGroup
from control_plane.operations import graphs
from control_plane.operations.automation import webhooks
from control_plane.operations.batches import reading as batches
from control_plane.operations.batches import submitting
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.orders.reading import list_orders, show_order
from control_plane.supervisor.groups import submit_due
from control_plane.web.presentation import shown_state
from shared.events import Delivered
from shared.names import new_id
from shared.states import OrderStatus
from tests.support.batches import rows_of
from tests.support.command_lines import Unasked
from tests.support.made import make_drone, make_project, submit
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn
from tests.support.turns import end

CHANGED = {"head_commit": "c" * 40, "pushed": True}
FAILED = {"to": OrderStatus.FAILED}
ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "a change": (CHANGED, "done"),
    "a patch of what has no commits": ({"patch_bytes": 1}, "done"),
    "nothing to change": ({}, "unchanged"),
    "a closing question": ({"response": "Which file do you mean?"}, "asks"),
    "a part left out": ({**CHANGED, "left_out": ["vendor/: a nested git repository"]}, "incomplete"),
    "not pushed": ({**CHANGED, "pushed": False, "push_error": "the remote refused the branch"}, "incomplete"),
    "pushed at the second attempt": ({**CHANGED, "push_error": "the remote was away"}, "done"),
    "steps": ({**CHANGED, "exit_status": "max_iterations"}, "incomplete"),
    "money": ({**CHANGED, **FAILED, "exit_status": "cost_limit"}, "incomplete"),
    "the provider": ({**FAILED, "exit_status": "model_error"}, "failed"),
    "its checks": ({**CHANGED, **FAILED, "exit_status": "verification_failed"}, "failed"),
    "canceled with a change": ({**CHANGED, "to": OrderStatus.CANCELED, "exit_status": "canceled"}, "canceled"),
}
"""How an order ended, and what came of it."""
CHECKS_FAILED = [{**CHANGED, "verification": "failed"}, {"verification": "failed"}]
"""Ends of orders that lists show as `checks failed` instead of their outcome."""
SHOWN = {
    "done": ("✓", "ok", 0),
    "unchanged": ("✓", "ok", 0),
    "asks": ("?", "ask", 1),
    "incomplete": ("!", "ask", 1),
    "failed": ("✗", "fail", 1),
    "canceled": ("✗", "off", 1),
}
"""The terminal's mark, the kind of the page's mark, and the exit code of `--follow`."""


class Followed:
    """A client whose stream has only the end of this order."""

    def __init__(self, order: OrderDocument) -> None:
        self._document = order.model_dump(mode="json")

    def follow(self, _order_id: str) -> Iterator[tuple[str, Any]]:
        yield "end", self._document


@pytest.fixture
def fleet(core: Core, admin: Caller) -> None:
    """A project and a drone with room."""
    make_project(core, admin)
    make_drone(core, admin, concurrency=100)


def ended(core: Core, admin: Caller, how: dict[str, Any]) -> str:
    return end(core, submit(core, admin).id, steps=(), **how)


@pytest.mark.usefixtures("fleet")
@pytest.mark.dialects
def test_the_outcome_of_each_end_is_read_alike_everywhere(
    core: Core, admin: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = WebhookRequest(name="hook", url="https://example.org/hook", events=["order.succeeded", "order.failed"])
    webhooks.create(core, admin, hook)
    waits = submit(core, admin)
    ids = {name: ended(core, admin, how) for name, (how, _) in ENDS.items()}
    for name, (_, word) in ENDS.items():
        order = show_order(core, admin, ids[name])
        mark, said, *_ = outcome_text(order.model_dump(mode="json")).replace(":", " ").split()
        page, code = shown_state(order), follow_to_the_end(Followed(order), order.id, as_json=True)
        assert (order.outcome, said, page.words, (mark, page.kind, code)) == (word, word, word, SHOWN[word])
    with core.database.read() as db:
        told = Counter(row.data["outcome"] for row in db.scalars(select(WebhookDelivery)))
    assert told == Counter(word for _, word in ENDS.values() if word != "canceled")

    bad = {ended(core, admin, how) for how in CHECKS_FAILED}
    words = {word: {each.id for each in list_orders(core, admin, outcome=word)} for word in get_args(OutcomeFilter)}
    assert words.pop("checks_failed") == {*bad, ids["its checks"]}
    assert words == {word: {ids[name] for name, (_, each) in ENDS.items() if each == word} for word in SHOWN}
    assert {shown_state(show_order(core, admin, each)).words for each in bad} == {"checks failed"}
    assert waits.outcome is None


@pytest.mark.usefixtures("fleet")
@pytest.mark.dialects
def test_a_branch_that_was_not_pushed_is_missing_of_the_winner_of_a_race_alone(core: Core, admin: Caller) -> None:
    webhooks.create(core, admin, WebhookRequest(name="hook", url="https://example.org", events=["order.succeeded"]))
    ids = [submit(core, admin).id for _ in range(3)]
    expected = dict(zip(ids, ("incomplete", "done", "done"), strict=True))
    for order_id, winner in zip(ids, (ids[0], ids[0], None), strict=True):
        race = {"id": new_id(), "organization_id": admin.organization_id, "created_at": core.clock.now()}
        with core.database.write() as db:
            db.add(OrderGroup(kind="race", name="", winner_id=winner, **race))
        end(core, order_id, steps=(), group_id=race["id"], **ENDS["not pushed"][0])
    assert {each: show_order(core, admin, each).outcome for each in expected} == expected
    listed = {each.id: word for word in ("done", "incomplete") for each in list_orders(core, admin, outcome=word)}
    assert listed == expected
    with core.database.read() as db:
        told = {row.data["order"]: row.data["outcome"] for row in db.scalars(select(WebhookDelivery))}
    assert told == expected


@pytest.mark.usefixtures("fleet")
@pytest.mark.dialects
def test_a_batch_is_as_green_as_its_worst_row_on_each_database(
    core: Core, admin: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = {}
    green = [name for name, (_, word) in ENDS.items() if word in {"done", "unchanged"}]
    for batch, names in (("all", list(ENDS)), ("green", green)):
        request = BatchRequest.model_validate({"name": batch, "parallel": 50, "rows": rows_of(names, project="web")})
        assert (made := submitting.submit(core, admin, request)).outcome is None
        assert made.outcomes == {}
        submit_due(core)
        for row in batches.rows(core, admin, batch):
            end(core, str(row.order), steps=(), **ENDS[row.id][0])
        shown, words = batches.show(core, admin, batch), {name: ENDS[name][1] for name in names}
        assert {row.id: row.outcome for row in batches.rows(core, admin, batch)} == words
        assert shown.outcomes == Counter(words.values())
        codes[shown.outcome] = follow_batch(Unasked(), shown.model_dump(mode="json"), str, as_json=True)  # type: ignore[arg-type]
    assert codes == {"failed": 1, "done": 0}


@pytest.mark.usefixtures("fleet")
def test_a_graph_is_as_green_as_its_worst_order(core: Core, admin: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    for other, expected in (
        ("nothing to change", ("done", 2, 0)),
        ("steps", ("incomplete", 1, 1)),
        ("its checks", ("failed", 1, 1)),
    ):
        request = {"project": "web", "orders": [{"name": each, "prompt": each} for each in ("one", "two")]}
        graph = graphs.submit(core, admin, GraphRequest.model_validate(request))
        assert (graph.outcome, graph.done) == (None, 0)
        for order, name in zip(graph.orders, ("a change", other), strict=True):
            end(core, order.id, steps=(), **ENDS[name][0])
        shown = graphs.show(core, admin, graph.id)
        code = graph_commands._followed(Unasked(), shown.model_dump(mode="json"), as_json=True)
        assert (shown.outcome, shown.done, code) == expected


def test_what_a_drone_delivered_counts_and_a_canceled_order_stays_that_also_if_its_run_succeeds(
    plane: Plane, oka: DroneStandIn
) -> None:
    plane.collector(), plane.supervisor()
    for delivered, canceled, expected in (
        ({"left_out": ("vendor/: a nested git repository",)}, False, ("succeeded", "incomplete")),
        ({"pushed": False, "push_error": "refused"}, False, ("succeeded", "incomplete")),
        ({}, True, ("canceled", "canceled")),
    ):
        order = plane.begun(oka)
        if canceled:
            cancel(plane.core, plane.admin, order.order_id)
        change = {"base_commit": "b" * 40, "head_commit": "c" * 40, "branch": f"fleet/{order.order_id}", "pushed": True}
        oka.report(order, Delivered.model_validate(change | delivered), oka.ended())
        assert plane.reaches(order.order_id, expected[0]).outcome == expected[1]
