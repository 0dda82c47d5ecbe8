"""A provider is tried with one token and one tool call; what does not work is named, with the command that fixes it."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from shared.budgets import ModelPrice, Money
from shared.events import ChargeStep, Delivered, Prepared
from tests.support import HeldPort
from tests.support.certificates import Authority, Pair
from tests.support.checks import CALLS_PING, hello, reported, tried, trying_provider, works
from tests.support.endpoints import Endpoint, Said, refused, text_answer
from tests.support.runs import Bench, small_repository
from tests.support.scripted import ScriptedFactory

pytestmark = pytest.mark.usefixtures("warm_model")
UNKNOWN_MODEL = {"error": {"message": "The model `small` does not exist", "type": "invalid_request_error"}}
NO_TOOLS = {"error": {"message": "small does not support tools", "type": "api_error"}}


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _ModelsAtV1(_Quiet):
    """An endpoint that has one model at /v1, and nothing else."""

    def do_GET(self) -> None:
        found = self.path == "/v1/models"
        self._send(200 if found else 404, {"data": [{"id": "large"}]} if found else {"detail": "Not Found"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._send(404, {"detail": "Not Found"})

    def _send(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def served(kind: type[BaseHTTPRequestHandler], certificate: Pair | None = None) -> Iterator[int]:
    """A server of this kind, over TLS with a certificate; yields its port."""
    server = HTTPServer(("127.0.0.1", 0), kind)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, small_repository(tmp_path / "remote.git"))


def test_a_provider_that_works_is_reported_with_all_that_a_person_asks(bench: Bench) -> None:
    with Endpoint(*works()) as endpoint:
        report = tried(bench, endpoint.url, params={"temperature": 0.5, "max_tokens": 4096})

    assert (report.ok, report.tool_calls, report.streams, report.reports_usage) == (True, "native", True, True)
    assert 0 <= (report.first_token_ms or 0) <= (report.total_ms or 0)
    assert (report.price, report.input_usd) == ("unknown", None)
    assert (report.context_window, report.window_from) == (131_072, "assumed")
    # The first call asks for one token, and only the second offers a tool.
    assert [body["max_tokens"] for body in endpoint.bodies] == [1, 256]
    assert [len(body.get("tools") or ()) for body in endpoint.bodies] == [0, 1]
    assert {body["temperature"] for body in endpoint.bodies} == {0.5}


def test_a_provider_may_lack_usage_and_tools_unless_they_must_be_native(bench: Bench) -> None:
    ways = [
        ([hello(usage=False), works()[1]], {}, (True, "native", False)),
        ([hello(), refused(400, NO_TOOLS)], {}, (True, "text", True)),
        ([hello(), text_answer("I would call ping.")], {}, (True, "ignored", True)),
        ([hello(), text_answer("I think", finish="length")], {}, (True, None, True)),
        ([hello(), refused(400, NO_TOOLS)], {"protocol": "tools"}, (False, "E-CHECK-TOOLS", True)),
    ]
    found = []
    for answers, fields, _ in ways:
        with Endpoint(*answers) as endpoint:
            report = tried(bench, endpoint.url, **fields)
        found.append((report.ok, report.tool_calls if report.ok else report.code, report.reports_usage))
    assert found == [expected for *_, expected in ways]
    assert report.next == "fleet provider edit main --protocol text"


REFUSALS = [
    (refused(401, {"error": {"message": "Incorrect API key"}}), "E-CHECK-KEY", "main --api-key-stdin"),
    (refused(403, {"error": {"message": "no access"}}), "E-CHECK-KEY", "main --api-key-stdin"),
    (refused(404, UNKNOWN_MODEL), "E-CHECK-MODEL", "main --model MODEL"),
    (refused(402, {"error": {"message": "payment required"}}), "E-CHECK-BILLING", "provider test main"),
    (refused(429, {"error": {"message": "slow down"}}), "E-CHECK-BUSY", "provider test main"),
    (refused(503, {"error": {"message": "overloaded"}}), "E-CHECK-BUSY", "provider test main"),
    (refused(422, {"error": {"message": "bad top_k"}}), "E-CHECK-REQUEST", "provider show main"),
    (refused(500, {"error": {"message": "oops"}}), "E-CHECK-ANSWER", "--api-base URL"),
    (Said({"choices": [{"message": {"content": "ok"}}]}), "E-CHECK-STREAM", "--api-base URL"),
    (Said(b"<html>hello</html>"), "E-CHECK-STREAM", "--api-base URL"),
]


def test_what_cannot_be_reached_is_named_and_fallbacks_are_not_tried_in_its_place(
    bench: Bench, scripted: ScriptedFactory, tmp_path: Path
) -> None:
    with Endpoint(*works()) as other, HeldPort() as port:
        backup = trying_provider(bench, other.url)
        report = tried(bench, f"http://127.0.0.1:{port}/v1", fallbacks=(backup,))
        assert (report.ok, report.code, other.asked) == (False, "E-CHECK-PORT", [])
        assert f"127.0.0.1:{port}" in report.summary
        assert (report.first_token_ms, report.streams, report.tool_calls) == (None, None, None)
    report = tried(bench, "http://nohost.invalid/v1")
    assert (report.code, "nohost.invalid" in report.summary) == ("E-CHECK-HOST", True)
    with served(_Quiet, Authority.self_signed(tmp_path, "127.0.0.1")) as port:
        report = tried(bench, f"https://127.0.0.1:{port}/v1")
        assert (report.code, "SSL_CERT_FILE" in report.next) == ("E-CHECK-TLS", True)
    url = scripted([CALLS_PING]).url
    report = tried(bench, url.replace("http://", "https://"))
    assert (report.code, report.next) == ("E-CHECK-TLS", f"fleet provider edit main --api-base {url}")


def test_both_calls_are_charged_like_those_of_other_services(bench: Bench, scripted: ScriptedFactory) -> None:
    server = scripted([{**CALLS_PING, "usage": {"input_tokens": 20, "output_tokens": 5}}])
    trying_provider(bench, server.url)
    end = bench.run(server.url)

    assert (end.stats.input_tokens, end.stats.output_tokens) == (40, 10)
    assert [event.body.about for event in bench.events if isinstance(event.body, ChargeStep)] == ["service", "service"]
    assert [event.body for event in bench.events if isinstance(event.body, Prepared | Delivered)] == []


def test_price_and_window_are_named_with_their_origin(bench: Bench) -> None:
    own = ModelPrice(model="openai/gpt-4o-mini", input=2e-6, output=8e-6, discount=50)
    with Endpoint(*works()) as endpoint:
        listed = tried(bench, endpoint.url, model="openai/gpt-4o-mini")
        bench.order = bench.order.model_copy(update={"money": Money(prices=(own,))})
        endpoint.said = works()
        chosen = tried(bench, endpoint.url, model="openai/gpt-4o-mini", context_window=16_000)

    assert (listed.price, listed.input_usd, listed.output_usd) == ("listed", 0.15, 0.6)
    assert (listed.context_window, listed.window_from) == (128_000, "listed")
    assert (chosen.price, chosen.input_usd, chosen.output_usd) == ("set", 1.0, 4.0)
    assert (chosen.context_window, chosen.window_from) == (16_000, "set")


def test_a_model_that_cannot_think_within_one_token_gets_more(bench: Bench) -> None:
    limit = {"error": {"message": "Could not finish the message because max_tokens was reached.", "type": "x"}}
    with Endpoint(refused(400, limit), *works()) as endpoint:
        report = tried(bench, endpoint.url)

    assert report.ok
    assert [body["max_tokens"] for body in endpoint.bodies][:2] == [1, 1024]


def test_each_refusal_is_named_with_the_command_that_fixes_it(bench: Bench) -> None:
    wrong = []
    for said, code, advice in REFUSALS:
        with Endpoint(said) as endpoint:
            report = tried(bench, endpoint.url)
        as_expected = (report.ok, report.code) == (False, code) and report.next.endswith(advice)
        wrong += [] if as_expected and report.next.startswith("fleet provider ") else [(code, report)]
    assert wrong == []


def test_a_key_that_stays_on_the_drone_is_corrected_there(
    bench: Bench, scripted: ScriptedFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-wrong")
    server = scripted([CALLS_PING], api_key="sk-right")
    trying_provider(bench, server.url, api_key="sk-wrong", key_variable="MODEL_KEY")
    bench.run_trusting(server.url, "MODEL_KEY")

    assert (reported(bench).code, reported(bench).next) == (
        "E-CHECK-KEY",
        "on the drone: export MODEL_KEY=…, then drone start",
    )


def test_a_drone_without_the_key_leaves_the_check_to_another(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODEL_KEY", raising=False)
    trying_provider(bench, "http://127.0.0.1:9/v1", api_key=None, key_variable="MODEL_KEY")
    end = bench.run_trusting("http://127.0.0.1:9/v1", "MODEL_KEY")

    assert (end.status, end.unsuitable) == ("failed", True)
    assert "MODEL_KEY is not set on this drone" in end.reason


def test_a_path_without_models_is_told_apart_from_an_unknown_model_and_corrected(bench: Bench) -> None:
    with served(_ModelsAtV1) as port:
        report = tried(bench, f"http://127.0.0.1:{port}")
        elsewhere = tried(bench, f"http://127.0.0.1:{port}/nothing/v1")
        unknown = tried(bench, f"http://127.0.0.1:{port}/v1")

    assert report.code == "E-CHECK-PATH"
    assert report.summary.endswith("has no models at the path /; they are at /v1.")
    assert report.next == f"fleet provider edit main --api-base http://127.0.0.1:{port}/v1"
    assert (elsewhere.code, elsewhere.next) == ("E-CHECK-PATH", "fleet provider edit main --api-base URL")
    assert unknown.code == "E-CHECK-MODEL"
    assert unknown.summary.endswith("has no model small; it has large.")


def test_a_silent_endpoint_ends_the_check_at_its_time_limit(bench: Bench, scripted: ScriptedFactory) -> None:
    server = scripted([{**CALLS_PING, "delay_s": 30.0}])
    trying_provider(bench, server.url)
    limits = bench.order.limits.model_copy(update={"max_run_seconds": 1.0})
    bench.order = bench.order.model_copy(update={"limits": limits})
    end = bench.run(server.url)

    assert (end.status, reported(bench).code) == ("success", "E-CHECK-TIMEOUT")
    assert "did not answer within 1 s" in reported(bench).summary
