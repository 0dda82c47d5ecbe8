"""Messages as an endpoint wants them, by the family of its model."""

from __future__ import annotations

import json
from typing import Any

from drone.agent.in_memory import ECHO
from drone.model.conversion import LONGEST_BROKEN, NO_ANSWER, WireConversation
from drone.model.model_families import Family, family_of
from shared.messages import Message, ToolCall

SYSTEM, USER = Message(role="system", content="Rules."), Message(role="user", content="Go.")
SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "b3BhcXVl"}
DETAIL = {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0}
CLAUDE = "anthropic/claude-sonnet-4-5"


def sent(*messages: Message, family: Family | None = None, model: str = "") -> list[dict[str, Any]]:
    return WireConversation(family or family_of(model), model, [ECHO]).documents(messages)


def step(number: int, *names: str, **more: Any) -> list[Message]:
    """An answer with calls, and their results."""
    calls = tuple(ToolCall(id=f"c{number}{name}", name="echo") for name in names or ("a",))
    results = (Message(role="tool", tool_call_id=call.id, content="out") for call in calls)
    return [Message(role="assistant", tool_calls=calls, **more), *results]


def marked(documents: list[dict[str, Any]]) -> list[int]:
    return [at for at, document in enumerate(documents) if "cache_control" in document]


def test_thinking_is_sent_back_before_the_content() -> None:
    message = Message(role="assistant", content="I found it.", thinking="Where is it?")
    assert sent(message)[0]["content"] == "<thinking>Where is it?</thinking>\nI found it."
    assert sent(Message(role="assistant"))[0]["content"] == NO_ANSWER


def test_arguments_that_are_no_flat_json_object_go_back_inside_one_and_large_ones_are_cut() -> None:
    for arguments in ('{"command": "l', '"ls"', '["ls"]', "[" * 1000 + "]" * 1000, '{"a":' * 900, "x" * 1_000_000):
        call = ToolCall(id="a", name="shell", arguments=arguments)
        wire = sent(Message(role="assistant", tool_calls=(call,)))[0]["tool_calls"][0]["function"]["arguments"]
        assert json.loads(wire)["not_json"].startswith(arguments[:LONGEST_BROKEN])
        assert len(json.loads(wire)["not_json"]) < LONGEST_BROKEN + 100, arguments[:20]


def test_a_name_that_endpoints_would_refuse_is_mended() -> None:
    for name, wire in {
        "": "unnamed",
        "functions.shell": "functions_shell",
        "a b\n": "a_b_",
        "x" * 99: "x" * 64,
    }.items():
        message = Message(role="assistant", tool_calls=(ToolCall(id="a", name=name),))
        assert sent(message)[0]["tool_calls"][0]["function"]["name"] == wire, name


CLAUDES = (
    *(CLAUDE, "claude-opus-4-1", "anthropic/a-name-at-a-gateway", "vertex_ai/claude-sonnet-4@20250514"),
    "bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0",
    "bedrock/converse/anthropic.claude-3-7-sonnet-20250219-v1:0",
)
REASONING = (
    *("deepseek/deepseek-reasoner", "moonshot/kimi-k2-thinking", "zai/glm-4.7", "hosted_vllm/deepseek-v3.2"),
    *("hosted_vllm/moonshotai/Kimi-K2-Thinking", "hosted_vllm/MiniMaxAI/MiniMax-M2"),
)


def test_each_family_gets_its_thinking_back_in_its_own_form() -> None:
    signed = Message(role="assistant", content="Yes.", thinking="Hm.", thinking_blocks=(SIGNED, HIDDEN))
    back = {"role": "assistant", "content": "Yes.", "thinking_blocks": [SIGNED, HIDDEN]}
    assert [model for model in CLAUDES if sent(signed, model=model)[0] != back] == []
    detailed = signed.model_copy(update={"thinking_blocks": (DETAIL,)})
    document = sent(detailed, model="openrouter/anthropic/claude-sonnet-4.5")[0]
    assert document == {"role": "assistant", "content": "Yes.", "reasoning_details": [DETAIL]}
    for model in REASONING:
        first = sent(*step(1, thinking="Hm.", content="Look."), model=model)[0]
        assert (first["reasoning_content"], first["content"]) == ("Hm.", "Look."), model
    # What is missing is filled once a provider asked for it.
    first, other = sent(*step(1), *step(2, thinking="Hm."), family=Family("filled"))[::2]
    assert (first["reasoning_content"], other["reasoning_content"]) == (" ", "Hm.")


def test_thinking_of_another_family_or_without_signature_goes_back_as_text() -> None:
    cases: list[tuple[str, Any]] = [
        (CLAUDE, (DETAIL,)),
        (CLAUDE, ()),
        (CLAUDE, ({"type": "thinking", "thinking": "Hm."},)),
        ("openai/gpt-x", (SIGNED,)),
        ("openrouter/anthropic/claude-sonnet-4.5", (SIGNED,)),
        ("openrouter/google/gemini-3-pro-preview", (DETAIL,)),
        ("hosted_vllm/claude-at-home", (SIGNED,)),
    ]
    for model, blocks in cases:
        message = Message(role="assistant", content="Yes.", thinking="Hm.", thinking_blocks=blocks)
        as_text = {"role": "assistant", "content": "<thinking>Hm.</thinking>\nYes."}
        assert sent(message, model=model)[0] == as_text, model


GEMINI = "gemini/gemini-3.5-flash"
CALL_SIGNED = {"type": "thought_signature", "call": 1, "signature": "c2ln"}


def test_signatures_of_gemini_go_back_with_their_calls_even_if_an_id_was_changed_since() -> None:
    wire = sent(*step(1, "a", "b", thinking="Hm.", thinking_blocks=(CALL_SIGNED,)), model=GEMINI)[0]
    signed = [call.get("provider_specific_fields") for call in wire["tool_calls"]]
    assert (signed, wire["reasoning_content"]) == ([None, {"thought_signature": "c2ln"}], "Hm.")
    # The signature of a call that is not there goes back with none.
    for call in (7, -1, "1", None):
        wire = sent(*step(1, thinking_blocks=({**CALL_SIGNED, "call": call},)), model=GEMINI)[0]
        assert "provider_specific_fields" not in wire["tool_calls"][0], call


def test_an_id_that_a_provider_refuses_is_replaced_on_the_call_and_its_result() -> None:
    cases: list[tuple[str, str, str]] = [
        ("mistral/mistral-large-latest", "a1b2c3d4e", "a1b2c3d4e"),
        ("hosted_vllm/mistralai/Devstral-Small", "call_1", "74196fe72"),
        ("openai/gpt-4.1", "x" * 41, "3164596df4fdd018b2c567ec8c03e79bd76f4e4c"),
        ("openai/gpt-4.1", "call_1", "call_1"),
        ("hosted_vllm/gemini-at-a-gateway", "call__thought__" + "c2ln" * 500, "call__thought__" + "c2ln" * 500),
        ("ollama_chat/mistral", "call_1", "call_1"),
    ]
    for model, call_id, wire in cases:
        call = Message(role="assistant", tool_calls=(ToolCall(id=call_id, name="echo"),))
        first, second = sent(call, Message(role="tool", tool_call_id=call_id, content="out"), model=model)
        assert (first["tool_calls"][0]["id"], second["tool_call_id"]) == (wire, wire), model


def test_the_cache_is_cut_after_the_system_prompt_and_after_the_last_two_questions_where_there_are_marks() -> None:
    for model in (CLAUDE, "openrouter/anthropic/claude-sonnet-4.5", "bedrock/anthropic.claude-x"):
        assert marked(sent(SYSTEM, USER, model=model)) == [0, 1], model
        assert marked(sent(SYSTEM, USER, *step(1), *step(2), model=model)) == [0, 3, 5], model
    for model in ("openai/gpt-x", "hosted_vllm/claude-at-home", "gemini/gemini-2.5-pro", "openrouter/openai/gpt-5", ""):
        assert marked(sent(SYSTEM, USER, *step(1), model=model)) == [], model
    # The end of the question before is marked again, however many results came since.
    before = sent(SYSTEM, USER, *step(1, "a", "b"), model=CLAUDE)
    after = sent(SYSTEM, USER, *step(1, "a", "b"), *step(2, *"abcdefgh"), USER, model=CLAUDE)
    assert (max(marked(before)) in marked(after), len(marked(after)) <= 4) == (True, True)
    # Nothing empty is marked: that would be refused.
    assert marked(sent(SYSTEM, USER.model_copy(update={"content": ""}), model=CLAUDE)) == [0]


def test_what_was_converted_is_not_converted_again_and_what_changed_is() -> None:
    wire = WireConversation(Family(), "", [])
    wire.documents([SYSTEM, USER, *step(1)])
    other = [SYSTEM, Message(role="user", content="A summary."), *step(2)]
    assert wire.documents(other) == sent(*other)
    assert wire.documents(other[:2]) == sent(*other[:2])
    # An endpoint that changes its request changes no later one.
    wire.documents([SYSTEM, USER])[1].pop("content")
    assert wire.documents([SYSTEM, USER])[1]["content"] == "Go."
