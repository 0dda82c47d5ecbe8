"""LiteLLM behind the loop's protocol, against a scripted endpoint that answers and fails over real HTTP."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from drone.agent.values import ModelCallFailed
from drone.model.call import PLACEHOLDER_KEY
from drone.model.litellm_import import Client
from drone.model.scripted.server import ScriptedServer
from shared.errors import Preempted
from shared.events import RetryStep
from shared.work_order import Limits, OrderProvider
from tests.support import wait_until
from tests.support.clocks import HandClock
from tests.support.scripted import HELLO, Called, ScriptedFactory, calls, says
from tests.support.silence import silent_for_long

ONCE = Limits(max_retries=0)

pytestmark = pytest.mark.usefixtures("warm_model")


def _retries(called: Called) -> list[RetryStep]:
    return [body for body in called.recorder.bodies if isinstance(body, RetryStep)]


def _fails_once(failure: dict[str, Any]) -> list[dict[str, Any]]:
    return [says("Here I am.", fail=[failure])]


def test_text_thinking_calls_and_usage_come_back_whole(scripted: ScriptedFactory) -> None:
    usage = {"input_tokens": 100, "output_tokens": 20, "thinking_tokens": 7, "cached_tokens": 30}
    called = Called(scripted([calls("one", "two", text="Let me see.", thinking="Hm, well.", usage=usage)]).url)
    answer = called.ask()
    assert (answer.message.content, answer.message.thinking) == ("Let me see.", "Hm, well.")
    assert [call.arguments for call in answer.message.tool_calls] == ['{"text": "one"}', '{"text": "two"}']
    assert (answer.finish_reason, answer.model) == ("tool_calls", "openai/scripted")
    assert answer.usage.model_dump() == {**usage, "cost_usd": None}
    pieces = {
        kind: "".join(text for each, text in called.recorder.deltas if each == kind) for kind in ("thinking", "text")
    }
    assert pieces == {"thinking": "Hm, well.", "text": "Let me see."}


def test_the_endpoint_gets_the_conversation_the_tools_and_the_parameters(scripted: ScriptedFactory) -> None:
    server = scripted([says("Yes.")])
    params = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "max_tokens": 99, "reasoning_effort": "low"}
    provider = OrderProvider(name="p", model="openai/some/model", api_base=server.url, api_key="k-1", params=params)
    Called(server.url, provider).ask()
    sent = server.requests[0]
    assert sent["messages"] == [{"role": message.role, "content": message.content} for message in HELLO]
    assert sent["tools"][0]["function"]["name"] == "echo"
    assert {"model": "some/model", "stream": True, **params}.items() <= sent.items()
    assert server.received[0].headers["Authorization"] == "Bearer k-1"


def test_an_endpoint_without_a_key_gets_a_placeholder_and_never_the_environments(
    scripted: ScriptedFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-real-secret")
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "another-secret")
    server = scripted([says("Yes.")])
    Called(server.url).ask()
    assert server.received[0].headers["Authorization"] == f"Bearer {PLACEHOLDER_KEY}"


def test_the_price_is_the_lists_or_unknown_and_never_nought(scripted: ScriptedFactory) -> None:
    cases: list[tuple[str, bool]] = [("openai/gpt-4o", True), ("openai/scripted", False), ("hosted_vllm/gpt-4o", False)]
    for model, known in cases:
        server = scripted([says("Yes.")])
        usage = Called(server.url, OrderProvider(name="p", model=model, api_base=server.url)).ask().usage
        assert (usage.cost_usd is not None, usage.cost_usd == 0) == (known, False), model


PASSES: list[tuple[dict[str, Any], str]] = [
    ({"status": 429, "error": "slow down"}, "rate_limit"),
    ({"status": 500, "error": "boom"}, "server"),
    ({"status": 502, "error": "boom"}, "server"),
    ({"status": 503, "error": "no capacity"}, "overloaded"),
    ({"status": 529, "error": "overloaded"}, "overloaded"),
    ({"status": 408, "error": "too slow"}, "timeout"),
    ({"status": 418, "error": "I am a teapot"}, "unknown"),
    ({"text": "Half of an ans", "cut_after": 2}, "server"),
    ({"text": "Half of an ans", "cut_after": 0}, "server"),
    ({"text": "Half of an ans", "end_after": 3}, "server"),
    ({"garbage": "body"}, "server"),
    ({"garbage": "event"}, "server"),
    ({"garbage": "wire"}, "server"),
    ({"delay_s": 600}, "timeout"),
    ({"text": "One two", "chunk_delay_s": 600}, "timeout"),
]
"""Failures that may pass by themselves, and their classes."""
LASTS: list[tuple[dict[str, Any], str]] = [
    ({"status": 401, "error": "Incorrect API key provided"}, "auth"),
    ({"status": 400, "error": "API key not valid. Please pass a valid API key."}, "auth"),
    ({"status": 402, "error": "pay first"}, "billing"),
    (
        {"status": 429, "error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}},
        "billing",
    ),
    ({"status": 403, "error": "not for you"}, "auth_permanent"),
    ({"status": 404, "error": "no such thing"}, "model_not_found"),
    ({"status": 400, "error": "The model `x` does not exist"}, "model_not_found"),
    ({"status": 400, "error": "temperature must be a number"}, "format"),
    ({"status": 422, "error": "field required"}, "format"),
    ({"status": 400, "error": {"message": "maximum context length is 10", "code": "x"}}, "context_overflow"),
    ({"status": 400, "error": "blocked by our content policy"}, "content_blocked"),
    ({"finish_reason": "content_filter"}, "content_blocked"),
]
"""Failures that would only fail again."""


def test_what_may_pass_by_itself_is_tried_again(scripted: ScriptedFactory) -> None:
    for failure, error_class in PASSES:
        server = scripted(_fails_once(failure))
        called = Called(server.url, clock=HandClock())
        silent = not {"delay_s", "chunk_delay_s"}.isdisjoint(failure)
        silent_for_long(called, partial(_is_silent, server, silent))
        assert called.ask().message.content == "Here I am.", failure
        (retry,) = _retries(called)
        assert (retry.error_class, retry.attempt, retry.error != "") == (error_class, 1, True), failure


def _is_silent(server: ScriptedServer, silent: bool) -> bool:
    return silent and bool(server.requests)


def test_what_would_only_fail_again_is_not_tried_again(scripted: ScriptedFactory) -> None:
    for failure, error_class in LASTS:
        server = scripted(_fails_once(failure))
        with pytest.raises(ModelCallFailed) as caught:
            Called(server.url).ask()
        assert (caught.value.error_class, len(server.requests)) == (error_class, 1), failure


def test_retries_end_and_leave_one_sentence(scripted: ScriptedFactory) -> None:
    server = scripted([{"status": 500, "error": "boom"}])
    called = Called(server.url)
    with pytest.raises(ModelCallFailed, match=r"^The model endpoint 127.0.0.1:\d+ failed or sent an invalid answer\.$"):
        called.ask()
    assert (len(server.requests), [retry.attempt for retry in _retries(called)]) == (4, [1, 2, 3])
    with pytest.raises(ModelCallFailed):
        Called(server.url, limits=Limits(retry_enabled=False)).ask()
    assert len(server.requests) == 5


def test_the_wait_between_tries_grows_and_honours_what_the_server_asked_for(scripted: ScriptedFactory) -> None:
    failures = [{"status": 500}, {"status": 429, "retry_after": 30}, {"status": 500}]
    called = Called(scripted([says("Yes.", fail=failures)]).url, limits=Limits(), clock=HandClock())
    called.ask()
    waits = [retry.delay_s for retry in _retries(called)]
    assert 1.5 <= waits[0] <= 2.5
    assert waits[1] == 30
    assert 6 <= waits[2] <= 10
    assert called.clock.monotonic() == pytest.approx(sum(waits), abs=0.01)
    assert called.recorder.waited_for == ["provider", ""] * 3


def test_an_address_with_a_password_is_never_repeated() -> None:
    with pytest.raises(ModelCallFailed) as caught:
        Called("http://ada:secret@127.0.0.1:9/v1", limits=ONCE).ask()
    assert "secret" not in caught.value.what


def test_a_fallback_steps_in_and_stays(scripted: ScriptedFactory) -> None:
    broken, sound = scripted([{"status": 401, "error": "no"}]), scripted([says("Yes.")])
    fallback = OrderProvider(name="b", model="openai/sound", api_base=sound.url, api_key="k-2")
    called = Called(
        "", OrderProvider(name="a", model="openai/broken", api_base=broken.url, fallbacks=(fallback,)), limits=ONCE
    )
    answers = [called.ask(), called.ask()]
    assert [answer.model for answer in answers] == ["openai/sound"] * 2
    assert (len(broken.requests), sound.received[0].headers["Authorization"]) == (1, "Bearer k-2")
    assert _retries(called)[0].error.endswith("Continuing with openai/sound.")


def test_a_wait_between_two_tries_is_broken_off(scripted: ScriptedFactory) -> None:
    server = scripted([{"status": 429, "retry_after": 600}])
    called = Called(server.url)
    threading.Thread(target=_preempt_when_asked, args=(server, called)).start()
    with pytest.raises(Preempted):
        called.ask()
    assert len(server.requests) == 1


def _preempt_when_asked(server: ScriptedServer, called: Called) -> None:
    wait_until(lambda: server.requests)
    called.controls.signal = Preempted()


def test_what_is_left_of_an_answer_is_closed_by_the_thread_that_read_it_and_by_no_other(
    scripted: ScriptedFactory,
) -> None:
    server, client = scripted([says("word " * 50)]), Client()
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}

    def begun() -> Any:
        http = client.get().client
        answer = http.send(http.build_request("POST", f"{server.url}/chat/completions", json=body), stream=True)
        next(answer.iter_lines())
        return answer

    with ThreadPoolExecutor(1) as pool:
        elsewhere, here = pool.submit(begun).result(), begun()
        client.settle()
        assert (here.is_closed, elsewhere.is_closed) == (True, False)
        pool.submit(client.settle).result()
    assert elsewhere.is_closed
    client.drop()
