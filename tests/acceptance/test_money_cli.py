"""Money as its users meet it: budgets, prices, orders that stop or ask at their limit, and what was spent."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from control_plane.declarations import projects, providers
from control_plane.declarations.projects import ProjectRequest
from control_plane.declarations.providers import ProviderRequest
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import SCRIPTS, shell
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import Doc, WholeFleet

pytestmark = [pytest.mark.timeout(300)]
LISTED = "openai/gpt-4o-mini"
"""Has a price in LiteLLM's list; what answers here is the scripted model."""
TOO_LITTLE = "0.0005"
"""USD: less than the shortest useful answer of this model may cost."""


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    steps = [*(shell(f"echo {number} >> steps.txt") for number in range(5)), {"text": "Five steps done."}]
    thirty = [
        *(shell(f"echo {number} >> steps.txt; sleep 0.2") for number in range(30)),
        {"text": "All steps done."},
    ]
    with ScriptedServer({**SCRIPTS, "five": steps, "thirty": thirty}) as started:
        yield started


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, server: ScriptedServer) -> Iterator[WholeFleet]:
    root = tmp_path_factory.mktemp("money")
    started = WholeFleet(root)
    try:
        started.start()
        url = f"file://{calc_project(root / 'calc.git')}"
        with started.client() as client:
            for name, model in (("listed", LISTED), ("unlisted", "openai/own-model")):
                client.call(providers.ADD, ProviderRequest(name=name, model=model, api_base=server.url))
            for slug in ("free", "budgeted", "unpriced"):
                client.call(projects.ADD, ProjectRequest(slug=slug, git_url=url, provider="listed"))
        yield started
    finally:
        started.close()


def limited(fleet: WholeFleet, *options: str) -> Doc:
    return fleet.submit("Five steps, script:five", "--cost-limit", TOO_LITTLE, *options, project="free")


def waiting(fleet: WholeFleet, order: Doc) -> Doc:
    """The order once it waits for a person."""
    found: Doc = wait_until(
        lambda: (shown := fleet.order(order["id"]))["status"] == "awaiting_approval" and shown, seconds=60
    )
    return found


def test_max_tokens_is_sent_with_every_call(fleet: WholeFleet, server: ScriptedServer) -> None:
    before = len(server.requests)
    assert fleet.ended(fleet.submit("Note it, script:note", project="free")["id"])["status"] == "succeeded"
    sent = server.requests[before:]
    assert len(sent) == 2
    assert all(0 < body["max_tokens"] <= 16_384 for body in sent)


def test_an_order_stops_at_its_cost_limit_before_the_call_that_may_exceed_it(fleet: WholeFleet) -> None:
    whole = fleet.ended(fleet.submit("Five steps, script:five", project="free")["id"])
    limit = 0.9 * whole["stats"]["cost_usd"]
    order = fleet.ended(fleet.submit("Five steps, script:five", "--cost-limit", f"{limit:.6f}", project="free")["id"])
    assert (order["status"], order["exit_status"]) == ("failed", "cost_limit")
    assert "the next model call may cost" in order["reason"]
    assert order["stats"]["cost_usd"] <= limit


def test_an_order_that_asks_waits_and_continues_when_its_limit_is_raised(fleet: WholeFleet) -> None:
    order = limited(fleet, "--on-limit", "ask")
    shown = waiting(fleet, order)
    assert "fleet approve" in shown["reason"]
    assert "--raise USD" in shown["reason"]
    assert fleet.fleet("approve", order["id"], "--raise", "0.5").returncode == 0
    ended = fleet.ended(order["id"])
    assert (ended["status"], ended["response"]) == ("succeeded", "Five steps done.")


def test_an_order_that_asks_stops_when_a_person_says_so(fleet: WholeFleet) -> None:
    order = limited(fleet, "--on-limit", "ask")
    waiting(fleet, order)
    assert fleet.fleet("deny", order["id"]).returncode == 0
    ended = fleet.ended(order["id"])
    assert (ended["status"], ended["exit_status"]) == ("failed", "cost_limit")


def test_an_order_that_asks_can_finish_with_one_more_answer(fleet: WholeFleet, server: ScriptedServer) -> None:
    order = limited(fleet, "--on-limit", "ask")
    waiting(fleet, order)
    calls = len(server.requests)
    assert fleet.fleet("deny", order["id"], "--finish").returncode == 0
    fleet.ended(order["id"])
    assert len(server.requests) == calls + 1
    assert "Answer with a summary" in server.requests[-1]["messages"][-1]["content"]


def test_a_budget_stops_orders_names_itself_and_lets_them_continue_once_it_is_raised(fleet: WholeFleet) -> None:
    assert fleet.fleet("budget", "set", "project", "budgeted", TOO_LITTLE, "--per", "day").returncode == 0
    stopped = fleet.ended(fleet.submit("Five steps, script:five", project="budgeted")["id"])
    assert (stopped["status"], stopped["exit_status"]) == ("failed", "cost_limit")
    assert "The budget of project budgeted has too little left" in stopped["reason"]
    assert "fleet budget set project budgeted USD --per day" in stopped["reason"]

    asks = fleet.submit("Five steps, script:five", "--on-limit", "ask", project="budgeted")
    waiting(fleet, asks)
    assert fleet.fleet("budget", "set", "project", "budgeted", "5", "--per", "day").returncode == 0
    assert fleet.fleet("approve", asks["id"]).returncode == 0
    assert fleet.ended(asks["id"])["status"] == "succeeded"
    (shown,) = fleet.json("budget", "show", "project", "budgeted")["budgets"]
    assert shown["reserved_usd"] == 0
    spent = sum(fleet.order(each["id"])["stats"]["cost_usd"] for each in (stopped, asks))
    assert shown["spent_usd"] == pytest.approx(spent, abs=1e-6)


def test_a_model_without_a_price_is_refused_under_a_budget_until_its_price_is_set(fleet: WholeFleet) -> None:
    assert fleet.fleet("budget", "set", "project", "unpriced", "5", "--per", "month").returncode == 0
    submit: Callable[[], Doc] = lambda: fleet.submit(  # noqa: E731 - twice the same
        "Note it, script:note", "--provider", "unlisted", project="unpriced"
    )
    refused = fleet.ended(submit()["id"])
    assert refused["status"] == "failed"
    assert "fleet price set openai/own-model --input USD --output USD" in refused["reason"]
    price = fleet.fleet("price", "set", "openai/own-model", "--input", "1", "--output", "2")
    assert price.returncode == 0, price.stderr
    charged = fleet.ended(submit()["id"])
    assert charged["status"] == "succeeded"
    stats = charged["stats"]
    assert stats["cost_usd"] == pytest.approx((stats["input_tokens"] + 2 * stats["output_tokens"]) / 1e6)


def test_a_raise_for_what_is_no_cost_limit_is_refused(fleet: WholeFleet) -> None:
    order = fleet.submit("Remove it, script:risky", "--approve", "risky", project="free")
    waiting(fleet, order)
    for arguments, why in (
        (("approve", "--raise", "1"), "can only raise the limit"),
        (("deny", "--finish"), "cost limit"),
    ):
        refused = fleet.fleet(arguments[0], order["id"], *arguments[1:])
        assert refused.returncode == 2
        assert why in refused.stderr
    assert fleet.fleet("approve", order["id"], "--raise", "-1").returncode == 2
    assert fleet.fleet("deny", order["id"]).returncode == 0
    fleet.ended(order["id"])


def test_what_was_spent_is_listed_by_project_and_adds_up(fleet: WholeFleet, tmp_path: Path) -> None:
    by_project = {line["name"]: line["spent_usd"] for line in fleet.json("cost", "--by", "project")}
    by_day = fleet.json("cost")
    listed = [fleet.order(each["id"]) for each in fleet.json("orders", "--limit", "100")]
    spent = sum(order["stats"]["cost_usd"] or 0 for order in listed)
    assert sum(by_project.values()) == pytest.approx(spent, abs=0.005)
    assert sum(line["spent_usd"] for line in by_day) == pytest.approx(spent, abs=0.005)
    table = fleet.fleet("cost", "--by", "project", "--csv").stdout.splitlines()
    assert table[0].startswith("project,")


def test_while_the_control_plane_is_away_a_run_uses_its_block_then_waits_and_continues_later(
    tmp_path: Path, server: ScriptedServer
) -> None:
    fleet = WholeFleet(tmp_path / "fleet", drones=0)
    try:
        fleet.start()
        dearly_budgeted(fleet, server, f"file://{calc_project(tmp_path / 'calc.git')}")
        fleet.workstation("mila").start()
        fleet.online("mila")
        before = len(server.requests)
        order = fleet.submit("Thirty steps, script:thirty", project="dear")
        wait_until(lambda: len(server.requests) >= before + 3, seconds=60)
        url = fleet.url
        fleet.stop()
        at_stop = len(server.requests)
        with in_place_of(url, server) as made:
            # It has asked for money again and again, and made no call in between.
            wait_until(lambda: len(made) > 3 and made[-1] == made[-3], seconds=120)
            away = server.requests[before:]
        assert len(away) < 31
        fleet.start()
        ended = fleet.ended(order["id"])
        (budget,) = fleet.json("budget", "show", "project", "dear")["budgets"]
    finally:
        fleet.close()
    sys.stdout.write(f"\n{at_stop - before} calls, {len(away)} before the run waited\n")
    assert (ended["status"], ended["response"]) == ("succeeded", "All steps done."), ended["reason"]
    assert len(server.requests) == before + 31
    assert budget["spent_usd"] == pytest.approx(ended["stats"]["cost_usd"])
    assert budget["reserved_usd"] == 0


def dearly_budgeted(fleet: WholeFleet, server: ScriptedServer, url: str) -> None:
    """A project `dear` with a budget, whose model costs so much that a block lasts for a few calls."""
    with fleet.client() as client:
        dear = ProviderRequest(name="dear", model="openai/dear", api_base=server.url, params={"max_tokens": 1024})
        client.call(providers.ADD, dear)
        client.call(projects.ADD, ProjectRequest(slug="dear", git_url=url, provider="dear"))
    assert fleet.fleet("price", "set", "openai/dear", "--input", "20", "--output", "20").returncode == 0
    assert fleet.fleet("budget", "set", "project", "dear", "50", "--per", "total").returncode == 0


@contextmanager
def in_place_of(url: str, model: ScriptedServer) -> Iterator[list[int]]:
    """A server at the address of a stopped fleet that answers nothing.

    Returns, of each request for money, how many calls of the model had been made by then.
    """
    made: list[int] = []

    class Closing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if self.path.endswith("/allowance"):
                made.append(len(model.requests))
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    address = httpx.URL(url)
    with ThreadingHTTPServer((address.host, address.port or 80), Closing) as standing:
        thread = threading.Thread(target=standing.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield made
        finally:
            standing.shutdown()
            thread.join()
