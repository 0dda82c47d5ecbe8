"""What the reservation of money adds to a model call: at most 2 ms at the median, since blocks are granted ahead."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from control_plane.contract.declarations import budgets
from control_plane.contract.declarations.budgets import BudgetRequest
from drone.agent.in_memory import KeptEvents, QuietControls
from drone.model.litellm_model import LiteLLMModel
from drone.model.scripted.server import ScriptedServer
from drone.runs.blobs import RunApi
from drone.runs.kept_spending import KeptSpending
from drone.runs.purse import Purse
from drone.runs.run_meter import RunMeter
from shared.budgets import Money
from shared.clock import SystemClock
from shared.messages import Message
from shared.work_order import Limits, OrderProvider
from tests.support.fleet import Api

pytestmark = pytest.mark.bench
ROUNDS = 60
MOST_MS = 2.0
MOST_OF_A_CALL = 0.5
"""Beside other work. A call to an endpoint that answers at once takes 10 to 15 ms."""


@pytest.fixture
def models(api: Api, tmp_path: Path) -> Iterator[dict[str, LiteLLMModel]]:
    """The same model without and with a budget, whose blocks are granted by a real control plane."""
    api.add_work()
    drone = api.add_drone()
    run = drone.take(api.submit())
    api.client.call(budgets.SET, BudgetRequest(usd=100, per="day"), kind="project", name="demo")
    clock, recorder, controls = SystemClock(), KeptEvents(), QuietControls()
    with (
        ScriptedServer([{"text": "Done.", "repeat": True}]) as endpoint,
        closing(RunApi(api.url, drone.token, run.id, clock, lambda: 5.0)) as account,
    ):
        provider = OrderProvider(name="scripted", model="openai/gpt-4o", api_base=endpoint.url)
        purse = Purse(0, 0, account, Money(bounded=True), KeptSpending(tmp_path / "spending"))
        meter = RunMeter(purse, recorder, controls, clock)
        plain = LiteLLMModel(provider, None, Limits(), recorder, clock, controls)
        metered = LiteLLMModel(provider, None, Limits(), recorder, clock, controls, meter=meter)
        yield {"plain": plain, "metered": metered}
        plain.close()
        metered.close()
        purse.close()
        assert purse.spent > 0


def medians(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Milliseconds of each, called in turn."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            taken[name].append(1e3 * (time.perf_counter() - began))
    return {name: statistics.median(each[5:]) for name, each in taken.items()}


@pytest.mark.parametrize("form", ["short", pytest.param("long", marks=pytest.mark.long)])
def test_a_budget_adds_little_to_a_call(
    models: dict[str, LiteLLMModel], capsys: pytest.CaptureFixture[str], form: str
) -> None:
    question = (Message(role="system", content="Rules. " * 500), Message(role="user", content="Do it."))
    found = medians(
        {name: lambda model=model: model.answer(question, (), lambda *_: None) for name, model in models.items()}
    )
    with capsys.disabled():
        sys.stdout.write(f"\na call: {found['plain']:.2f} ms, with a budget {found['metered']:.2f} ms\n")
    most = MOST_MS if form == "long" else MOST_OF_A_CALL * found["plain"]
    assert found["metered"] - found["plain"] <= most
