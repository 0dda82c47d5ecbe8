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
from shared.blobs import digest
from shared.errors import Invalid
from shared.events import AssistantStep, CheckpointStep, ResumedStep, UserStep
from shared.states import OrderStatus
from tests.support.command_tree import invoke
from tests.support.fleet import Api, PlayedRun

FORM = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}


@pytest.fixture
def failed(api: Api) -> PlayedRun:
    """A run that did one complete step, and ended its order as failed."""
    api.add_work()
    run = api.add_drone().take(api.submit())
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


# --- in the terminal -----------------------------------------------------------------------------


def test_the_terminal_lets_an_order_go_on(api: Api, failed: PlayedRun) -> None:
    done = fleet(api, "resume", failed.order_id, "--max-iterations", "80", "--say", "go on", "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "assigned")
    assert columns(api, failed.order_id).limits["max_iterations"] == 80
    twice = fleet(api, "retry", failed.order_id)
    assert (twice.returncode, f"fleet follow {failed.order_id}" in twice.stderr) == (4, True)


def test_submit_takes_attempts_and_the_limit_of_quiet(api: Api) -> None:
    api.add_work()
    words = ("--project", "demo", "--max-attempts", "20", "--progress-timeout", "5", "--json")
    order = json.loads(fleet(api, "submit", "do it", *words).stdout)
    assert (order["max_attempts"], api.submit()["max_attempts"]) == (20, 3)
    assert columns(api, order["id"]).limits["progress_timeout"] == 5
    for wrong in ({"max_attempts": 0}, {"max_attempts": 101}, {"progress_timeout": -1}):
        with pytest.raises(Invalid):
            api.submit(**wrong)


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
