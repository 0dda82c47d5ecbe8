"""The error table, row by row: what providers really send, what it is taken for, how often it is tried, and the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from drone.agent.agent import Agent
from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.in_memory import EchoToolbox, KeptEvents, QuietControls
from drone.model.errors import RETRIED, ErrorClass, Failure, remedy, sentence, set_key
from drone.model.litellm_model import LiteLLMModel
from shared.events import RetryStep
from shared.outcome import ExitStatus, Outcome
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
from tests.support.transcripts import assert_valid

pytestmark = pytest.mark.usefixtures("warm_model")
JITTER = 0.25
HTML = b"<html><body><h1>502 Bad Gateway</h1><hr>nginx</body></html>"


def openai(status: int, message: str, code: str | None = None, **headers: str) -> Said:
    return refused(status, {"error": {"message": message, "type": "x", "param": None, "code": code}}, **headers)


def anthropic(status: int, kind: str, message: str, **headers: str) -> Said:
    return refused(status, {"type": "error", "error": {"type": kind, "message": message}}, **headers)


OPENAI_FORM: list[tuple[str, Said]] = [
    ("rate_limit", openai(429, "Rate limit reached for gpt-x on tokens per min. Limit 30000.", "rate_limit_exceeded")),
    ("rate_limit", openai(429, "You exceeded your current quota, check your plan. Please retry in 32.5s.")),
    ("overloaded", openai(503, "That model is currently overloaded with other requests.")),
    ("overloaded", openai(500, "The engine is currently overloaded, please try again later")),
    ("server", openai(500, "The server had an error while processing your request. Sorry about that!")),
    ("server", refused(502, HTML, Content_Type="text/html")),
    ("server", streamed({"error": {"message": "Internal error", "type": "server_error", "code": 500}}, done=False)),
    ("server", streamed(chunk(role="assistant", content="Half of an ans"), done=False)),
    ("server", refused(200, b"\x00\xff\xfe not a stream")),
    ("timeout", openai(408, "Request timed out.")),
    ("timeout", refused(524, b"<html>error code: 524, a timeout occurred</html>")),
    ("unknown", openai(418, "I am a teapot")),
    (
        "context_overflow",
        openai(400, "The maximum context length is 128000 tokens.", "context_length_exceeded"),
    ),
    ("context_overflow", openai(400, "the request exceeds the available context size (4096 tokens)")),
    ("context_overflow", openai(400, "Please reduce the length of the messages or completion.")),
    ("context_overflow", openai(429, "Request too large for gpt-x on tokens per min: Limit 30000, Requested 41000.")),
    ("context_overflow", refused(413, {"error": {"message": "Request too large"}})),
    ("auth", openai(401, "Incorrect API key provided: sk-...abcd.", "invalid_api_key")),
    ("auth_permanent", openai(403, "Project does not have access to model `gpt-x`", "model_access_denied")),
    ("billing", openai(429, "You exceeded your current quota, please check your plan.", "insufficient_quota")),
    ("billing", openai(402, "Insufficient Balance")),
    ("model_not_found", openai(404, "The model `gpt-x` does not exist", "model_not_found")),
    ("model_not_found", openai(400, "gpt-x is not a model: no such model")),
    ("content_blocked", openai(400, "Your prompt was flagged by our content policy", "content_policy_violation")),
    ("content_blocked", streamed(chunk(role="assistant", content=""), chunk("content_filter"))),
    ("format", openai(400, "temperature: must be a number")),
    ("format", openai(400, "`max_tokens` must be at most 8192, the maximum value for `max_tokens`")),
]
ANTHROPIC_FORM: list[tuple[str, Said]] = [
    ("rate_limit", anthropic(429, "rate_limit_error", "This would exceed your rate limit of 40,000 tokens per minute")),
    ("overloaded", anthropic(529, "overloaded_error", "Overloaded")),
    (
        "overloaded",
        anthropic_events({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ),
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


def reason(error_class: str, model: str, tried: Tried) -> str:
    """The sentence of a run that this failure ended."""
    step = next(body for body in tried.recorder.bodies if body.kind == "error")
    port = tried.outcome.reason.partition("127.0.0.1:")[2].partition(" ")[0]
    provider = OrderProvider(name="p", model=model, api_base=f"http://127.0.0.1:{port}")
    failure = Failure(ErrorClass(error_class), step.detail)
    said, advice = sentence(failure, provider), remedy(failure, provider, set_key(provider))
    return f"{said.removesuffix('.')} (next: {advice})." if advice else said


def test_what_may_pass_is_tried_again_after_a_growing_wait() -> None:
    assert {row[1] for row in ROWS} == {*ErrorClass}
    wrong = []
    for number, row in enumerate(PASSING):
        model, error_class, failure = row
        failures = 3 if number % 9 == 0 else 1
        tried = Tried(model, [failure] * failures)
        told = [(retry.error_class, retry.delay_s) for retry in tried.retries]
        as_expected = [
            (tried.outcome.exit_status, tried.outcome.response) == (ExitStatus.STOPPED, "Done."),
            told == [(error_class, pytest.approx(2 * 2**n, rel=JITTER)) for n in range(failures)],
            tried.clock.passed == pytest.approx(sum(delay for _, delay in told), abs=0.01),
            (tried.requests, tried.ran) == (failures + 1, 1),
        ]
        wrong += [] if all(as_expected) else [(row, as_expected)]
    assert wrong == []


def test_what_would_only_fail_again_ends_the_run_at_once_and_the_rest_after_three_retries() -> None:
    wrong = []
    for row in LASTING:
        model, error_class, failure = row
        tried = Tried(model, [failure])
        as_expected = [
            tried.outcome.exit_status is ExitStatus.MODEL_ERROR,
            tried.outcome.reason == reason(error_class, model, tried),
            (tried.retries, tried.requests, tried.ran, tried.clock.passed) == ([], 1, 1, 0),
        ]
        wrong += [] if all(as_expected) else [(row, as_expected)]
    assert wrong == []
    for model, _, failure in PASSING[::9]:
        tried = Tried(model, [failure] * 4)
        assert tried.outcome.exit_status is ExitStatus.MODEL_ERROR
        assert [retry.attempt for retry in tried.retries] == [1, 2, 3]
        assert (tried.requests, tried.ran) == (4, 1)


def test_waiting_ends_with_the_runs_time_and_is_switched_off_with_the_retries() -> None:
    ended = Tried("openai/x", [openai(429, "slow down", Retry_After="100")], Limits(max_run_seconds=30))
    assert (ended.outcome.exit_status, ended.requests, ended.ran) == (ExitStatus.TIME_LIMIT, 1, 1)
    assert ended.clock.passed == pytest.approx(30, abs=0.2)
    slow = Tried("openai/x", [openai(500, "boom")], Limits(base_delay=10))
    assert slow.retries[0].delay_s == pytest.approx(10, rel=JITTER)
    off = Tried("openai/x", [openai(500, "boom")], Limits(retry_enabled=False))
    assert (off.outcome.exit_status, off.requests) == (ExitStatus.MODEL_ERROR, 1)
