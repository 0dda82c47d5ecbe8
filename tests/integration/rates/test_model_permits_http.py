"""Permits for model calls over HTTP: who may ask, and which runs share a limit."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from control_plane.contract.declarations import providers
from control_plane.contract.declarations.providers import ProviderRequest
from shared.rates import UNLIMITED
from tests.support.fleet import Api, PlayedRun

ASK: dict[str, Any] = {"provider": "limited", "expected": {"input_tokens": 10}}


def add_provider(api: Api, name: str = "limited", **fields: Any) -> None:
    api.client.call(providers.ADD, ProviderRequest(**{"name": name, "model": "openai/x", **fields}))


def new_run(api: Api, drone: str = "oka", provider: str = "limited", **fields: Any) -> PlayedRun:
    return api.add_drone(drone).take(api.submit(provider=provider, **fields))


def ask(api: Api, run: PlayedRun, body: Any = ASK, token: str = "") -> httpx.Response:
    with api.http(token or run.drone.token) as http:
        return http.post(f"/api/v1/runs/{run.id}/model-permit", json=body)


def groups(api: Api) -> int:
    return len(list(api.broker.redis.scan_iter(match="rates:*")))


@pytest.fixture
def work(api: Api) -> Api:
    api.add_work()
    return api


def test_only_the_drone_of_a_run_gets_permits_for_it_for_a_request_that_makes_sense(work: Api) -> None:
    add_provider(work)
    run, other = new_run(work), work.add_drone("mila")
    assert ask(work, run, token=other.token).status_code == 404
    assert ask(work, run, token=work.token).status_code in {401, 403}
    with work.http(None) as http:
        assert http.post(f"/api/v1/runs/{run.id}/model-permit", json=ASK).status_code == 401
    bodies: list[Any] = [[], {"provider": 5}, {"provider": "x" * 300}, {**ASK, "expected": {"input_tokens": -1}}]
    bodies += [{**ASK, "reports": reports} for reports in ([{"retry_after_s": -1}], [{}] * 201)]
    bodies += [{**ASK, "reports": [{"rates": [{"kind": "cats", "limit": 1}]}]}]
    assert [ask(work, run, body).status_code for body in bodies] == [422] * len(bodies)
    answer = ask(work, run, {**ASK, "provider": "renamed"})
    assert answer.json() == UNLIMITED.model_dump(mode="json")
    work.broker.stop()
    answer = ask(work, run)
    assert (answer.status_code, answer.json()["code"]) == (503, "E-BROKER-UNREACHABLE")


def test_providers_with_one_key_at_one_endpoint_share_a_group_and_other_keys_do_not(work: Api) -> None:
    add_provider(work, "one", api_key="sk-1", api_base="https://models.example/v1")
    add_provider(work, "same", api_key="sk-1", api_base="https://models.example/v1", model="openai/other")
    add_provider(work, "other-key", api_key="sk-2", api_base="https://models.example/v1")
    add_provider(work, "elsewhere", api_key="sk-1", api_base="https://other.example/v1")
    found = []
    for number, name in enumerate(("one", "same", "other-key", "elsewhere")):
        ask(work, new_run(work, f"drone{number}", name), {**ASK, "provider": name})
        found.append(groups(work))
    add_provider(work, "own-key", key_variable="MODEL_KEY")
    for name in ("oka", "mila"):
        ask(work, new_run(work, name, "own-key"), {**ASK, "provider": "own-key"})
        found.append(groups(work))
    assert found == [1, 1, 2, 3, 4, 5]
    keys = list(work.broker.redis.scan_iter(match="rates:*"))
    assert not any("sk-" in text for text in [*keys, *(str(work.broker.redis.get(key)) for key in keys)])


def test_runs_get_permits_up_to_their_providers_limit_and_an_urgent_order_goes_first(work: Api) -> None:
    add_provider(work, rpm=12, api_key="sk-1")
    batch = [new_run(work, f"drone{n}") for n in range(5)]
    answers = [ask(work, run).json() for run in batch]
    assert [answer["granted"] for answer in answers] == [True, True, False, False, False]
    assert (answers[2]["limit"], 5 < answers[2]["left_s"] <= 10.25) == (12, True)
    urgent = new_run(work, "urgent", priority=5)
    answer = ask(work, urgent).json()
    assert [answer[field] for field in ("granted", "position", "urgent", "waiting")] == [False, 1, 0, 4]
