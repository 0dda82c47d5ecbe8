"""Money as its users meet it: budgets, prices, and orders that stop or ask at their limit."""

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
FIVE = [*(shell(f"echo {number} >> steps.txt") for number in range(5)), {"text": "Five steps done."}]
HALF = {"text": "Half done. The other half is left."}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer({**SCRIPTS, "five": FIVE, "half": [HALF]}) as started:
        yield started


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, server: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> WholeFleet:
    """The shared fleet with a project for each of two models."""
    remote = calc_project(tmp_path_factory.mktemp("money") / "calc.git").as_uri()
    with shared_fleet.client() as client:
        for slug, model in (("free", LISTED), ("budgeted", "openai/own-model")):
            request = ProviderRequest(name=slug, model=model, api_base=server.url, params={"max_tokens": 1024})
            client.call(providers.ADD, request)
            client.call(projects.ADD, ProjectRequest(slug=slug, git_url=remote, provider=slug))
    return shared_fleet


def until_it_waits(fleet: WholeFleet, order: Doc) -> Doc:
    """The order once it waits for a person."""
    found: Doc = wait_until(lambda: (shown := fleet.order(order["id"]))["status"] == "awaiting_approval" and shown)
    return found


def test_an_order_stops_at_its_limit_before_the_call_that_may_exceed_it_or_asks(
    fleet: WholeFleet, server: ScriptedServer
) -> None:
    whole = fleet.ended(fleet.submit("Five steps, script:five", project="free")["id"])
    limit = 0.9 * whole["stats"]["cost_usd"]
    stopped = fleet.ended(fleet.submit("Five steps, script:five", "--cost-limit", f"{limit:.6f}", project="free")["id"])
    assert (stopped["status"], stopped["exit_status"]) == ("failed", "cost_limit")
    assert stopped["stats"]["cost_usd"] <= limit

    words = ("Five steps, script:five", "--cost-limit", TOO_LITTLE, "--on-limit", "ask")
    raised = fleet.submit(*words, project="free")
    finished = fleet.submit("Summarize, script:half", *words[1:], project="free")
    assert "--raise USD" in until_it_waits(fleet, raised)["reason"]
    assert fleet.fleet("approve", raised["id"], "--raise", "0.5").returncode == 0
    assert fleet.ended(raised["id"])["response"] == "Five steps done."
    until_it_waits(fleet, finished)
    calls = len(server.requests)
    assert fleet.fleet("deny", finished["id"], "--finish").returncode == 0
    ended = fleet.ended(finished["id"])
    assert (ended["status"], ended["exit_status"], ended["response"]) == ("failed", "cost_limit", HALF["text"])
    assert "Answer with a summary" in server.requests[calls]["messages"][-1]["content"]


def test_a_budget_stops_orders_until_it_is_raised_and_refuses_a_model_until_it_has_a_price(fleet: WholeFleet) -> None:
    budget = ("budget", "set", "project", "budgeted")
    assert fleet.fleet(*budget, TOO_LITTLE, "--per", "day").returncode == 0
    unpriced = fleet.ended(fleet.submit("Note it, script:note", project="budgeted")["id"])
    assert fleet.fleet("price", "set", "openai/own-model", "--input", "1", "--output", "2").returncode == 0
    asks = fleet.submit("Note it, script:note", "--on-limit", "ask", project="budgeted")
    waiting = until_it_waits(fleet, asks)
    assert fleet.fleet(*budget, "5", "--per", "day").returncode == 0
    assert fleet.fleet("approve", asks["id"]).returncode == 0
    ended = fleet.ended(asks["id"])

    assert "fleet price set openai/own-model --input USD --output USD" in unpriced["reason"]
    assert "fleet budget set project budgeted USD --per day" in waiting["reason"]
    stats = ended["stats"]
    assert ended["status"] == "succeeded"
    assert stats["cost_usd"] == pytest.approx((stats["input_tokens"] + 2 * stats["output_tokens"]) / 1e6)
    (shown,) = fleet.json("budget", "show", "project", "budgeted")["budgets"]
    assert (shown["reserved_usd"], shown["spent_usd"]) == (0, pytest.approx(stats["cost_usd"], abs=1e-6))
