"""Thinking that providers sign, encrypt or hide: it goes back as they want it, and to no other provider."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

import pytest

from drone.model.call import PLACEHOLDER_KEY
from drone.model.route import permitted
from shared.messages import Message, ToolCall
from shared.work_order import CREDENTIAL_PARAMS, OWN_PARAMS
from tests.support.endpoints import Doc, Endpoint, sent_in_pieces
from tests.support.protocols import PROTOCOLS, anthropic, bedrock, gemini, openai_chat, openai_responses
from tests.support.protocols.anthropic import ANTHROPIC
from tests.support.protocols.bedrock import BEDROCK
from tests.support.protocols.compatible import MISTRAL, VLLM, vllm_answer
from tests.support.protocols.gemini import GEMINI
from tests.support.protocols.ollama import OLLAMA
from tests.support.protocols.openai_chat import OPENAI_CHAT
from tests.support.protocols.openai_responses import OPENAI_RESPONSES
from tests.support.protocols.played import ONCE, Played, calling, refusal_of
from tests.support.protocols.spoken import KEY, Answer, Counted, Spoken, SpokenCall, of_kind, sse
from tests.support.scripted import HELLO, Called

pytestmark = pytest.mark.usefixtures("warm_model")

ONE = SpokenCall("a1b2c3d4e")
SIGNED = "c2lnbmVk"


def natives(played: Played, kind: str, request: int = 1) -> list[Doc]:
    return [part.native for part in of_kind(played.parts[request], kind)]


def test_claudes_signed_and_hidden_thinking_goes_back_unchanged_before_the_calls() -> None:
    blocks = [
        anthropic.thinking("Where is it?", SIGNED),
        anthropic.redacted("b3BhcXVl"),
        {"type": "text", "text": "Let me look."},
        anthropic.tool_use(ONE.id, "echo", ONE.json),
    ]
    played = Played(ANTHROPIC, anthropic.stream(blocks, "tool_use", Counted()))
    assert natives(played, "thought") == blocks[:2]
    assert [part.kind for part in played.parts[1]] == ["thought", "thought", "text", "call", "result"]
    use = bedrock.tool_use(ONE.id, "echo", ONE.json)
    blocks = [bedrock.thinking("Where is it?", SIGNED), bedrock.redacted(b"opaque"), use]
    played = Played(BEDROCK, bedrock.stream(blocks, "tool_use", Counted()))
    thought = {"reasoningContent": {"reasoningText": {"text": "Where is it?", "signature": SIGNED}}}
    assert natives(played, "thought") == [thought, blocks[1]]


def test_thinking_between_the_calls_of_a_turn_stays_with_its_own_calls() -> None:
    """Interleaved thinking: each step of the turn begins with its own thought."""
    steps = [Answer(thinking=f"Thought {n}.", signature=f"c2ln{n}", calls=(SpokenCall(f"call{n}"),)) for n in (1, 2)]
    played = Played(ANTHROPIC, *map(ANTHROPIC.answer, steps))
    kinds = [(part.kind, part.text or part.id) for part in played.parts[2] if part.kind in {"thought", "call"}]
    assert kinds == [("thought", "Thought 1."), ("call", "x"), ("thought", "Thought 2."), ("call", "x")]
    assert [each["signature"] for each in natives(played, "thought", 2)] == ["c2ln1", "c2ln2"]


def test_thinking_without_a_signature_goes_back_as_text_and_a_signature_without_thinking_as_it_is() -> None:
    for protocol in (ANTHROPIC, BEDROCK):
        played = Played(protocol, protocol.answer(Answer("Look.", "Where is it?", "", (ONE,))))
        assert of_kind(played.parts[1], "thought") == [], protocol
        assert of_kind(played.parts[1], "text")[0].text == "<thinking>Where is it?</thinking>\nLook.", protocol
        played = Played(protocol, protocol.answer(Answer("Look.", "", SIGNED, (ONE,))))
        assert SIGNED in json.dumps(natives(played, "thought")), protocol


AMAZON = "http://bedrock-runtime.us-east-1.amazonaws.com"


def test_the_credentials_of_the_drone_sign_requests_to_amazon_and_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for address, key, sent in (
        ("", KEY, f"Bearer {KEY}"),
        ("", None, f"Bearer {PLACEHOLDER_KEY}"),
        (AMAZON, None, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"),
        (AMAZON, KEY, f"Bearer {KEY}"),
    ):
        with Endpoint(BEDROCK.answer(Answer("Yes."))) as endpoint:
            monkeypatch.setenv("HTTP_PROXY", endpoint.url)  # as which the endpoint receives requests to Amazon
            called = Called("", BEDROCK.provider(address or endpoint.url, api_key=key))
            assert called.ask().message.content == "Yes."
            called.model.close()
        assert endpoint.asked[0].headers["Authorization"].startswith(sent), (address, key)


def test_a_parameter_cannot_send_a_key_of_the_drone_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEEPSEEK_API_KEY", "ANY_VARIABLE"):
        monkeypatch.setenv(name, "a-secret")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, os.devnull)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_BEDROCK_RUNTIME_ENDPOINT", "http://127.0.0.1:9")
    with Endpoint(BEDROCK.answer(Answer("Yes."))) as other:
        monkeypatch.setenv("DEEPSEEK_API_BASE", other.url)
        role = {"aws_role_name": "arn:aws:iam::1:role/x", "aws_session_name": "run", "aws_sts_endpoint": other.url}
        for given, bearer, refusal in (
            ({"aws_bedrock_runtime_endpoint": other.url, "base_url": other.url}, "a-secret", "server"),
            ({**role, "aws_web_identity_token": "oidc/env/ANY_VARIABLE"}, "", "auth"),
            ({"custom_llm_provider": "deepseek"}, "", "auth"),
        ):
            monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", bearer)
            provider = BEDROCK.provider(other.url, params={"aws_region_name": "us-east-1", **given})
            called = Called("", provider.model_copy(update={"api_base": None, "api_key": None}), limits=ONCE)
            assert (refusal_of(called).error_class, other.asked) == (refusal, []), given


def test_every_parameter_with_which_litellm_finds_credentials_is_left_out() -> None:
    from litellm.litellm_core_utils.get_litellm_params import OPTIONAL_KWARGS_KEYS
    from litellm.types.router import CredentialLiteLLMParams, CustomPricingLiteLLMParams

    found = {*OPTIONAL_KWARGS_KEYS, *CredentialLiteLLMParams.model_fields} - OWN_PARAMS
    places = {"region_name", "aws_region_name", "watsonx_region_name", "vertex_project", "vertex_location"}
    places |= {"vertex_ai_project", "vertex_ai_location", "api_version", "aws_bedrock_project_id", "bedrock_tags"}
    limits = {"timeout", "client_side_timeout", "tpm", "rpm", "itpm", "otpm"}
    others = {"fireworks_forward_user_id", "provider_affinity_header", *CustomPricingLiteLLMParams.model_fields}
    assert found == places | limits | others

    given = {**dict.fromkeys(CREDENTIAL_PARAMS, "x"), "extra_body": dict.fromkeys(CREDENTIAL_PARAMS | {"seed"}, 1)}
    assert permitted(given) == {"extra_body": {"seed": 1}}


def test_bedrock_gets_a_cache_point_after_the_system_prompt_and_after_the_last_two_questions() -> None:
    played = Played(BEDROCK, *(BEDROCK.answer(Answer(calls=(SpokenCall(f"call{n}"),))) for n in range(2)))
    markers = [bedrock.markers(body) for body in played.bodies]
    assert markers == [(1, 0, [1]), (1, 0, [1, 0, 1]), (1, 0, [0, 0, 1, 0, 1])]


def test_geminis_signatures_go_back_on_the_parts_that_had_them() -> None:
    long = "c2ln" * 500
    contents = [
        [{"text": "Where is it?", "thought": True}],
        [{"text": "Look.", "thoughtSignature": "dGV4dA=="}],
        [gemini.function_call("echo", {"text": "x"}, "a1", long)],
        [gemini.function_call("echo", {"text": "y"}, "b2")],
    ]
    played = Played(GEMINI, gemini.stream(*contents, usage=Counted()))
    sent = [(part.kind, part.native.get("thoughtSignature")) for part in played.parts[1]]
    results = [("result", None)] * 2
    assert sent == [("thought", None), ("text", "dGV4dA=="), ("call", long), ("call", None), *results]
    assert [call.id for call in played.toolbox.ran] == ["a1", "b2"], "a signature is no part of an id"


def test_calls_of_gemini_that_look_the_same_are_all_sent_back_and_one_without_arguments_is_a_call() -> None:
    """Older models give their calls no ids; Gemini refuses a question whose calls and results differ in number."""
    for model, ids in (("gemini/gemini-3.5-flash", ["a1", "b2"]), ("gemini/gemini-2.5-pro", ["", ""])):
        calls = [[gemini.function_call("echo", {"text": "x"}, call_id)] for call_id in ids]
        played = Played(replace(GEMINI, model=model), gemini.stream(*calls, usage=Counted()))
        for kind in ("call", "result"):
            assert [part.id for part in of_kind(played.parts[1], kind)] == ids, (model, kind)
    with calling(GEMINI, gemini.stream([gemini.function_call("echo", None)], usage=Counted())) as (called, _):
        assert [call.arguments for call in called.ask().message.tool_calls] == ["{}"]


def test_encrypted_reasoning_goes_back_item_by_item_and_the_endpoint_keeps_nothing() -> None:
    items = [
        openai_responses.reasoning("Where is it?", "ZW5jMQ==", "rs_1"),
        openai_responses.reasoning("There.", "ZW5jMg==", "rs_2"),
        openai_responses.function_call(ONE.id, "echo", ONE.json),
    ]
    played = Played(OPENAI_RESPONSES, openai_responses.stream(items, Counted()))
    assert natives(played, "thought") == items[:2]
    kept = [(body["store"], body["include"]) for body in played.bodies]
    assert kept == [(False, ["reasoning.encrypted_content"])] * 2
    assert played.agent.transcript[2].thinking == "Where is it?\n\nThere.", "paragraphs stay apart"


def test_a_model_that_has_only_the_responses_api_is_called_with_it() -> None:
    for model in ("openai/gpt-5.1-codex", "openai/responses/gpt-5.1-codex"):
        protocol = replace(OPENAI_RESPONSES, model=model)
        with calling(protocol, protocol.answer(Answer("Yes."))) as (called, endpoint):
            assert called.ask().message.content == "Yes."
        assert [asked.path for asked in endpoint.asked] == ["/v1/responses"], model


def test_the_end_at_the_length_limit_is_told_to_the_model() -> None:
    half, reason = [{"type": "text", "text": "Half of an ans"}], "model_context_window_exceeded"
    cut_off = openai_responses.incomplete([openai_responses.message("Half")], "max_output_tokens", Counted())
    for protocol, said in (
        (ANTHROPIC, anthropic.stream(half, reason, Counted())),
        (BEDROCK, bedrock.stream(half, reason, Counted())),
        (OPENAI_RESPONSES, cut_off),
    ):
        played = Played(protocol, said)
        assert played.outcome.response == "Done.", protocol
        assert "reached the length limit" in of_kind(played.parts[1], "text")[-1].text, protocol


def test_openai_at_its_own_address_is_called_through_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = openai_chat.stream({"refusal": "I can't."})
    with Endpoint(OPENAI_CHAT.answer(Answer("Look.", calls=(ONE,))), refusal) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{endpoint.url}/v1")
        called = Called("", OPENAI_CHAT.provider(endpoint.url).model_copy(update={"api_base": None}))
        answer = called.ask()
        assert (answer.message.content, [call.id for call in answer.message.tool_calls]) == ("Look.", [ONE.id])
        assert (answer.usage.input_tokens, answer.finish_reason) == (1000, "tool_calls")
        assert refusal_of(called).error_class == "content_blocked"
        called.model.close()
    assert "max_completion_tokens" in endpoint.asked[0].body


REFUSED = "I'm sorry, I can't help with that."


def test_an_answer_that_was_refused_or_filtered_is_blocked_and_not_repeated() -> None:
    prompt = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}}
    cases: list[tuple[Spoken, Any]] = [
        (OPENAI_CHAT, openai_chat.stream({"refusal": REFUSED[:9]}, {"refusal": REFUSED[9:]})),
        (OPENAI_CHAT, openai_chat.stream({"content": "Half"}, finish="content_filter")),
        (OPENAI_RESPONSES, openai_responses.stream([openai_responses.refusal(REFUSED)], Counted())),
        (OPENAI_RESPONSES, openai_responses.incomplete([openai_responses.message("Half")], "content_filter")),
        (ANTHROPIC, anthropic.stream([{"type": "text", "text": "I ca"}], "refusal", Counted())),
        (BEDROCK, bedrock.stream([{"text": "Half"}], "guardrail_intervened", Counted())),
        (GEMINI, sent_in_pieces(sse(prompt))),
        (GEMINI, gemini.stream([{"text": "Half"}], finish="SPII", usage=Counted())),
    ]
    for protocol, said in cases:
        with calling(protocol, said) as (called, endpoint):
            failed = refusal_of(called)
        assert (failed.error_class, len(endpoint.asked)) == ("content_blocked", 1), protocol
        assert REFUSED not in json.dumps(str(said.pieces)) or REFUSED in failed.detail, protocol


def test_ollama_is_asked_for_the_window_that_the_provider_has_and_reasoning_of_an_older_vllm_is_read() -> None:
    for window in (32_768, 0):
        with Endpoint(OLLAMA.answer(Answer("Yes."))) as endpoint:
            called = Called("", OLLAMA.provider(endpoint.url, context_window=window))
            called.ask()
            called.model.close()
        assert endpoint.bodies[0]["options"].get("num_ctx") == (window or None)
    with calling(VLLM, vllm_answer(Answer("Yes.", "Hm."), field="reasoning_content")) as (called, _):
        assert called.ask().message.thinking == "Hm."


def test_ollama_is_asked_for_the_window_that_the_provider_has() -> None:
    with Endpoint(OLLAMA.answer(Answer("Yes."))) as endpoint:
        for window in (32_768, 0):
            called = Called("", OLLAMA.provider(endpoint.url, context_window=window))
            called.ask()
            called.model.close()
    assert [body["options"].get("num_ctx") for body in endpoint.bodies] == [32_768, None]


FOREIGN = [ToolCall(id=each, name="echo", arguments="{}") for each in ("toolu_01A09q90qw90lq9", "call_" + "c2ln" * 100)]
RESULTS = [Message(role="tool", tool_call_id=call.id, content="out") for call in FOREIGN]


def test_a_conversation_that_another_provider_began_goes_on_at_every_other_with_ids_that_it_takes() -> None:
    most = {MISTRAL.name: 9, OPENAI_CHAT.name: 40, OPENAI_RESPONSES.name: 40}
    for protocol in PROTOCOLS:
        block = {"type": "thinking", "thinking": "Hm.", "signature": "foreign", "format": "of-another"}
        if protocol.name in {ANTHROPIC.name, BEDROCK.name}:
            block = {"type": "reasoning", "encrypted_content": "foreign"}
        foreign = Message(role="assistant", thinking="Hm.", thinking_blocks=(block,), tool_calls=tuple(FOREIGN))
        with calling(protocol, protocol.answer(Answer("Yes."))) as (called, endpoint):
            for _ in range(2):
                assert called.ask(*HELLO, foreign, *RESULTS).message.content == "Yes."
        assert "foreign" not in endpoint.asked[0].raw.decode(), protocol
        first, second = ([part for part in protocol.parts(body) if part.id] for body in endpoint.bodies)
        assert [part.id for part in first] == [part.id for part in second], protocol
        calls, answers = ([part.id for part in of_kind(first, kind)] for kind in ("call", "result"))
        assert not protocol.own_ids or calls == answers, protocol
        assert len(set(answers)) == 2, protocol
        if protocol.name in most:
            assert max(map(len, answers)) <= most[protocol.name], protocol
            assert all(each.replace("_", "").isalnum() for each in answers), protocol
