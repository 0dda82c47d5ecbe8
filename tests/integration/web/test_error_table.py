"""The error table, row by row: what providers really send, what it is taken for, how often it is tried, and the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.in_memory import EchoToolbox, KeptEvents, QuietControls
from drone.model.errors import RETRIED, ErrorClass
from drone.model.litellm_model import LiteLLMModel
from shared.events import RetryStep, RunEnded
from shared.outcome import ExitStatus, Outcome
from shared.transcripts import assert_valid
from shared.work_order import Limits, OrderProvider
from tests.support.clocks import HandClock
from tests.support.endpoints import (
    Endpoint,
    Said,
    anthropic_answer,
    anthropic_events,
    call,
    call_answer,
    chunk,
    refused,
    streamed,
    text_answer,
)
from tests.support.runs import Bench, small_repository

pytestmark = pytest.mark.usefixtures("warm_model")

JITTER = 0.25
HTML = b"<html><body><h1>502 Bad Gateway</h1><hr>nginx</body></html>"


def openai(status: int, message: str, code: str | None = None, **headers: str) -> Said:
    return refused(status, {"error": {"message": message, "type": "x", "param": None, "code": code}}, **headers)


def anthropic(status: int, kind: str, message: str, **headers: str) -> Said:
    return refused(status, {"type": "error", "error": {"type": kind, "message": message}}, **headers)


OPENAI_FORM: list[tuple[str, Said]] = [
    ("rate_limit", openai(429, "Rate limit reached for gpt-x on tokens per min. Limit 30000.", "rate_limit_exceeded")),
    ("rate_limit", openai(429, "Rate limit reached. Add a payment method at https://x.example/account/billing.")),
    ("rate_limit", openai(429, "You exceeded your current quota, check your plan. Please retry in 32.5s.")),
    ("overloaded", openai(503, "That model is currently overloaded with other requests.")),
    ("overloaded", openai(503, "Service Unavailable")),
    ("overloaded", openai(500, "The engine is currently overloaded, please try again later")),
    ("server", openai(500, "The server had an error while processing your request. Sorry about that!")),
    ("server", refused(502, HTML, Content_Type="text/html")),
    ("server", streamed({"error": {"message": "Internal error", "type": "server_error", "code": 500}}, done=False)),
    ("server", streamed(chunk(role="assistant", content="Half of an ans"), done=False)),
    ("server", refused(200, b"\x00\xff\xfe not a stream")),
    ("timeout", openai(408, "Request timed out.")),
    ("timeout", openai(504, "upstream request timeout")),
    ("timeout", refused(524, b"<html>error code: 524, a timeout occurred</html>")),
    ("unknown", openai(418, "I am a teapot")),
    (
        "context_overflow",
        openai(400, "The maximum context length is 128000 tokens.", "context_length_exceeded"),
    ),
    ("context_overflow", openai(400, "the request exceeds the available context size (4096 tokens)")),
    ("context_overflow", openai(400, "The input token count exceeds the maximum number of tokens allowed (1048576).")),
    ("context_overflow", openai(400, "Please reduce the length of the messages or completion.")),
    ("context_overflow", openai(429, "Request too large for gpt-x on tokens per min: Limit 30000, Requested 41000.")),
    ("context_overflow", refused(413, {"error": {"message": "Request too large"}})),
    ("auth", openai(401, "Incorrect API key provided: sk-...abcd.", "invalid_api_key")),
    ("auth", openai(400, "API key not valid: invalid API key.")),
    ("auth_permanent", openai(403, "Project does not have access to model `gpt-x`", "model_access_denied")),
    ("billing", openai(429, "You exceeded your current quota, please check your plan.", "insufficient_quota")),
    ("billing", openai(402, "Insufficient Balance")),
    ("model_not_found", openai(404, "The model `gpt-x` does not exist", "model_not_found")),
    ("model_not_found", openai(400, "gpt-x is not a model: no such model")),
    ("content_blocked", openai(400, "Your prompt was flagged by our content policy", "content_policy_violation")),
    ("content_blocked", streamed(chunk(role="assistant", content=""), chunk("content_filter"))),
    ("format", openai(400, "temperature: must be a number")),
    ("format", openai(400, "`max_tokens` must be at most 8192, the maximum value for `max_tokens`")),
    ("format", openai(422, "field required")),
]
ANTHROPIC_FORM: list[tuple[str, Said]] = [
    ("rate_limit", anthropic(429, "rate_limit_error", "This would exceed your rate limit of 40,000 tokens per minute")),
    ("overloaded", anthropic(529, "overloaded_error", "Overloaded")),
    (
        "overloaded",
        anthropic_events({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ),
    ("server", anthropic(500, "api_error", "Internal server error")),
    ("timeout", anthropic(504, "timeout_error", "Request timed out")),
    ("context_overflow", anthropic(400, "invalid_request_error", "prompt is too long: 215000 tokens > 200000 maximum")),
    ("context_overflow", anthropic(413, "request_too_large", "Request exceeds the maximum size")),
    ("auth", anthropic(401, "authentication_error", "invalid x-api-key")),
    ("auth_permanent", anthropic(403, "permission_error", "Your API key does not have permission")),
    ("billing", anthropic(400, "invalid_request_error", "Your credit balance is too low to access the API.")),
    ("model_not_found", anthropic(404, "not_found_error", "model: claude-x")),
    ("format", anthropic(400, "invalid_request_error", "messages.0.content: Field required")),
]
ROWS = [("openai/x", *row) for row in OPENAI_FORM] + [("anthropic/claude-x", *row) for row in ANTHROPIC_FORM]
MAY_PASS = RETRIED - {ErrorClass.CONTEXT_OVERFLOW}
PASSING = [row for row in ROWS if row[1] in MAY_PASS]
LASTING = [row for row in ROWS if row[1] not in MAY_PASS]


@dataclass
class Tried:
    """A run whose first answer calls a tool, and whose endpoint then says what the test wants."""

    model: str
    said: Sequence[Said]
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        self.recorder, self.clock, self.toolbox = KeptEvents(), HandClock(), EchoToolbox()
        first, done = ANSWERS[self.model.partition("/")[0]]
        with Endpoint(first, *self.said, done) as endpoint:
            self.outcome = self._run(endpoint.url)
            self.requests = len(endpoint.asked) - 1

    def _run(self, url: str) -> Outcome:
        budget = RunBudget(self.limits, self.clock)
        controls = BudgetedControls(QuietControls(), budget)
        base = f"{url}/v1" if self.model.startswith("openai/") else url
        provider = OrderProvider(name="p", model=self.model, api_base=base, api_key="k")
        model = LiteLLMModel(provider, None, self.limits, self.recorder, self.clock, controls)
        agent = Agent(model, self.toolbox, self.recorder, controls, self.limits, self.clock, budget)
        try:
            return agent.run("You are tested.", (), "Do it.")
        finally:
            assert_valid(agent.transcript)
            model.close()

    @property
    def ran(self) -> int:
        return len(self.toolbox.ran)

    @property
    def retries(self) -> list[RetryStep]:
        return [body for body in self.recorder.bodies if isinstance(body, RetryStep)]


USE = {"type": "tool_use", "id": "toolu_1", "name": "echo", "input": {"text": "once"}}
ANSWERS = {
    "openai": (call_answer(call("echo", {"text": "once"})), text_answer("Done.")),
    "anthropic": (anthropic_answer(USE, stop="tool_use"), anthropic_answer({"type": "text", "text": "Done."})),
}


def test_the_table_has_a_row_for_every_class() -> None:
    assert {row[1] for row in ROWS} == {*ErrorClass}


def test_what_may_pass_is_tried_again_after_a_growing_wait() -> None:
    wrong = []
    for row in PASSING:
        model, error_class, failure = row
        tried = Tried(model, [failure] * 3)
        told = [(retry.error_class, retry.delay_s) for retry in tried.retries]
        as_expected = [
            (tried.outcome.exit_status, tried.outcome.response) == (ExitStatus.STOPPED, "Done."),
            told == [(error_class, pytest.approx(2 * 2**n, rel=JITTER)) for n in range(3)],
            tried.clock.passed == pytest.approx(sum(delay for _, delay in told), abs=0.01),
            (tried.requests, tried.ran) == (4, 1),
        ]
        wrong += [] if all(as_expected) else [(row, as_expected)]
    assert wrong == []


def test_what_does_not_pass_ends_the_run_after_three_retries() -> None:
    for model, _, failure in PASSING[::6]:
        tried = Tried(model, [failure] * 4)
        assert tried.outcome.exit_status is ExitStatus.MODEL_ERROR
        assert [retry.attempt for retry in tried.retries] == [1, 2, 3]
        assert (tried.requests, tried.ran) == (4, 1)


def test_what_would_only_fail_again_ends_the_run_at_once() -> None:
    wrong = []
    for row in LASTING:
        model, error_class, failure = row
        tried = Tried(model, [failure])
        as_expected = [
            tried.outcome.exit_status is ExitStatus.MODEL_ERROR,
            tried.outcome.reason == _reason(error_class, model, failure, tried),
            (tried.retries, tried.requests, tried.ran, tried.clock.passed) == ([], 1, 1, 0),
        ]
        wrong += [] if all(as_expected) else [(row, as_expected)]
    assert wrong == []


WAITS = [
    ({"Retry_After": "20"}, 20, 20),
    ({"retry_after_ms": "7500"}, 7.5, 7.5),
    ({"Retry_After": "Sat, 21 Nov 2026 12:00:45 GMT"}, 45, 45),
    ({"Retry_After": "Sat, 21 Nov 2026 11:00:00 GMT"}, 1.5, 2.5),
    ({"Retry_After": "3600"}, 120, 120),
    ({"Retry_After": "soon"}, 1.5, 2.5),
    ({"Retry_After": "nan"}, 1.5, 2.5),
]


def test_the_server_may_ask_for_a_longer_wait() -> None:
    for model, (headers, least, most) in product(("openai/x", "anthropic/claude-x"), WAITS):
        tried = Tried(model, [refused(429, {"error": {"message": "slow down"}}, **headers)])
        assert [least <= retry.delay_s <= most for retry in tried.retries] == [True], (model, headers)


def test_waiting_ends_with_the_runs_time() -> None:
    limit = Limits(max_run_seconds=30)
    tried = Tried("openai/x", [openai(429, "slow down", Retry_After="100")], limit)
    assert tried.outcome.exit_status is ExitStatus.TIME_LIMIT
    assert tried.clock.passed == pytest.approx(30, abs=0.2)
    assert (tried.requests, tried.ran) == (1, 1)


def test_retries_have_one_base_and_one_switch() -> None:
    slow = Tried("openai/x", [openai(500, "boom")], Limits(base_delay=10))
    assert slow.retries[0].delay_s == pytest.approx(10, rel=JITTER)
    off = Tried("openai/x", [openai(500, "boom")], Limits(retry_enabled=False))
    assert (off.outcome.exit_status, off.requests) == (ExitStatus.MODEL_ERROR, 1)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "drone", small_repository(tmp_path / "repository.git"))


COUNTED: dict[str, Any] = call("shell", {"command": "echo once >> counted; git add -N counted; cat counted"})


@pytest.mark.parametrize(
    ("failures", "status", "reason"),
    [
        (
            [openai(429, "slow down"), streamed(chunk(content="Half"), done=False)],
            ExitStatus.STOPPED,
            "finished its work.",
        ),
        ([openai(401, "Incorrect API key provided")], ExitStatus.MODEL_ERROR, "rejected the API key."),
    ],
    ids=["passes", "auth"],
)
def test_the_order_ends_by_what_failed_and_its_commands_ran_once(
    bench: Bench, failures: list[Said], status: ExitStatus, reason: str
) -> None:
    bench.order = bench.order.model_copy(update={"limits": Limits(base_delay=0.01)})
    with Endpoint(call_answer(COUNTED), *failures, text_answer("Done.")) as endpoint:
        ended: RunEnded = bench.run(f"{endpoint.url}/v1")
    assert (ended.exit_status, ended.reason.endswith(reason)) == (status, True)
    outputs = [event.body.output for event in bench.events if event.body.kind == "tool_result"]
    assert [output.count("once") for output in outputs] == [1]


def _reason(error_class: str, model: str, failure: Said, tried: Tried) -> str:
    from drone.model.errors import Failure, sentence

    step = next(body for body in tried.recorder.bodies if body.kind == "error")
    port = tried.outcome.reason.partition("127.0.0.1:")[2].partition(" ")[0]
    provider = OrderProvider(name="p", model=model, api_base=f"http://127.0.0.1:{port}")
    return sentence(Failure(ErrorClass(error_class), step.detail), provider)
