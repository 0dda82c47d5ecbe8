"""A budget for a few orders against many more, on drones that are killed at random: it is never exceeded."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import budgets, costs, orders, projects, providers
from control_plane.contract.declarations.costs import CostFilter
from control_plane.contract.declarations.orders import OrderFilter, SubmitRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from drone.model.scripted.completions import completion, guessed_tokens
from drone.model.scripted.server import ScriptedServer
from tests.chaos.parts import Drone
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import Doc, WholeFleet

MODEL = "openai/gpt-4o-mini"
INPUT, OUTPUT = 0.15e-6, 0.60e-6
"""USD per token in LiteLLM's list, which bounds and charges the calls; the provider here bills the same."""
CALLS = 5
SCRIPT = [
    *[{"tool_calls": [{"name": "shell", "arguments": {"command": f"echo {n} >> steps.txt"}}]} for n in range(1, CALLS)],
    {"text": "Done."},
]
TO_THE_CENT = 0.005


@dataclass
class Bill:
    """What the provider charges for the requests that it received."""

    server: ScriptedServer

    @property
    def total(self) -> float:
        return sum(self._price(body) for body in self.server.requests)

    def _price(self, body: Doc) -> float:
        index, reply = self.server.book.reply(body["messages"])
        usage = completion(index, reply, body, guessed_tokens)["usage"]
        return float(usage["prompt_tokens"] * INPUT + usage["completion_tokens"] * OUTPUT)


@dataclass
class Watch:
    """Reads the budget all the time, in a thread of its own."""

    fleet: WholeFleet
    ended: threading.Event = field(default_factory=threading.Event)
    seen: list[Doc] = field(default_factory=list)

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._thread.join()

    def _look(self) -> None:
        with self.fleet.client() as client:
            while not self.ended.wait(0.5):
                self.seen.append(budget_of(client))


def budget_of(client: FleetClient) -> Doc:
    return dict(client.call(budgets.SHOW, kind="project", name="calc")["budgets"][0])


def price_of_one(fleet: WholeFleet, bill: Bill) -> float:
    """What one order costs."""
    order = fleet.ended(fleet.submit("Note it", project="calc")["id"])
    assert order["status"] == "succeeded"
    assert order["stats"]["cost_usd"] == pytest.approx(bill.total)
    return bill.total


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("count", "paid", "names", "kills"),
    [
        pytest.param(16, 7, ("mila", "oka"), 2, id="short"),
        pytest.param(
            200, 10, ("mila", "oka", "tano", "ubi"), 20, id="long", marks=[pytest.mark.chaos, pytest.mark.long]
        ),
    ],
)
def test_orders_never_spend_more_than_their_budget_while_drones_die(
    tmp_path: Path, count: int, paid: int, names: tuple[str, ...], kills: int
) -> None:
    """The budget is the price of `paid` orders."""
    with with_a_budget(tmp_path, paid, names) as (fleet, drones, bill, limit):
        with Watch(fleet) as watch, fleet.client() as client:
            submit(client, count)
            kill_at_random(drones, kills)
            wait_until(lambda: ended(client) == count + 1, seconds=600, every=1.0)
            wait_until(lambda: budget_of(client)["reserved_usd"] == 0, seconds=120, every=1.0)
        check(fleet, watch, bill, limit)


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_at_the_end_of_a_budget_for_six_of_thirty_orders_all_end_within_a_minute(tmp_path: Path) -> None:
    with with_a_budget(tmp_path, 6, ("mila", "oka")) as (fleet, _, bill, limit):
        with Watch(fleet) as watch, fleet.client() as client:
            submit(client, 30)
            wait_until(lambda: ended(client) == 31, seconds=60)
            assert budget_of(client)["reserved_usd"] == 0
            listed = client.call(orders.LIST, OrderFilter(limit=1000))
        failed = [order for order in listed if order["status"] == "failed"]
        assert len(failed) >= 24
        assert all("The budget of project calc has too little left" in order["reason"] for order in failed), failed
        assert all(order["exit_status"] == "cost_limit" for order in failed)
        check(fleet, watch, bill, limit)


@contextmanager
def with_a_budget(
    tmp_path: Path, paid: int, names: tuple[str, ...]
) -> Iterator[tuple[WholeFleet, list[Drone], Bill, float]]:
    """A fleet with a budget for so many orders: its drones, what the provider charges, and the budget in USD."""
    with ScriptedServer({"default": SCRIPT}) as server, closing(WholeFleet(tmp_path / "fleet", drones=0)) as fleet:
        fleet.start()
        url = f"file://{calc_project(tmp_path / 'calc.git')}"
        with fleet.client() as client:
            client.call(providers.ADD, ProviderRequest(name="scripted", model=MODEL, api_base=server.url))
            client.call(projects.ADD, ProjectRequest(slug="calc", git_url=url, provider="scripted"))
        drones = [Drone(fleet.workstation(name, "--concurrency", "2")) for name in names]
        for drone in drones:
            drone.start()
        fleet.online(*names)
        bill = Bill(server)
        limit = paid * price_of_one(fleet, bill)
        assert fleet.fleet("budget", "set", "project", "calc", f"{limit:.6f}", "--per", "total").returncode == 0
        yield fleet, drones, bill, limit


def submit(client: FleetClient, count: int) -> None:
    for number in range(count):
        request = SubmitRequest(prompt=f"Note {number}", project="calc")
        client.call(orders.SUBMIT, request, idempotency_key=f"n{number}")


def kill_at_random(drones: list[Drone], kills: int) -> None:
    numbers = random.Random(7)
    for _ in range(kills):
        time.sleep(numbers.uniform(0.5, 3.0))
        drone = numbers.choice(drones)
        drone.kill()
        drone.start()


def ended(client: FleetClient) -> int:
    listed = client.call(orders.LIST, OrderFilter(limit=1000))
    return sum(order["status"] in {"succeeded", "failed", "canceled"} for order in listed)


def check(fleet: WholeFleet, watch: Watch, bill: Bill, limit: float) -> None:
    """The budget held at every moment, and everything that counts agrees to the cent.

    It is used up while at most four orders run at a time, each of which has cost less than a whole one by then. So of a
    budget for six, two succeed for certain, the first one included; how many more depends on how far the four are.
    """
    assert watch.seen
    most = max(seen["spent_usd"] + seen["reserved_usd"] for seen in watch.seen)
    with fleet.client() as client:
        spent = budget_of(client)["spent_usd"]
        listed = client.call(orders.LIST, OrderFilter(limit=1000))
        by = {
            each: sum(line["spent_usd"] for line in client.call(costs.LIST, CostFilter(by=each)))
            for each in ("day", "project", "model", "drone")
        }
    succeeded = sum(order["status"] == "succeeded" for order in listed)
    of_runs = sum(order["stats"]["cost_usd"] for order in listed)
    figures = f"limit {limit:.6f}, billed {bill.total:.6f}, counted {spent:.6f}, at most {most:.6f} at any moment"
    sys.stdout.write(f"\n{figures}, {succeeded} orders succeeded\n")
    assert most <= limit + 1e-6
    assert bill.total <= limit + 1e-6
    assert bill.total <= spent + 1e-6
    assert spent == pytest.approx(of_runs, abs=TO_THE_CENT)
    assert by == pytest.approx(dict.fromkeys(by, spent), abs=TO_THE_CENT)
    assert succeeded >= 2
    assert all(order["exit_status"] in {"cost_limit", "lost"} for order in listed if order["status"] == "failed")
