"""The pages of sessions and orders over HTTP, as a browser without scripts uses them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from sqlalchemy import update

from control_plane.db.orders import Dispatch
from control_plane.declarations import orders
from control_plane.orders.scores import Candidate, Usual, score
from shared.events import (
    AssistantStep,
    ChildStep,
    CompactionStep,
    RetryStep,
    ToolCallStep,
    ToolResultStep,
    Usage,
    VerifyStep,
)
from shared.reasons import DroneChoice, Placed
from tests.support.fleet import Api, PlayedRun


@pytest.fixture
def browser(api: Api) -> Iterator[httpx.Client]:
    """A logged-in admin."""
    with api.browser({"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}) as client:
        yield client


def calls(run: PlayedRun, name: str, output: str, **result: object) -> None:
    run.step(ToolCallStep(call_id=name, tool="shell", arguments={"command": f"run {name}"}))
    run.step(ToolResultStep.model_validate({"call_id": name, "output": output, "return_code": 0, **result}))


def elements(page: str) -> int:
    return len(re.findall(r"<[a-zA-Z]", page))


def test_a_session_opens_at_its_running_turn_and_an_order_at_its_own(
    api: Api, run: PlayedRun, browser: httpx.Client
) -> None:
    run.says("The first answer")
    run.ends(response="First.")
    session = api.client.call(orders.SHOW, order_id=run.order_id)["session"]
    second = run.drone.take(api.submit("And the guide", session=session))
    second.says("The second answer")
    page, first = browser.get(f"/sessions/{session[:6]}").text, browser.get(f"/orders/{run.order_id}").text
    for words in ("The first answer", "The second answer", "Fix the failing test", "And the guide", "Stop and send"):
        assert words in page
    assert "The second answer" not in first
    assert "See the result" in first
    assert f'href="/orders/{second.order_id}">Next turn' in first


def test_a_turn_with_many_calls_opens_with_few_elements(api: Api, run: PlayedRun, browser: httpx.Client) -> None:
    for number in range(150):
        calls(run, str(number), "a line\n" * 30, return_code=number % 2)
    page = browser.get(f"/orders/{run.order_id}").text
    assert (elements(page) < 1200, 'data-earlier="' in page) == (True, True)


# --- the log ----------------------------------------------------------------------------------------


def test_the_log_has_all_outputs_in_order_with_numbers_that_stay(run: PlayedRun, browser: httpx.Client) -> None:
    calls(run, "one", "first\nsecond\n")
    calls(run, "two", "\x1b[31mthird\x1b[0m", return_code=1)
    before = browser.get(f"/orders/{run.order_id}/log").text
    run.step(VerifyStep(attempt=1, command="make test", passed=False, return_code=2, output="fourth"))
    page = browser.get(f"/orders/{run.order_id}/log").text
    numbered = re.findall(r'id="L(\d+)"><a[^>]*>\d+</a><code>(.*?)</code>', page)
    assert numbered == [("1", "first"), ("2", "second"), ("3", '<span class="t1">third</span>'), ("4", "fourth")]
    assert numbered[:3] == re.findall(r'id="L(\d+)"><a[^>]*>\d+</a><code>(.*?)</code>', before)
    for words in ("run one", "exit 1", "make test"):
        assert words in page


def test_the_log_is_searched_and_paged_on_the_server(run: PlayedRun, browser: httpx.Client) -> None:
    calls(run, "long", "\n".join(f"line {number}" for number in range(1, 1001)))
    calls(run, "next", "the <b>needle</b>")
    run.ends()
    first = browser.get(f"/orders/{run.order_id}/log").text
    assert "line 250<" in first
    assert "line 251<" not in first
    assert f"/orders/{run.order_id}/log?line=251" in first
    found = browser.get(f"/orders/{run.order_id}/log", params={"text": "NEEDLE</b>"}).text
    assert "1 line contain" in found
    assert "the &lt;b&gt;needle&lt;/b&gt;" in found
    assert f"/orders/{run.order_id}/log?line=981#L1001" in found
    assert 'id="L1001"' in browser.get(f"/orders/{run.order_id}/log?line=981").text
    assert 'id="L1001"' in browser.get(f"/orders/{run.order_id}/log?call=5").text


# --- the details --------------------------------------------------------------------------------------


def test_the_details_show_calls_waits_and_attempts(api: Api, run: PlayedRun, browser: httpx.Client) -> None:
    run.step(AssistantStep(text="x", usage=Usage(input_tokens=1234, output_tokens=56, cost_usd=0.5), duration_ms=4000))
    calls(run, "one", "out", duration_ms=1500)
    run.step(RetryStep(attempt=1, delay_s=2, error_class="rate_limit", error="429"))
    run.step(CompactionStep(summary="s", tokens_before=9000, tokens_after=1000))
    run.step(ChildStep(call_id="one", step={"kind": "assistant", "text": "child"}))
    page = browser.get(f"/orders/{run.order_id}/details").text
    for words in ("1,234", "$0.50", "run one", "rate limit", "9,000", "Attempt", "mila", "/trajectory"):
        assert words in page, words
    assert "style=" not in page


def test_the_details_show_how_drones_were_scored(api: Api, run: PlayedRun, browser: httpx.Client) -> None:
    busy = score(Candidate("oka", 1, 1, False, False, 0.0, None), Usual(400, 100)).as_fact()
    choice = DroneChoice(placed=Placed(code="repository", drone="mila"), scores=(busy,), scored=7)
    with api.core.database.write() as db:
        db.execute(update(Dispatch).where(Dispatch.order_id == run.order_id).values(choice=choice))
    page = browser.get(f"/orders/{run.order_id}/details").text
    assert "scores of 7 drones" in page
    assert 'oka <span class="muted">full</span></th><td class="num">520</td><td class="num">400</td>' in page


def test_the_details_name_the_models_of_the_calls_where_several_took_turns(
    run: PlayedRun, browser: httpx.Client
) -> None:
    def page() -> str:
        return browser.get(f"/orders/{run.order_id}/details").text

    run.step(AssistantStep(text="x", model="openai/one", duration_ms=4000))
    run.step(AssistantStep(text="y", model="openai/one", duration_ms=4000))
    assert "Model call of" not in page()
    run.step(AssistantStep(text="z", model="openai/two", duration_ms=4000))
    assert ("Model call of openai/one" in page(), "Model call of openai/two" in page()) == (True, True)
