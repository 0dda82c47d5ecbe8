"""`retry` and `resume` as the terminal, the browser and scripts ask for them, over real HTTP."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.declarations import orders
from control_plane.documents.orders import ResumeRequest
from shared.blobs import digest
from shared.errors import Conflict, Invalid, NotFound
from shared.events import AssistantStep, CheckpointStep, ResumedStep, UserStep
from shared.states import OrderStatus
from tests.support.command_tree import invoke
from tests.support.fleet import Api, PlayedRun

FORM = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}


@pytest.fixture
def failed(api: Api) -> PlayedRun:
    """A run that did one complete step, and ended its order as failed."""
    api.add_work()
    run = api.add_drone().take(api.submit(max_attempts=7, progress_timeout=60))
    for body in (UserStep(text="Fix it", source="prompt"), AssistantStep(text="I look."), CheckpointStep()):
        run.step(body)
    run.ends(OrderStatus.FAILED)
    return run


@pytest.fixture
def browser(api: Api) -> Iterator[httpx.Client]:
    """A logged-in admin."""
    with api.browser(FORM) as client:
        yield client


def fleet(api: Api, *words: str) -> subprocess.CompletedProcess[str]:
    """A command, as somebody types it."""
    return invoke("fleet", *words, env={"FLEET_URL": api.url, "FLEET_API_TOKEN": api.token})


def columns(api: Api, order_id: str) -> Order:
    with api.core.database.read() as db:
        return db.get_one(Order, order_id)


def test_an_order_says_how_many_runs_may_be_lost_and_when_quiet_is_too_long(api: Api, failed: PlayedRun) -> None:
    assert api.client.call(orders.SHOW, order_id=failed.order_id)["max_attempts"] == 7
    assert columns(api, failed.order_id).limits["progress_timeout"] == 60
    assert api.submit()["max_attempts"] == 3
    for wrong in ({"max_attempts": 0}, {"max_attempts": 101}, {"progress_timeout": -1}):
        with pytest.raises(Invalid):
            api.submit(**wrong)


def test_resume_and_retry_put_the_order_back_and_say_so(api: Api, failed: PlayedRun) -> None:
    found = api.client.call(orders.RESUME, ResumeRequest(cost_limit=9, say="go on"), order_id=failed.order_id)
    assert (found["status"], found["exit_status"], found["ended_at"]) == ("assigned", None, None)
    order = columns(api, failed.order_id)
    assert (order.renewed_generation, order.fresh_generation, order.limits["cost_limit"]) == (2, 0, 9)
    with pytest.raises(Conflict, match="is assigned"):
        api.client.call(orders.RETRY, order_id=failed.order_id)


def test_a_retry_remembers_what_not_to_go_on_from(api: Api, failed: PlayedRun) -> None:
    api.client.call(orders.RETRY, order_id=failed.order_id)
    order = columns(api, failed.order_id)
    assert (order.renewed_generation, order.fresh_generation) == (0, 2)


def test_wrong_fields_strangers_and_viewers_are_refused(api: Api, failed: PlayedRun) -> None:
    address = f"/api/v1/orders/{failed.order_id}/resume"
    with api.http() as http:
        wrong = [http.post(address, json=fields) for fields in ({"max_iterations": -1}, {"no_such": 1})]
    assert [(each.status_code, each.json()["code"]) for each in wrong] == [(422, "E-REQUEST")] * 2
    with pytest.raises(NotFound):
        api.client.call(orders.RETRY, order_id="0" * 12)
    with api.http(api.token_for("viewer")) as viewer:
        assert viewer.post(f"/api/v1/orders/{failed.order_id}/retry").status_code == 403
        assert viewer.post(f"/api/v1/orders/{failed.order_id}/resume").status_code == 403


# --- in the terminal -----------------------------------------------------------------------------


def test_the_terminal_lets_an_order_go_on(api: Api, failed: PlayedRun) -> None:
    done = fleet(api, "resume", failed.order_id, "--max-iterations", "80", "--say", "go on", "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "assigned")
    assert columns(api, failed.order_id).limits["max_iterations"] == 80
    twice = fleet(api, "resume", failed.order_id)
    assert twice.returncode == 4
    assert f"fleet follow {failed.order_id}" in twice.stderr


def test_the_terminal_runs_an_order_again(api: Api, failed: PlayedRun) -> None:
    done = fleet(api, "retry", failed.order_id)
    assert done.returncode == 0
    assert (
        f"{failed.order_id} assigned: {api.client.call(orders.SHOW, order_id=failed.order_id)['reason']}" in done.stderr
    )


def test_submit_takes_attempts_and_the_limit_of_quiet(api: Api) -> None:
    api.add_work()
    words = ("--project", "demo", "--max-attempts", "20", "--progress-timeout", "5", "--json")
    order = json.loads(fleet(api, "submit", "do it", *words).stdout)
    assert order["max_attempts"] == 20
    assert columns(api, order["id"]).limits["progress_timeout"] == 5


# --- on the pages -----------------------------------------------------------------------------------


def test_the_page_offers_both_where_they_are_possible(api: Api, failed: PlayedRun, browser: httpx.Client) -> None:
    page = browser.get(f"/orders/{failed.order_id}").text
    assert 'action="/actions/resume"' in page
    assert 'action="/actions/retry"' in page
    form = {"order_id": failed.order_id, "say": "mind\r\nthe tests"}
    answer = browser.post("/actions/resume", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/orders/{failed.order_id}")
    assert [word["text"] for word in api.client.call(orders.SHOW, order_id=failed.order_id)["unheard"]] == [
        "mind\nthe tests"
    ]
    assert "/actions/resume" not in browser.get(f"/orders/{failed.order_id}").text


def test_a_button_of_the_page_runs_it_again(api: Api, failed: PlayedRun, browser: httpx.Client) -> None:
    assert browser.post("/actions/retry", data={"order_id": failed.order_id}).status_code == 303
    assert columns(api, failed.order_id).fresh_generation == 2


def test_the_page_marks_what_was_undone_and_says_where_it_went_on(
    api: Api, failed: PlayedRun, browser: httpx.Client
) -> None:
    api.client.call(orders.RESUME, order_id=failed.order_id)
    second = failed.drone.take(api.client.call(orders.SHOW, order_id=failed.order_id))
    with api.core.database.write() as db:
        run = db.get_one(Run, second.id)
        run.resumed_run_id, run.resumed_seq = failed.id, 4
    second.step(ResumedStep(run_id=failed.id, seq=4, why="the drone restarted"))
    page = browser.get(f"/orders/{failed.order_id}").text
    assert "Resumed from step 4 of attempt 1 on mila. The drone restarted" in page
    # The end of the first run came after the checkpoint.
    assert page.count("1 step undone") == 1
    steps = api.client.call(orders.STEPS, order_id=failed.order_id)
    assert [step["seq"] for step in steps if step["undone"]] == [5]
    assert {"from_step": 4, "from_attempt": 1, "from_drone": "mila"}.items() <= steps[-1].items()


# --- checkpoints by HTTP ------------------------------------------------------------------------------


def test_a_checkpoint_comes_back_as_it_was_and_lies_sealed(api: Api, failed: PlayedRun) -> None:
    content = b"# v2 git bundle\n" + b"the very words" * 1000
    name = digest(content)
    path = f"/api/v1/runs/{failed.id}/blobs/{name}"
    with api.http(failed.drone.token) as http:
        assert http.put(path, params={"kind": "checkpoint"}, content=content).status_code == 204
        assert http.put(path, params={"kind": "checkpoint"}, content=content).status_code == 204
        assert http.get(path).content == content
        assert http.put(path, params={"kind": "checkpoint"}, content=b"other").status_code == 422
        assert http.put(path, params={"kind": "diary"}, content=content).status_code == 422
    stored = [file.read_bytes() for file in api.core.blobs.root.rglob("*") if file.is_file()]
    assert len(stored) == 1
    assert b"the very words" not in stored[0]


def test_a_checkpoint_over_its_bound_is_413(api: Api, failed: PlayedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("control_plane.core.blob_store.MAX_SEALED", 1000)
    content = b"x" * 1001
    path = f"/api/v1/runs/{failed.id}/blobs/{digest(content)}"
    with api.http(failed.drone.token) as http:
        assert http.put(path, params={"kind": "checkpoint"}, content=content).status_code == 413
        assert http.put(path, content=content).status_code == 204
