"""Flower beside the fleet's own documents and pages: the same states, numbers, queues and workers."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx

from control_plane.contract.declarations import drones, orders
from control_plane.contract.declarations.orders import CancelRequest, OrderFilter, SubmitRequest
from shared import names
from tests.chaos.fleet_under_load import FleetUnderLoad
from tests.support import wait_until

FINAL = frozenset({"SUCCESS", "FAILURE", "RETRY", "REVOKED"})
SECRET_WORD = "word-of-the-prompt"
SETTLE_SECONDS = 90.0
WAITING = 3
_Doc = dict[str, Any]


def differences(fleet: FleetUnderLoad) -> Iterator[str]:
    """What Flower shows otherwise than the fleet, once all orders have ended and Flower had time to catch up.

    Orders that fail by themselves and orders for a drone that is switched off come on top of those of the campaign.
    """
    off = fleet.register("off").name
    with fleet.client(timeout_s=60) as client:
        asked = SubmitRequest(prompt=f"Count {SECRET_WORD}, script:refused", project="demo")
        waiting = [client.call(orders.SUBMIT, asked.model_copy(update={"drone": off}))["id"] for _ in range(WAITING)]
        failing = [client.call(orders.SUBMIT, asked)["id"] for _ in range(2)]
        wait_until(lambda: all(client.call(orders.SHOW, order_id=each)["status"] == "failed" for each in failing))
        yield from _queues(fleet, client.call(drones.LIST))
        for each in waiting:
            client.call(orders.CANCEL, CancelRequest(), order_id=each)
        wait_until(lambda: all(client.call(orders.SHOW, order_id=each)["status"] == "canceled" for each in waiting))
        listed = client.call(orders.LIST, OrderFilter(limit=1000))
        documents = [client.call(orders.SHOW, order_id=order["id"]) for order in listed]
    yield from _tasks(fleet, documents)
    yield from _workers(fleet)


def _queues(fleet: FleetUnderLoad, known: list[_Doc]) -> Iterator[str]:
    """`fleet drones`, the page *Fleet* and Flower's page of queues give each drone the same number of orders."""
    broker, pages = _answer(fleet, "/flower/broker").text, _answer(fleet, "/fleet", Accept="text/html").text
    if sum(drone["queued"] for drone in known) != WAITING:
        yield f"{WAITING} orders wait, but the drones list {known}"
    for drone in known:
        row = broker.partition(f"<td>{names.queue(drone['id'])}</td>")[2].partition("</tr>")[0]
        card = pages.partition(f'id="drone-{drone["id"]}"')[2].partition("</article>")[0]
        in_flower = re.findall(r"<td[^>]*>\s*(\d+)\s*<", row)
        on_page = re.findall(r"<dt>Queue</dt><dd>(?:<a [^>]*>)?(\d+|empty)", card)
        expected = str(drone["queued"])
        if (in_flower[:1], [found.replace("empty", "0") for found in on_page]) != ([expected], [expected]):
            yield f"{expected} orders are queued for {drone['name']}, Flower shows {in_flower}, the page {on_page}"


def _tasks(fleet: FleetUnderLoad, documents: list[_Doc]) -> Iterator[str]:
    expected = {run["id"]: state_of(order, run) for order in documents for run in order["runs"]}
    order_of = {run["id"]: order["id"] for order in documents for run in order["runs"]}
    tasks, deadline = _tasks_of(fleet), time.monotonic() + SETTLE_SECONDS
    while not _agree(tasks, expected) and time.monotonic() < deadline:
        time.sleep(1)
        tasks = _tasks_of(fleet)
    for run_id, state in expected.items():
        shown = tasks.get(run_id, {})
        if (shown.get("state"), order_of[run_id] in str(shown.get("args"))) != (state, True):
            yield f"run {run_id} of order {order_of[run_id]} is {state}, Flower shows {shown}"
    yield from _numbers(documents, tasks)
    if SECRET_WORD in json.dumps(tasks):
        yield "a task shows words of its prompt"
    for order in documents:
        if wrong := [run["id"] for run in order["runs"] if run["flower"] != f"{fleet.url}/flower/task/{run['id']}"]:
            yield f"order {order['id']} does not lead to the tasks of {wrong}"


def _numbers(documents: list[_Doc], tasks: dict[str, _Doc]) -> Iterator[str]:
    # A task without a run never began: its order was canceled first, or its drone gave it back.
    runs = {run["id"] for order in documents for run in order["runs"]}
    never_began = Counter(task["state"] for run_id, task in tasks.items() if run_id not in runs)
    if never_began.keys() - {"REVOKED", "RETRY"} or never_began["REVOKED"] < WAITING:
        yield f"tasks without a run are {dict(never_began)}"
    for status, state in {"succeeded": "SUCCESS", "failed": "FAILURE"}.items():
        expected = {order["id"] for order in documents if order["status"] == status}
        shown = {each["id"] for each in documents if state in {tasks[run["id"]]["state"] for run in each["runs"]}}
        # A late run may succeed after its order was canceled.
        if expected - shown or (state == "FAILURE" and shown != expected):
            yield f"orders {expected} have {status}, those with a task in {state} are {shown}"


def _agree(tasks: dict[str, _Doc], expected: dict[str, str]) -> bool:
    same = all(tasks.get(run_id, {}).get("state") == state for run_id, state in expected.items())
    return same and {task["state"] for task in tasks.values()} <= FINAL


def state_of(order: _Doc, run: _Doc) -> str:
    """What Flower is to show of a run, by the order's document."""
    if run["status"] == "success":
        return "SUCCESS"
    last = run is order["runs"][-1]
    if run["exit_status"] == "canceled" or (last and order["status"] == "canceled"):
        return "REVOKED"
    return "FAILURE" if last and order["status"] == "failed" else "RETRY"


def _workers(fleet: FleetUnderLoad) -> Iterator[str]:
    """Each drone that runs is one worker, whatever was killed and started again; one that is off is none."""
    listed = _answer(fleet, "/flower/workers?json=1").json()["data"]
    shown = sorted((each["hostname"].partition("@")[0], each["status"]) for each in listed)
    expected = sorted((f"{drone.name}.{drone.id}", True) for drone in fleet.drones.values())
    if shown != expected:
        yield f"the drones are {expected}, Flower lists {shown}"


def _tasks_of(fleet: FleetUnderLoad) -> dict[str, _Doc]:
    return dict(_answer(fleet, "/flower/api/tasks").json())


def _answer(fleet: FleetUnderLoad, path: str, **headers: str) -> httpx.Response:
    """The answer to the admin, once there is one: Flower may be starting."""

    def ask() -> httpx.Response | None:
        with suppress(httpx.HTTPError):
            return fleet.get(path, fleet.token, **headers).raise_for_status()
        return None

    return wait_until(ask, seconds=SETTLE_SECONDS, every=1.0)
