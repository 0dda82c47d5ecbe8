"""What goes over the wire to families of models: thinking in their own form, cache markers, and tools as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.in_memory import EchoToolbox
from drone.agent.values import ModelCallFailed
from shared.events import ReasoningStep, RetryStep
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome
from shared.transcripts import assert_valid
from shared.work_order import OrderProvider, Protocol
from tests.support.endpoints import (
    Endpoint,
    Said,
    anthropic_answer,
    call,
    call_answer,
    chunk,
    refused,
    streamed,
    text_answer,
)
from tests.support.scripted import Called

pytestmark = pytest.mark.usefixtures("warm_model")

MARKER = {"type": "ephemeral"}
SIGNED = {"type": "thinking", "thinking": "Where is it?", "signature": "c2lnbmVk"}
HIDDEN = {"type": "redacted_thinking", "data": "b3BhcXVl"}
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


def parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Every block of the system prompt, the tools and the messages, in the order in which a cache reads them."""
    said = [part for message in body["messages"] for part in message["content"]]
    return [*body["tools"], *body["system"], *said]


def unmarked(items: Sequence[dict[str, Any]]) -> list[str]:
    return [json.dumps({key: value for key, value in item.items() if key != "cache_control"}) for item in items]


def test_signed_thinking_comes_whole_and_goes_back_unchanged_through_a_loop_of_tools() -> None:
    first = anthropic_answer(SIGNED, HIDDEN, {"type": "text", "text": "Let me look."}, use(1), stop="tool_use")
    second = anthropic_answer({**SIGNED, "thinking": "Once more.", "signature": "bW9yZQ"}, use(2), stop="tool_use")
    ran = Ran("anthropic/claude-sonnet-4-5", first, second, anthropic_answer({"type": "text", "text": "Done."}))
    assert ran.outcome.exit_status is ExitStatus.STOPPED
    assistant = [message["content"] for message in ran.bodies[2]["messages"] if message["role"] == "assistant"]
    assert assistant[0] == [SIGNED, HIDDEN, {"type": "text", "text": "Let me look."}, use(1)]
    assert assistant[1] == [{**SIGNED, "thinking": "Once more.", "signature": "bW9yZQ"}, use(2)]
    assert ran.bodies[1]["messages"][1] == ran.bodies[2]["messages"][1]


def test_thinking_is_recorded_as_text_and_kept_as_it_was_signed() -> None:
    ran = Ran("anthropic/claude-sonnet-4-5", anthropic_answer(SIGNED, {"type": "text", "text": "Done."}))
    thoughts = [body for body in ran.called.recorder.bodies if isinstance(body, ReasoningStep)]
    assert [(body.text, body.blocks) for body in thoughts] == [("Where is it?", (SIGNED,))]
    assert ran.agent.transcript[-1].thinking_blocks == (SIGNED,)


def test_at_most_four_markers_go_over_the_wire_and_move_on_while_the_prefix_stays() -> None:
    answers = [anthropic_answer(use(n), use(n + 100), stop="tool_use") for n in range(4)]
    ran = Ran("anthropic/claude-sonnet-4-5", *answers, anthropic_answer({"type": "text", "text": "Done."}))
    marked = [[at for at, part in enumerate(parts(body)) if "cache_control" in part] for body in ran.bodies]
    assert all(part.get("cache_control", MARKER) == MARKER for body in ran.bodies for part in parts(body))
    assert marked == [[2, 3], [2, 3, 7], [2, 7, 11], [2, 11, 15], [2, 15, 19]]
    assert all(
        unmarked(parts(later))[: len(parts(earlier))] == unmarked(parts(earlier))
        for earlier, later in zip(ran.bodies, ran.bodies[1:], strict=False)
    )


def test_without_a_system_prompt_the_last_tool_is_marked() -> None:
    with Endpoint(anthropic_answer({"type": "text", "text": "Done."})) as endpoint:
        Called("", OrderProvider(name="p", model="anthropic/claude-x", api_base=endpoint.url, api_key="k")).ask(
            Message(role="user", content="Go.")
        )
    assert endpoint.bodies[0]["tools"][-1]["cache_control"] == MARKER


def test_what_the_cache_gave_and_took_is_in_the_usage() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 500, "cache_creation_input_tokens": 30}
    with Endpoint(anthropic_answer({"type": "text", "text": "Yes."}, usage=usage)) as endpoint:
        provider = OrderProvider(name="p", model="anthropic/claude-sonnet-4-5", api_base=endpoint.url, api_key="k")
        answer = Called("", provider).ask()
    assert (answer.usage.input_tokens, answer.usage.cached_tokens, answer.usage.output_tokens) == (540, 500, 7)
    assert answer.usage.cost_usd > 0


@pytest.mark.parametrize("model", ["openai/x", "mistral/mistral-large-latest", "deepseek/deepseek-chat"])
def test_other_providers_get_neither_markers_nor_blocks(model: str) -> None:
    ran = Ran(model, call_answer(call("echo", {"text": "x"})), DONE)
    assert "cache_control" not in json.dumps(ran.bodies)
    assert "thinking_blocks" not in json.dumps(ran.bodies)


@pytest.mark.parametrize("model", ["deepseek/deepseek-reasoner", "moonshot/kimi-k2-thinking", "openai/MiniMax-M2"])
def test_reasoning_goes_back_in_its_own_field_where_the_provider_wants_it(model: str) -> None:
    first = call_answer(call("echo", {"text": "x"}), reasoning_content="Where is it?")
    ran = Ran(model, first, DONE, protocol="tools")
    assistant = ran.bodies[1]["messages"][2]
    assert assistant["reasoning_content"] == "Where is it?"
    assert not assistant.get("content")


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


def test_a_provider_that_misses_reasoning_gets_it_filled_in_once_it_says_so() -> None:
    missing = refused(400, {"error": {"message": "Missing `reasoning_content` field in the assistant message"}})
    ran = Ran("openai/x", call_answer(call("echo", {"text": "x"})), missing, DONE)
    assert ran.bodies[2]["messages"][2]["reasoning_content"] == " "
    assert [(retry.delay_s, retry.error_class) for retry in ran.retries] == [(0, "format")]


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


def test_markers_that_are_refused_are_left_out() -> None:
    refusal = {"error": {"message": "messages.0.cache_control: Extra inputs are not permitted"}}
    ran = Ran("openrouter/anthropic/claude-x", refused(400, refusal), DONE)
    assert "cache_control" in json.dumps(ran.bodies[0])
    assert "cache_control" not in json.dumps(ran.bodies[1])


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


@pytest.mark.parametrize(("status", "message"), NO_TOOLS, ids=str)
def test_a_refusal_of_tools_leads_to_text_at_once_and_for_the_rest_of_the_run(status: int, message: str) -> None:
    refusal = refused(status, {"error": {"message": message}})
    ran = Ran("openai/x", refusal, text_answer(ACTION), text_answer(SUBMIT))
    assert ran.outcome.exit_status is ExitStatus.SUBMITTED
    assert ["tools" in body for body in ran.bodies] == [True, False, False]
    assert [(retry.delay_s, retry.error.endswith("from now on they are called in text.")) for retry in ran.retries] == [
        (0, True)
    ]


def test_a_refusal_of_tools_is_an_error_where_the_provider_is_set_to_tools() -> None:
    refusal = refused(400, {"error": {"message": "llama2 does not support tools"}})
    assert Ran("openai/x", refusal, DONE, protocol="tools").outcome.exit_status is ExitStatus.MODEL_ERROR


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("I am done.", "has no action block"),
        (ACTION + ACTION, "has 2 action blocks"),
        ("```action echo\nhello", "is not closed"),
        ("", "has no action block"),
    ],
    ids=["none", "two", "open", "empty"],
)
def test_an_answer_without_exactly_one_block_is_sent_back_with_the_reason(said: str, why: str) -> None:
    ran = Ran("openai/x", text_answer(said), text_answer(SUBMIT), protocol="text")
    assert why in ran.bodies[1]["messages"][-1]["content"]
    assert [call.name for call in ran.toolbox.ran] == ["submit"]


def test_answers_in_text_that_never_keep_the_form_end_the_run() -> None:
    assert Ran("openai/x", text_answer("Well."), protocol="text").outcome.exit_status is ExitStatus.FORMAT_ERRORS


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


def test_an_unknown_price_is_unknown_for_the_whole_run() -> None:
    ran = Ran("openai/x", call_answer(call("echo", {"text": "x"})), DONE)
    assert ran.agent.stats().cost_usd is None
