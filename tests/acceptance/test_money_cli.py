"""Money as its users meet it: budgets, prices, orders that stop or ask at their limit, and what was spent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from control_plane.contract.declarations import projects, providers
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
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
    five = [*(shell(f"echo {number} >> steps.txt") for number in range(5)), {"text": "Five steps done."}]
    with ScriptedServer({**SCRIPTS, "five": five}) as started:
        yield started


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, server: ScriptedServer) -> Iterator[WholeFleet]:
    root = tmp_path_factory.mktemp("money")
    started = WholeFleet(root)
    try:
        started.start()
        add_project(started, server, "free", LISTED, f"file://{calc_project(root / 'calc.git')}")
        yield started
    finally:
        started.close()


def add_project(fleet: WholeFleet, server: ScriptedServer, slug: str, model: str, git_url: str) -> None:
    """A project with a provider of its own."""
    with fleet.client() as client:
        request = ProviderRequest(name=slug, model=model, api_base=server.url, params={"max_tokens": 1024})
        client.call(providers.ADD, request)
        client.call(projects.ADD, ProjectRequest(slug=slug, git_url=git_url, provider=slug))


def until_it_waits(fleet: WholeFleet, order: Doc) -> Doc:
    """The order once it waits for a person."""
    found: Doc = wait_until(
        lambda: (shown := fleet.order(order["id"]))["status"] == "awaiting_approval" and shown, seconds=60
    )
    return found


def test_an_order_stops_at_its_limit_before_the_call_that_may_exceed_it_or_asks(
    fleet: WholeFleet, server: ScriptedServer
) -> None:
    before = len(server.requests)
    whole = fleet.ended(fleet.submit("Five steps, script:five", project="free")["id"])
    assert all(body["max_tokens"] == 1024 for body in server.requests[before:])
    limit = 0.9 * whole["stats"]["cost_usd"]
    stopped = fleet.ended(fleet.submit("Five steps, script:five", "--cost-limit", f"{limit:.6f}", project="free")["id"])
    assert (stopped["status"], stopped["exit_status"]) == ("failed", "cost_limit")
    assert stopped["stats"]["cost_usd"] <= limit

    words = ("Five steps, script:five", "--cost-limit", TOO_LITTLE, "--on-limit", "ask")
    raised, finished = (fleet.submit(*words, project="free") for _ in range(2))
    assert "--raise USD" in until_it_waits(fleet, raised)["reason"]
    assert fleet.fleet("approve", raised["id"], "--raise", "0.5").returncode == 0
    assert fleet.ended(raised["id"])["response"] == "Five steps done."
    until_it_waits(fleet, finished)
    calls = len(server.requests)
    assert fleet.fleet("deny", finished["id"], "--finish").returncode == 0
    assert fleet.ended(finished["id"])["exit_status"] == "cost_limit"
    assert "Answer with a summary" in server.requests[calls]["messages"][-1]["content"]


def test_a_budget_stops_orders_until_it_is_raised_and_refuses_a_model_until_it_has_a_price(
    fleet: WholeFleet, server: ScriptedServer
) -> None:
    url = fleet.json("project", "show", "free")["git_url"]
    add_project(fleet, server, "budgeted", "openai/own-model", url)
    budget = ("budget", "set", "project", "budgeted")
    assert fleet.fleet(*budget, TOO_LITTLE, "--per", "day").returncode == 0
    unpriced = fleet.ended(fleet.submit("Note it, script:note", project="budgeted")["id"])
    assert fleet.fleet("price", "set", "openai/own-model", "--input", "1", "--output", "2").returncode == 0
    stopped = fleet.ended(fleet.submit("Note it, script:note", project="budgeted")["id"])
    asks = fleet.submit("Note it, script:note", "--on-limit", "ask", project="budgeted")
    until_it_waits(fleet, asks)
    assert fleet.fleet(*budget, "5", "--per", "day").returncode == 0
    assert fleet.fleet("approve", asks["id"]).returncode == 0
    ended = fleet.ended(asks["id"])

    assert "fleet price set openai/own-model --input USD --output USD" in unpriced["reason"]
    assert (stopped["status"], stopped["exit_status"]) == ("failed", "cost_limit")
    assert "fleet budget set project budgeted USD --per day" in stopped["reason"]
    stats = ended["stats"]
    assert ended["status"] == "succeeded"
    assert stats["cost_usd"] == pytest.approx((stats["input_tokens"] + 2 * stats["output_tokens"]) / 1e6)
    (shown,) = fleet.json("budget", "show", "project", "budgeted")["budgets"]
    spent = {line["name"]: line["spent_usd"] for line in fleet.json("cost", "--by", "project")}["budgeted"]
    assert shown["reserved_usd"] == 0
    assert shown["spent_usd"] == pytest.approx(spent, abs=1e-6) == pytest.approx(stats["cost_usd"], abs=1e-6)
