"""LiteLLM behind the loop's protocol, against a scripted endpoint that answers and fails over real HTTP."""

from __future__ import annotations

import inspect
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from control_plane.cli.checks import ADD_SECONDS
from drone.agent.values import ModelCallFailed
from drone.model.call import PLACEHOLDER_KEY
from drone.model.errors import BY_EXCEPTION, RETRIED, ErrorClass, Failure, classify, sentence
from drone.model.litellm_import import Client, litellm
from drone.model.prices import pricing_of
from drone.model.scripted.server import ScriptedServer
from drone.model.stream_reader import Waits
from shared.errors import Preempted
from shared.events import RetryStep
from shared.work_order import Limits, OrderProvider
from tests.support import HeldPort, wait_until
from tests.support.clocks import HandClock
from tests.support.endpoints import Endpoint, refused
from tests.support.scripted import HELLO, Called, ScriptedFactory, says, silent_for_long

pytestmark = pytest.mark.usefixtures("warm_model")
NOW = datetime(2026, 11, 21, tzinfo=UTC)
SECRETIVE = OrderProvider(name="p", model="openai/x", api_base="http://ada:secret@models.example:8000/v1")
PASSES: list[tuple[dict[str, Any], str]] = [
    ({"garbage": "body"}, "server"),
    ({"garbage": "event"}, "server"),
    ({"garbage": "wire"}, "server"),
    ({"delay_s": 600}, "timeout"),
]
"""Broken answers that may pass by themselves, and their classes; tests/integration/protocols has those of providers."""


def _retries(called: Called) -> list[RetryStep]:
    return [body for body in called.recorder.bodies if isinstance(body, RetryStep)]


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


def test_litellm_does_not_work_out_a_price_beside_ours(
    scripted: ScriptedFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litellm import cost_calculator

    priced: list[Any] = []
    monkeypatch.setattr(cost_calculator, "completion_cost", lambda *_, **used: priced.append(used))
    provider = OrderProvider(name="p", model="openai/gpt-4o", api_base=scripted([says("Yes.")]).url)
    answer = Called("", provider).ask()
    assert (answer.usage.cost_usd or 0) > 0
    assert priced == []


def test_an_endpoint_without_a_key_gets_a_placeholder_and_never_the_environments(
    scripted: ScriptedFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = scripted([says("Yes.", repeat=True)])
    for name in ("OPENAI", "HOSTED_VLLM", "DEEPSEEK"):
        monkeypatch.setenv(f"{name}_API_KEY", "a-real-secret")
        monkeypatch.setenv(f"{name}_API_BASE", server.url)
    for model, base in (
        ("openai/x", server.url),
        ("hosted_vllm/x", server.url),
        ("openai/x", None),
        ("deepseek/x", None),
    ):
        Called("", OrderProvider(name="p", model=model, api_base=base)).ask()
    assert [each.headers["Authorization"] for each in server.received] == [f"Bearer {PLACEHOLDER_KEY}"] * 4


def test_an_endpoint_on_this_machine_is_asked_without_the_proxy(
    scripted: ScriptedFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "")
    server = scripted([says("Yes.", repeat=True)])
    name = server.url.replace("127.0.0.1", "localhost")
    # Those that LiteLLM calls with our client, with one of its own, and with that of the openai package.
    asked = [("openai/x", name), ("openai/x", server.url), ("hosted_vllm/x", name), ("lm_studio/x", name)]
    for model, base in asked:
        provider = OrderProvider(name="p", model=model, api_base=f"{base}/v1")
        assert Called("", provider, Limits(max_retries=0)).ask().message.content == "Yes.", (model, base)
    assert len(server.received) == len(asked)


def test_a_proxy_that_does_not_lead_to_the_endpoint_is_named_without_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "")
    answers = [refused(status, {"error": {"message": "by policy"}}) for status in (403, 407, 502)]
    with HeldPort() as closed, Endpoint(answers[0]) as a, Endpoint(answers[1]) as b, Endpoint(answers[2]) as c:
        ports = [closed, *(urlsplit(each.url).port for each in (a, b, c))]
        bases = ("http://models.example/v1", "https://models.example/v1")
        cases = [("openai/x", base, f"127.0.0.1:{port}") for port in ports for base in bases]
        cases += [("anthropic/claude-x", None, f"127.0.0.1:{closed}"), ("gemini/x", None, f"127.0.0.1:{ports[1]}")]
        cases += [("openai/x", "https://models.example/v1", "nohost.invalid:3128")]
        for model, base, proxy in cases:
            for name in ("http_proxy", "https_proxy"):
                monkeypatch.setenv(name, f"http://ada:secret@{proxy}")
            provider = OrderProvider(name="p", model=model, api_base=base, api_key="k")
            with pytest.raises(ModelCallFailed) as failed:
                Called("", provider, Limits(max_retries=0)).ask()
            variable = "http_proxy" if base and base.startswith("http:") else "https_proxy"
            said = f"{failed.value.what} {failed.value.next}"
            answered = variable == "http_proxy" and proxy in {f"127.0.0.1:{ports[1]}", f"127.0.0.1:{ports[3]}"}
            assert f"the proxy {proxy} of {variable}" in said, (model, base)
            assert (failed.value.unconnected, "NO_PROXY" in said) == (not answered, not answered), said
            assert "secret" not in f"{said} {failed.value.detail}"


def test_an_endpoint_that_accepts_no_connection_is_given_up_at_the_limit_for_connections() -> None:
    with full_backlog() as port:
        called = Called(f"http://127.0.0.1:{port}/v1", limits=Limits(max_retries=0), waits=Waits(connect=0.2))
        with pytest.raises(ModelCallFailed) as failed:
            called.ask()
    assert (failed.value.error_class, failed.value.unconnected) == ("timeout", True)
    assert failed.value.what == f"The model endpoint 127.0.0.1:{port} cannot be reached."
    assert Waits().connect < ADD_SECONDS, "so that adding a provider says it"


@contextmanager
def full_backlog() -> Iterator[int]:
    """A port that drops further requests for a connection, as a firewall does."""
    with ExitStack() as stack, socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]


def test_the_price_is_the_lists_or_unknown_and_never_nought(scripted: ScriptedFactory) -> None:
    """A model is not in the list if LiteLLM knows only the pattern of its name."""
    unknown = ("openai/scripted", "hosted_vllm/gpt-4o", "openai/gpt-5-team-a")
    for model, known in (("openai/gpt-4o", True), *((each, False) for each in unknown)):
        server = scripted([says("Yes.")])
        usage = Called(server.url, OrderProvider(name="p", model=model, api_base=server.url)).ask().usage
        assert (usage.cost_usd is not None, usage.cost_usd == 0) == (known, False), model
    for model in ("azure/gpt-5-prod", "anthropic/claude-newfamily-9"):
        pricing = pricing_of(model)
        assert (pricing.known != {}, pricing.is_known, pricing.price.input) == (True, False, None), model


def test_what_may_pass_by_itself_is_tried_again(scripted: ScriptedFactory) -> None:
    for failure, error_class in PASSES:
        server = scripted([says("Here I am.", fail=[failure])])
        called = Called(server.url, clock=HandClock())
        silent_for_long(called, partial(_is_silent, server, "delay_s" in failure))
        assert called.ask().message.content == "Here I am.", failure
        (retry,) = _retries(called)
        assert (retry.error_class, retry.attempt, retry.error != "") == (error_class, 1, True), failure
        assert called.recorder.waited_for == ["provider", ""], failure


def _is_silent(server: ScriptedServer, silent: bool) -> bool:
    return silent and bool(server.requests)


def test_a_wait_between_two_tries_is_broken_off(scripted: ScriptedFactory) -> None:
    server = scripted([{"status": 429, "retry_after": 600}])
    called = Called(server.url)

    def preempt() -> None:
        wait_until(lambda: server.requests)
        called.controls.signal = Preempted()

    threading.Thread(target=preempt).start()
    with pytest.raises(Preempted):
        called.ask()
    assert len(server.requests) == 1


def test_a_fallback_steps_in_and_stays(scripted: ScriptedFactory) -> None:
    broken, sound = scripted([{"status": 401, "error": "no"}]), scripted([says("Yes.")])
    fallback = OrderProvider(name="b", model="openai/b", api_base=sound.url, api_key="k-2", context_window=9_000)
    given = {"api_base": broken.url, "context_window": 5_000, "fallbacks": (fallback,)}
    called = Called("", OrderProvider(name="a", model="openai/a", **given))
    windows = [called.model.window]
    assert [called.ask().model for _ in range(2)] == ["openai/b"] * 2
    assert (len(broken.requests), sound.received[0].headers["Authorization"]) == (1, "Bearer k-2")
    assert _retries(called)[0].error.endswith("Continuing with openai/b.")
    assert [*windows, called.model.window] == [5_000, 9_000]
    # A conversation that is too long is not put to the fallback.
    full = scripted([{"status": 400, "error": "maximum context length: 10"}])
    with pytest.raises(ModelCallFailed) as caught:
        Called("", OrderProvider(name="a", model="openai/a", **{**given, "api_base": full.url})).ask()
    assert (caught.value.error_class, len(full.requests), len(sound.requests)) == ("context_overflow", 1, 2)


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


def test_the_table_has_every_exception_that_litellm_has_and_no_other_and_says_what_is_repeated() -> None:
    module = litellm().exceptions
    classes = inspect.getmembers(module, lambda item: inspect.isclass(item) and issubclass(item, Exception))
    assert {*RETRIED} == {"rate_limit", "overloaded", "server", "timeout", "context_overflow", "unknown"}
    assert set(BY_EXCEPTION) == {name for name, cls in classes if cls.__module__ == module.__name__}


def test_every_class_of_failure_has_a_sentence_without_a_secret() -> None:
    said = [sentence(Failure(error_class, "no such thing"), SECRETIVE) for error_class in ErrorClass]
    assert len(set(said)) == len(ErrorClass)
    assert not any("secret" in text for text in said)
    with pytest.raises(ModelCallFailed) as caught:
        Called("http://ada:secret@127.0.0.1:9/v1", limits=Limits(max_retries=0)).ask()
    assert "secret" not in caught.value.what


REFUSALS: list[tuple[int, Any, dict[str, Any], str]] = [
    (401, "bad key", {}, "rejected the API key (next: fleet provider edit p --api-key-stdin)."),
    (401, "no", {"key_variable": "MY_KEY"}, "(next: on the drone: export MY_KEY=…, then drone start)."),
    (403, "not this model", {}, "use openai/x (next: fleet provider edit p --api-key-stdin)."),
    (400, "Incorrect API key provided: sk-1", {}, "(next: fleet provider edit p --api-key-stdin)."),
    (
        400,
        'tools.3.mcp__my_db__run-query: bad "$ref"',
        {},
        "leave out the tool run-query of the MCP server my_db",
    ),
    (422, "x" * 5000, {}, f"rejected the request: {'x' * 200}"),
    (404, "no such path", {}, "has no model openai/x."),
]


def test_a_refusal_is_told_in_the_endpoints_own_words_with_the_command_that_helps(scripted: ScriptedFactory) -> None:
    for status, text, fields, words in REFUSALS:
        server = scripted([{"status": status, "error": text, "repeat": True}])
        provider = OrderProvider(name="p", model="openai/x", api_base=server.url, **fields)
        with pytest.raises(ModelCallFailed) as failed:
            Called("", provider, Limits(max_retries=0)).ask()
        what, detail = failed.value.what, failed.value.detail
        assert words in what, (status, text[:80])
        assert ("litellm" in detail, "Exception" in detail, len(what) <= 400) == (False, False, True), (what, detail)
    called = Called(scripted([{"status": 401, "error": "no"}]).url, limits=Limits(max_retries=0))
    called.model.set_key = "drone run … --api-key-env VAR"
    with pytest.raises(ModelCallFailed) as failed:
        called.ask()
    assert failed.value.next == "drone run … --api-key-env VAR"


def test_a_bug_or_a_signal_is_no_failure_of_a_call_and_errors_of_the_http_client_are_known() -> None:
    wrapped = litellm().APIConnectionError(message="no module", llm_provider="openai", model="x")
    wrapped.__context__ = ImportError("no module named mcp")
    cases: list[tuple[BaseException, ErrorClass | None]] = [
        (ImportError("no module named mcp"), None),
        (TypeError("a bug"), None),
        (KeyError("x"), None),
        (Preempted(), None),
        (wrapped, None),  # however deep litellm wrapped it
        (httpx.ReadTimeout("slow"), ErrorClass.TIMEOUT),
        (httpx.RemoteProtocolError("peer closed"), ErrorClass.SERVER),
        (httpx.InvalidURL("no such scheme"), ErrorClass.FORMAT),
    ]
    found = [(error, (failure := classify(error, NOW)) and failure.error_class) for error, _ in cases]
    assert found == cases
