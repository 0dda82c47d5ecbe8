"""Sessions over HTTP: every operation by its door, with the errors that a caller is told."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.client.fleet import FleetClient
from control_plane.db.orders import Order
from control_plane.declarations import sessions
from control_plane.declarations.sessions import (
    CompactRequest,
    ForkRequest,
    LabelRequest,
    SessionEdit,
    SessionFilter,
    SessionRequest,
    SwitchRequest,
)
from control_plane.orders.ending import Ending, finish
from shared.errors import Conflict, Forbidden, NotFound
from shared.events import Delivered, UserStep
from shared.outcome import ExitStatus
from shared.reasons import RunEnd
from shared.states import OrderStatus
from tests.support.fleet import Api, PlayedRun
from tests.support.turns import end, said

Doc = dict[str, Any]


@pytest.fixture
def session(api: Api) -> Doc:
    """A session of one turn, `first`, whose work is stored as a bundle."""
    api.add_work()
    api.add_drone()
    order = api.submit("first")
    head = {"branch": "fleet/x", "head_commit": "a" * 40, "pushed": False}
    end(api.core, order["id"], steps=said("first"), **head)
    return api.client.call(sessions.SHOW, session_id=order["session"])


def test_a_session_is_begun_listed_and_shown(api: Api, session: Doc) -> None:
    made = api.client.call(sessions.CREATE, SessionRequest(project="demo", name="Parser", mode="plan", allow=["ls*"]))
    listed = api.client.call(sessions.LIST, SessionFilter(project="demo"))
    assert [each["id"] for each in listed] == [made["id"], session["id"]]
    assert set(listed[0]) == set(made) - {"entries", "unfinished", "restack", "stacked_on"}
    assert session["entries"][0]["turn"]["prompt"] == "first"
    assert (session["turns"], session["running"], session["leaf"]) == (1, None, session["entries"][0]["id"])


def test_it_is_switched_forked_labeled_renamed_and_compacted(api: Api, session: Doc) -> None:
    entry = session["entries"][0]["id"]
    assert api.client.call(sessions.SWITCH, SwitchRequest(entry="root"), session_id=session["id"])["leaf"] is None
    labeled = api.client.call(sessions.LABEL, LabelRequest(entry=entry, text="good"), session_id=session["id"])
    assert labeled["entries"][0]["label"] == "good"
    fork = api.client.call(sessions.FORK, ForkRequest(at="good", name="aside"), session_id=session["id"])
    assert (fork["leaf"], fork["name"], fork["forked_from"]) == (entry, "aside", session["id"])
    edited = api.client.call(sessions.EDIT, SessionEdit(name="new", mode="test"), session_id=session["id"])
    assert (edited["name"], edited["mode"]) == ("new", "test")
    compaction = api.client.call(sessions.COMPACT, CompactRequest(instructions="Keep it."), session_id=session["id"])
    assert compaction["order"] is None
    assert api.client.call(sessions.SHOW, session_id=session["id"])["compact"] == "Keep it."


def test_the_head_and_its_bundle_can_be_had(api: Api, session: Doc) -> None:
    head = api.client.call(sessions.HEAD, session_id=session["id"])
    assert (head["branch"], head["commit"], head["pushed"], head["bundle"]) == ("fleet/x", "a" * 40, False, False)
    with pytest.raises(NotFound, match="has no bundle"):
        api.client.session_bundle(session["id"])


def test_a_bundle_comes_as_it_was_stored(api: Api) -> None:
    api.add_work()
    drone = api.add_drone()
    order = api.submit("first")
    run: PlayedRun = drone.take(order)
    run.step(UserStep(text="first", source="prompt"))
    name = api.store_blob(run, b"a bundle")
    run.step(Delivered(branch=f"fleet/{run.order_id}", head_commit="a" * 40, bundle_sha256=name))
    end_well(api, order["id"], name)
    assert api.client.session_bundle(order["session"]) == b"a bundle"


def end_well(api: Api, order_id: str, bundle: str) -> None:
    """The run that was taken by hand ends well."""
    with api.core.database.write() as db:
        order = db.get_one(Order, order_id)
        order.head_commit, order.branch, order.bundle_sha256 = "a" * 40, "fleet/x", bundle
        finish(db, api.core, order, OrderStatus.SUCCEEDED, Ending(ExitStatus.STOPPED, RunEnd(detail="done")))


def test_what_is_refused_is_told_as_by_the_operation(api: Api, session: Doc) -> None:
    api.submit("second", session=session["id"])
    with pytest.raises(Conflict) as busy:
        api.client.call(sessions.SWITCH, SwitchRequest(entry="root"), session_id=session["id"])
    with pytest.raises(NotFound) as unknown:
        api.client.call(sessions.LABEL, LabelRequest(entry="nothing", text="x"), session_id=session["id"])
    assert (busy.value.code, unknown.value.code) == ("E-SESSION-BUSY", "E-SESSION-ENTRY")
    with api.http() as http:
        wrong = [
            http.patch(f"/api/v1/sessions/{session['id']}", json=each) for each in ({"mode": "sing"}, {"leaf": "x"})
        ]
    assert [(each.status_code, each.json()["code"]) for each in wrong] == [(404, "E-MODE-404"), (422, "E-REQUEST")]


def test_a_viewer_looks_and_does_not_touch(api: Api, session: Doc) -> None:
    with FleetClient(api.url, api.token_for("viewer")) as viewer:
        assert viewer.call(sessions.SHOW, session_id=session["id"])["id"] == session["id"]
        with pytest.raises(Forbidden):
            viewer.call(sessions.SWITCH, SwitchRequest(entry="root"), session_id=session["id"])


def test_the_pages_show_every_session_and_its_tree(api: Api, session: Doc) -> None:
    api.client.call(sessions.EDIT, SessionEdit(name="<script>alert(1)</script>"), session_id=session["id"])
    with api.http() as http:
        listed, shown = http.get("/sessions"), http.get(f"/sessions/{session['id']}")
        unknown = http.get("/sessions/0123456789ab")
    assert (listed.status_code, shown.status_code, unknown.status_code) == (200, 200, 404)
    assert f"/sessions/{session['id']}" in listed.text
    assert f"/orders/{session['entries'][0]['turn']['order']}" in shown.text
    assert "&lt;script&gt;" in shown.text
    assert "<script>alert" not in listed.text + shown.text
