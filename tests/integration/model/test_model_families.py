"""What goes over the wire to families of models: thinking in their own form, cache markers, and tools as text."""

from __future__ import annotations

from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.in_memory import EchoToolbox
from drone.agent.values import ModelCallFailed
from shared.events import RetryStep
from shared.outcome import ExitStatus, Outcome
from shared.transcripts import assert_valid
from shared.work_order import OrderProvider, Protocol
from tests.support.endpoints import (
    Endpoint,
    Said,
    anthropic_answer,
    call,
    chunk,
    refused,
    streamed,
    text_answer,
)
from tests.support.scripted import Called

pytestmark = pytest.mark.usefixtures("warm_model")

MARKER = {"type": "ephemeral"}
SIGNED = {"type": "thinking", "thinking": "Where is it?", "signature": "c2lnbmVk"}
DONE = text_answer("Done.")


def use(number: int, text: str = "x") -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "echo", "input": {"text": text}}


class Ran:
    """The loop against an endpoint, run to its end."""

    def __init__(self, model: str, *said: Said, protocol: Protocol = "auto", **params: Any) -> None:
        with Endpoint(*said) as endpoint:
            path = "" if model.startswith("anthropic/") else "/v1"
            provider = OrderProvider(
                name="p", model=model, api_base=endpoint.url + path, api_key="k", protocol=protocol, params=params
            )
            self.called, self.toolbox = Called("", provider), EchoToolbox()
            self.agent = _agent(self.called, self.toolbox)
            self.outcome: Outcome = self.agent.run("Rules.", (), "Go.")
            self.called.model.close()
        assert_valid(self.agent.transcript)
        self.bodies = endpoint.bodies

    @property
    def retries(self) -> list[RetryStep]:
        return [body for body in self.called.recorder.bodies if isinstance(body, RetryStep)]


def _agent(called: Called, toolbox: EchoToolbox) -> Agent:
    return Agent(called.model, toolbox, called.recorder, called.controls, called.limits, called.clock)


def test_details_of_openrouter_go_back_as_they_came() -> None:
    detail = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    first = streamed(
        chunk(role="assistant", reasoning="Where ", reasoning_details=[{**detail, "text": "Where "}]),
        chunk(reasoning="is it?", reasoning_details=[{**detail, "text": "is it?"}]),
        chunk(reasoning_details=[{**detail, "signature": "c2ln"}]),
        chunk(tool_calls=[call("echo", {"text": "x"})]),
        chunk("tool_calls"),
    )
    ran = Ran("openrouter/anthropic/claude-sonnet-4.5", first, DONE)
    assistant, tool = ran.bodies[1]["messages"][2:]
    assert assistant["reasoning_details"] == [{**detail, "text": "Where is it?", "signature": "c2ln"}]
    assert tool["content"] == [{"type": "text", "text": "x", "cache_control": MARKER}]


def test_signatures_that_are_refused_are_left_out_and_so_is_the_wish_to_think() -> None:
    refusal = {"type": "error", "error": {"type": "invalid_request_error"}}
    refusal["error"]["message"] = "messages.1.content.0: Invalid `signature` in `thinking` block"  # type: ignore[index]
    thinking = {"type": "enabled", "budget_tokens": 1024}
    first = anthropic_answer(SIGNED, use(1), stop="tool_use")
    done = anthropic_answer({"type": "text", "text": "Done."})
    ran = Ran("anthropic/claude-sonnet-4-5", first, refused(400, refusal), done, thinking=thinking)
    assert (ran.bodies[1]["thinking"], "thinking" in ran.bodies[2]) == (thinking, False)
    assert ran.bodies[2]["messages"][1]["content"][0]["text"].startswith("<thinking>Where is it?</thinking>")
    assert len(ran.toolbox.ran) == 1


ACTION = 'I look.\n\n```action echo\n{"text": "one"}\n```\n'
SUBMIT = '```action submit\n{"text": "Done."}\n```'
NO_TOOLS = [
    (400, "registry.ollama.ai/library/llama2:13b does not support tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (404, "No endpoints found that support tool use. Try disabling tools."),
    (400, "`tool calling` is not supported with this model"),
    (400, "deepseek-r1 does not support Function Calling"),
    (500, "tools param requires --jinja flag"),
]


def test_tools_are_called_in_text_where_the_provider_is_set_so() -> None:
    ran = Ran("openai/x", text_answer(ACTION), text_answer(SUBMIT), protocol="text")
    assert (ran.outcome.exit_status, ran.outcome.response) == (ExitStatus.SUBMITTED, "Done.")
    assert [call.arguments for call in ran.toolbox.ran] == ['{"text": "one"}', '{"text": "Done."}']
    assert not any("tools" in body for body in ran.bodies)
    system, user, assistant, result = ran.bodies[1]["messages"]
    assert system["content"].startswith("Rules.\n\n# How you act")
    assert (user["content"], assistant["content"]) == ("Go.", ACTION)
    assert result == {"role": "user", "content": '<result tool="echo" call="action_1">\none\n</result>'}


def test_a_refusal_of_tools_leads_to_text_at_once_and_for_the_rest_of_the_run() -> None:
    for status, message in NO_TOOLS:
        refusal = refused(status, {"error": {"message": message}})
        ran = Ran("openai/x", refusal, text_answer(ACTION), text_answer(SUBMIT))
        assert ran.outcome.exit_status is ExitStatus.SUBMITTED, status
        assert ["tools" in body for body in ran.bodies] == [True, False, False], status
        assert [
            (retry.delay_s, retry.error.endswith("from now on they are called in text.")) for retry in ran.retries
        ] == [(0, True)], status


def test_a_refusal_of_tools_is_an_error_where_the_provider_is_set_to_tools() -> None:
    refusal = refused(400, {"error": {"message": "llama2 does not support tools"}})
    assert Ran("openai/x", refusal, DONE, protocol="tools").outcome.exit_status is ExitStatus.MODEL_ERROR


def test_a_fallback_with_a_window_of_its_own_changes_the_window() -> None:
    with Endpoint(refused(401, {"error": {"message": "no"}})) as broken, Endpoint(DONE) as sound:
        other = OrderProvider(name="b", model="openai/b", api_base=sound.url, context_window=9_000)
        provider = OrderProvider(
            name="a", model="openai/a", api_base=broken.url, context_window=5_000, fallbacks=(other,)
        )
        called = Called("", provider)
        windows = [called.model.window, called.ask() and called.model.window]
    assert windows == [5_000, 9_000]


def test_a_conversation_that_is_too_long_is_neither_repeated_nor_put_to_a_fallback() -> None:
    with (
        Endpoint(refused(400, {"error": {"message": "maximum context length: 10"}})) as full,
        Endpoint(DONE) as other,
    ):
        fallback = OrderProvider(name="b", model="openai/b", api_base=other.url)
        called = Called("", OrderProvider(name="a", model="openai/a", api_base=full.url, fallbacks=(fallback,)))
        with pytest.raises(ModelCallFailed) as caught:
            called.ask()
    assert (caught.value.error_class, len(full.asked), len(other.asked)) == ("context_overflow", 1, 0)
