"""A provider or a project is tried; what does not work is named, with the command that fixes it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from drone.installation.owner_rules.rules import OrderRules
from drone.installation.policy import Policy
from shared.budgets import ModelPrice, Money
from shared.events import ChargeStep, Delivered, Prepared, RunEnded
from tests.support import HeldPort
from tests.support.certificates import Authority
from tests.support.checks import (
    CALLS_PING,
    hello,
    project_report,
    reported,
    tried,
    try_project,
    trying_provider,
    works,
)
from tests.support.endpoints import Endpoint, Said, refused, text_answer
from tests.support.git_servers import GitHttpServer, _GitHandler, serving
from tests.support.runs import Bench
from tests.support.sandboxes import ending_from_outside
from tests.support.scripted import ScriptedFactory

pytestmark = pytest.mark.usefixtures("warm_model")
UNKNOWN_MODEL = {"error": {"message": "The model `small` does not exist", "type": "invalid_request_error"}}
NO_TOOLS = {"error": {"message": "small does not support tools", "type": "api_error"}}
REFUSALS = [
    (refused(401, {"error": {"message": "Incorrect API key"}}), "E-CHECK-KEY", "main --api-key-stdin"),
    (refused(403, {"error": {"message": "no access"}}), "E-CHECK-KEY", "main --api-key-stdin"),
    (refused(404, UNKNOWN_MODEL), "E-CHECK-MODEL", "main --model MODEL"),
    (refused(402, {"error": {"message": "payment required"}}), "E-CHECK-BILLING", "provider test main"),
    (refused(429, {"error": {"message": "slow down"}}), "E-CHECK-BUSY", "provider test main"),
    (refused(422, {"error": {"message": "bad top_k"}}), "E-CHECK-REQUEST", "provider show main"),
    (refused(500, {"error": {"message": "oops"}}), "E-CHECK-ANSWER", "--api-base URL"),
    (Said({"choices": [{"message": {"content": "ok"}}]}), "E-CHECK-STREAM", "--api-base URL"),
    (Said(b"<html>hello</html>"), "E-CHECK-STREAM", "--api-base URL"),
]


# --- providers -----------------------------------------------------------------------------------


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
    # Both calls are charged like those of other services.
    assert [(step.about, step.usage.input_tokens > 0) for step in bench.of(ChargeStep)] == [("service", True)] * 2
    assert bench.last(RunEnded).stats.input_tokens == sum(step.usage.input_tokens for step in bench.of(ChargeStep))
    assert bench.of(Prepared, Delivered) == []


def test_a_provider_may_lack_usage_and_tools_unless_they_must_be_native(bench: Bench) -> None:
    no_room = {"error": {"message": "Could not finish the message because max_tokens was reached.", "type": "x"}}
    ways: list[tuple[list[Said], dict[str, Any], tuple[Any, ...]]] = [
        ([hello(usage=False), works()[1]], {}, (True, "native", False)),
        ([hello(), refused(400, NO_TOOLS)], {}, (True, "text", True)),
        ([hello(), text_answer("I would call ping.")], {}, (True, "ignored", True)),
        ([hello(), text_answer("I think", finish="length")], {}, (True, None, True)),
        ([refused(400, no_room), *works()], {}, (True, "native", True)),  # it cannot think within one token
        ([hello(), refused(400, NO_TOOLS)], {"protocol": "tools"}, (False, "E-CHECK-TOOLS", True)),
    ]
    found = []
    for answers, fields, _ in ways:
        with Endpoint(*answers) as endpoint:
            report = tried(bench, endpoint.url, **fields)
        found.append((report.ok, report.tool_calls if report.ok else report.code, report.reports_usage))
    assert found == [expected for *_, expected in ways]
    assert report.next == "fleet provider edit main --protocol text"


def test_each_refusal_is_named_with_the_command_that_fixes_it(bench: Bench) -> None:
    wrong = []
    for said, code, advice in REFUSALS:
        with Endpoint(said) as endpoint:
            report = tried(bench, endpoint.url)
        as_expected = (report.ok, report.code) == (False, code) and report.next.endswith(advice)
        wrong += [] if as_expected and report.next.startswith("fleet provider ") else [(code, report)]
    assert wrong == []


def test_what_cannot_be_reached_is_named_and_no_fallback_tried_instead(
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
    pair, server = Authority.self_signed(tmp_path, "127.0.0.1"), GitHttpServer(tmp_path)
    server.encrypt(pair.certificate, pair.key)
    with serving(server):
        report = tried(bench, server.url("v1"))
        assert (report.code, "SSL_CERT_FILE" in report.next) == ("E-CHECK-TLS", True)
    url = scripted([CALLS_PING]).url
    report = tried(bench, url.replace("http://", "https://"))
    assert (report.code, report.next) == ("E-CHECK-TLS", f"fleet provider edit main --api-base {url}")


def test_a_proxy_that_does_not_lead_to_the_provider_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    with HeldPort() as port:
        monkeypatch.setenv("https_proxy", f"http://ada:secret@127.0.0.1:{port}")
        report = tried(bench, "https://models.example/v1")
    assert (report.ok, report.code, "secret" in report.model_dump_json()) == (False, "E-CHECK-PROXY", False)
    assert f"cannot be reached through the proxy 127.0.0.1:{port} of https_proxy" in report.summary
    assert "NO_PROXY=models.example" in report.next


class _ModelsAtV1(_GitHandler):
    """An endpoint that has one model at /v1, and nothing else."""

    def do_GET(self) -> None:
        found = self.path == "/v1/models"
        self._answer(200 if found else 404, {}, b'{"data": [{"id": "large"}]}' if found else b'{"detail": "Not Found"}')

    def do_POST(self) -> None:
        self._body()
        self._answer(404, {}, b'{"detail": "Not Found"}')


def test_a_path_without_models_is_told_apart_from_an_unknown_model_and_corrected(bench: Bench, tmp_path: Path) -> None:
    server = GitHttpServer(tmp_path)
    server.RequestHandlerClass = _ModelsAtV1
    with serving(server):
        report, elsewhere, unknown = (tried(bench, server.url(path)) for path in ("", "nothing/v1", "v1"))
    assert report.code == "E-CHECK-PATH"
    assert report.summary.endswith("has no models at the path /; they are at /v1.")
    assert report.next == f"fleet provider edit main --api-base {server.url('v1')}"
    assert (elsewhere.code, elsewhere.next) == ("E-CHECK-PATH", "fleet provider edit main --api-base URL")
    assert unknown.code == "E-CHECK-MODEL"
    assert unknown.summary.endswith("has no model small; it has large.")


def test_price_and_window_are_named_with_their_origin(bench: Bench) -> None:
    own = ModelPrice(model="openai/gpt-4o-mini", input=2e-6, output=8e-6, discount=50)
    with Endpoint(*works()) as endpoint:
        listed = tried(bench, endpoint.url, model="openai/gpt-4o-mini")
        bench.change(money=Money(prices=(own,)))
        endpoint.said = works()
        chosen = tried(bench, endpoint.url, model="openai/gpt-4o-mini", context_window=16_000)
    assert (listed.price, listed.input_usd, listed.output_usd) == ("listed", 0.15, 0.6)
    assert (listed.context_window, listed.window_from) == (128_000, "listed")
    assert (chosen.price, chosen.input_usd, chosen.output_usd) == ("set", 1.0, 4.0)
    assert (chosen.context_window, chosen.window_from) == (16_000, "set")


def test_a_key_that_stays_on_the_drone_is_corrected_there_and_a_drone_without_it_leaves_the_check_to_another(
    bench: Bench, scripted: ScriptedFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-wrong")
    server = scripted([CALLS_PING], api_key="sk-right")
    trying_provider(bench, server.url, api_key="sk-wrong", key_variable="MODEL_KEY")
    bench.run_trusting(server.url, "MODEL_KEY")
    advice = "on the drone: export MODEL_KEY=…, then drone start"
    assert (reported(bench).code, reported(bench).next) == ("E-CHECK-KEY", advice)

    monkeypatch.delenv("MODEL_KEY")
    trying_provider(bench, server.url, api_key=None, key_variable="MODEL_KEY")
    end = bench.run_trusting(server.url, "MODEL_KEY")
    assert (end.status, end.unsuitable) == ("failed", True)
    assert "MODEL_KEY is not set on this drone" in end.reason


def test_a_silent_endpoint_ends_the_check_at_its_time_limit(bench: Bench, scripted: ScriptedFactory) -> None:
    server = scripted([{**CALLS_PING, "delay_s": 30.0}])
    trying_provider(bench, server.url)
    bench.limit(max_run_seconds=1.0)
    end = bench.run(server.url)
    assert (end.status, reported(bench).code) == ("success", "E-CHECK-TIMEOUT")
    assert "did not answer within 1 s" in reported(bench).summary


# --- projects ------------------------------------------------------------------------------------


def test_a_project_that_works_is_reported_with_each_command_and_nothing_is_delivered(bench: Bench) -> None:
    refs = bench.directory / "remote.git" / "refs"
    before = sorted(refs.rglob("*"))
    setup, verify = ("echo changed > README; touch made",), ("test -f made", "grep -q ch README")
    end = try_project(bench, setup=setup, verify=verify)
    report = project_report(bench)
    assert (end.status, report.ok, report.code) == ("success", True, "")
    commands = [("setup", setup[0]), *(("verify", each) for each in verify)]
    assert [(each.phase, each.command) for each in report.commands if each.passed] == commands
    assert (report.branch, report.default_branch, report.may_push) == ("main", "main", True)
    assert (report.remote_ms or -1) >= 0
    assert bench.of(Delivered) == list((bench.workspaces / "sessions").iterdir()) == []
    assert sorted(refs.rglob("*")) == before


def test_a_failing_command_is_named_with_its_output_and_what_follows_it_is_not_run(bench: Bench) -> None:
    for phase in ("setup", "verify"):
        end = try_project(bench, **{"setup": (), "verify": ("true",), phase: ("echo no; exit 3", "true")})
        report = project_report(bench)
        assert (end.status, report.ok, report.code) == ("success", False, f"E-CHECK-{phase.upper()}")
        assert report.next == f"fleet project edit test --{phase} CMD"
        assert [(command.return_code, command.output) for command in report.commands] == [(3, "no\n")]
    bench.sandbox = ending_from_outside(over="too much memory")
    try_project(bench, setup=("false",))
    report = project_report(bench)
    assert (report.ok, report.code, report.commands[0].return_code) == (False, "E-CHECK-SETUP", None)
    assert "too much memory" in report.summary
    bench.limit(max_run_seconds=2.0)
    try_project(bench, setup=(), verify=("sleep 60",))
    report = project_report(bench)
    assert (report.ok, report.code, report.commands[0].return_code) == (False, "E-CHECK-VERIFY", None)
    assert "did not end within" in report.summary


def test_a_remote_without_the_right_to_push_or_the_branch_is_reported_and_a_missing_one_left_to_other_drones(
    bench: Bench,
) -> None:
    url, remote = bench.order.project.git_url, bench.directory / "remote.git"
    subprocess.run(["git", "-C", remote, "config", "http.receivepack", "false"], check=True)
    with serving(GitHttpServer(bench.directory)) as server:
        try_project(bench, git_url=server.url("remote.git"))
    assert (project_report(bench).ok, project_report(bench).may_push) == (True, False)
    try_project(bench, git_url=url, branch="man")
    report = project_report(bench)
    assert (report.ok, report.code) == (False, "E-GIT-BRANCH")
    assert report.next == "fleet project edit test --branch main"
    end = try_project(bench, git_url=f"file://{bench.directory}/gone.git")
    assert (end.status, end.unsuitable) == ("failed", True)
    assert "fleet project edit test --git-url URL" in end.reason


def test_the_owners_repositories_apply_to_a_check_of_a_project_and_not_of_a_provider(bench: Bench) -> None:
    policy = Policy(orders=OrderRules(repositories=("https://git.example/*",)))
    bench.change(purpose="check_project")
    with pytest.raises(Exception, match="does not allow this repository"):
        policy.check_order(bench.order)
    trying_provider(bench, "http://127.0.0.1:9/v1")
    policy.check_order(bench.order)
