"""A model's answer is taken whole or not at all, whatever bytes an endpoint makes of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import httpx
import pytest

from drone.model import answer_bytes, raw_chunks
from drone.model.answer_bytes import MOST_LINE, MOST_REFUSAL
from drone.model.route import _OWN_PATHS
from shared.errors import Preempted
from shared.work_order import Limits, OrderProvider
from tests.support.endpoints import Doc, Endpoint, Said, call, call_answer, chunk, streamed, text_answer
from tests.support.protocols import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    OLLAMA,
    OPENAI_RESPONSES,
    PROTOCOLS,
    VLLM,
    anthropic,
    bedrock,
    openai_responses,
)
from tests.support.protocols.in_process import CUSTOM, Read, read
from tests.support.protocols.played import ONCE, calling, refusal_of
from tests.support.protocols.spoken import Answer, Counted, Spoken, SpokenCall, sse
from tests.support.scripted import Called

pytestmark = pytest.mark.usefixtures("warm_model")

WELL = "All is well."
USED = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def raw(*chunks: Any, done: bool = True) -> Said:
    """An answer whose characters are not escaped."""
    lines = [f"data: {json.dumps(each, ensure_ascii=False)}\n\n" for each in chunks]
    body = "".join([*lines, "data: [DONE]\n\n" if done else ""])
    return Said(body.encode(), headers={"Content-Type": "text/event-stream"})


def ch(choices: Any, **more: Any) -> Doc:
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def whole(message: Any, finish: str | None = "stop", **more: Any) -> Doc:
    """An answer that is not streamed."""
    return ch([{"index": 0, "finish_reason": finish, "message": message}], **more)


def wrong_outcomes(cases: Iterable[tuple[Any, Any]], provider: OrderProvider = CUSTOM) -> dict[str, Any]:
    """What came of answers of which something else was meant."""
    found = {repr(said): (read(said, provider).outcome, meant) for said, meant in cases}
    return {said: (outcome, meant) for said, (outcome, meant) in found.items() if outcome != meant}


def test_the_stream_ends_at_done_or_where_the_body_ends() -> None:
    """What follows the end is none of the answer, and nothing waits for it."""
    said, after = sse(chunk(content=WELL), chunk("stop")), sse(chunk(content="more"))[0]
    ends = (b"data: [DONE]\n\n", b"data:[DONE]\n\n", b"data: [DONE]  \n", b"data: [DONE]", b"data: [DONE]\r\r", b"")
    cases = [([*said, end], WELL) for end in ends]
    cases += [([*said, b"data: [DONE]\n\n", after], WELL), ([*said, b"\n\n: bye\n\n"], WELL)]
    assert wrong_outcomes(cases) == {}
    left_open = replace(streamed(), body=b"", pieces=(*said, b"data: [DONE]\n\n"), ends="open")
    with calling(VLLM, left_open) as (called, endpoint):
        assert called.ask().message.content == WELL
        assert len(endpoint.asked) == 1


def test_lines_end_with_lf_crlf_or_cr_and_with_nothing_else() -> None:
    for c in ("\u2028", "\u2029", "\x85", "\x0b", "\x1c", "\ufeff", "\x7f"):
        arguments = f'{{"path":"i.js","content":"a{c}b\\n"}}'
        # JSON allows these characters unescaped, except for control characters, which become escapes.
        calls = raw(chunk(tool_calls=[call("echo", arguments)]), chunk("tool_calls"))
        escaped = arguments.replace(c, json.dumps(c)[1:-1]) if c < " " else arguments
        assert read(calls).outcome == ("", ("echo", escaped)), repr(c)
    for protocol in (each for each in PROTOCOLS if each is not BEDROCK):
        said = protocol.answer(Answer("a\u2028b\x85[DONE]c", calls=(SpokenCall("a1b2c3d4e"),)))
        body = b"".join(said.pieces).replace(b"\\u2028", "\u2028".encode()).replace(b"\\u0085", "\x85".encode())
        # Its parts may be in two pieces, and each is decoded by itself.
        ended = {end: body.replace(b"\n", end) for end in (b"\n", b"\r\n", b"\r")}
        in_bytes = [ended[b"\r\n"][at : at + 1] for at in range(len(ended[b"\r\n"]))]
        for pieces in ([ended[b"\r"]], in_bytes, [b"\xef\xbb\xbf", body]):
            found = read(replace(said, pieces=tuple(pieces)), protocol.provider("http://127.0.0.1:9"))
            assert found.outcome == ("a\u2028b\x85[DONE]c", ("echo", '{"text": "x"}')), (protocol, len(pieces))


def test_every_provider_that_takes_our_client_has_its_bytes_read_here_also_if_they_are_compressed() -> None:
    said = raw(ch(None), chunk(content="a\u2028b [DONE]"), chunk("stop"))
    said = replace(said, body=gzip.compress(said.content), headers={**said.headers, "Content-Encoding": "gzip"})
    providers = [OrderProvider(name="p", model=f"{each}/m", api_key="k") for each in _OWN_PATHS - OTHER_PROTOCOLS]
    found = {provider.model: read(said, provider).outcome for provider in providers}
    assert found == dict.fromkeys(found, "a\u2028b [DONE]")
    assert len(found) > 8


OTHER_PROTOCOLS = {"anthropic", "bedrock", "gemini", "ollama", "ollama_chat"}


def test_a_whole_answer_in_place_of_a_stream_is_read() -> None:
    """Those that have text and calls in the usual form are in test_answer_bytes_property.py."""
    answer = {"role": "assistant", "content": WELL}
    usual, called = whole(answer), ("echo", '{"text": "x"}')
    # Perplexity's chunks repeat the whole answer so far.
    repeating = [ch([{"delta": {"content": each}, "message": answer}]) for each in ("All ", "is well.")]
    as_object = {"id": "call_1", "type": "function", "function": {"name": "echo", "arguments": {"text": "x"}}}
    cases: list[tuple[Any, Any]] = [
        (Said(b"\r\n" + json.dumps(usual).encode() + b"\r\n\r\n"), WELL),
        (streamed(usual, done=False), WELL),
        (Said(whole({"tool_calls": [as_object]}, "tool_calls")), ("", called)),
        (Said(whole({"content": [{"type": "text", "text": "All "}, {"type": "text", "text": "is well."}]})), WELL),
        (streamed(*repeating, chunk("stop")), WELL),
        (Said(whole(answer, None)), "server"),
        (Said({"error": {"message": "Slow down: rate limit reached", "code": 429}}), "rate_limit"),
        (Said({"error": "The model is overloaded."}), "overloaded"),
        (Said({"object": "error", "message": "maximum context length is 10 tokens", "code": 400}), "context_overflow"),
        (Said(b"<html>hello</html>"), "server"),
        (Said(b""), "server"),
    ]
    assert wrong_outcomes(cases) == {}
    found = read(Said(whole(answer, "length", usage=USED)))
    assert (found.outcome, *seen(found)) == (WELL, "length", True, (1, 1))


def test_a_whole_message_of_anthropics_in_place_of_a_stream_is_read() -> None:
    said = {"type": "text", "text": "Line\u2028with [DONE] and \ud83d\ude00."}
    thought, hidden = anthropic.thinking("Hm.", "c2lnbmVk"), anthropic.redacted("b64")
    used = {"input_tokens": 5, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 7}
    provider, counted = ANTHROPIC.provider("http://127.0.0.1:9"), Counted(10, 7, read=3, written=2)
    for blocks, stop in (([hidden, said, said], "max_tokens"), ([thought, said, uses(1), uses(2)], "tool_use")):
        meant = read(anthropic.stream([in_stream(each) for each in blocks], stop, counted), provider)
        document = message_of(blocks, stop, usage=used)
        assert meant.message is not None
        for body in (Said(document), Said(json.dumps(document, indent=1).encode()), Said(sse(document)[0])):
            found = read(body, provider)
            assert (found.message, seen(found)) == (meant.message, seen(meant)), body
    text = {"type": "text", "text": WELL}
    wrong = {"error": {"type": "rate_limit_error", "message": "Slow down: rate limit reached"}, "type": "error"}
    cases: list[tuple[Any, Any]] = [
        (message_of([text], "end_turn", usage=None), WELL),
        *((message_of([text], stop), "server") for stop in (None, "error", "pause_turn", 1)),
        *((message_of(content, "end_turn"), "server") for content in (None, "text", [None])),
        (message_of([{"type": "text", "text": 5}], "end_turn"), "server"),
        (message_of([{"type": "text", "text": None}, text], "end_turn"), WELL),
        (message_of([text, {"type": "something_new"}], "end_turn"), WELL),
        (wrong, "rate_limit"),
    ]
    assert wrong_outcomes([(Said(body), meant) for body, meant in cases], provider) == {}
    assert read(Said(json.dumps(cases[0][0]).encode()[:-3]), provider).outcome == "server"


def message_of(blocks: Any, stop: Any, **more: Any) -> Doc:
    """A message that was not streamed."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": blocks}
    return {**message, "stop_reason": stop, "stop_sequence": None, **more}


def uses(number: int) -> Doc:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "echo", "input": {"text": "x" * number}}


def in_stream(block: Doc) -> Doc:
    """A block as `anthropic.stream` takes it."""
    return {**block, "partial": json.dumps(block["input"])} if block["type"] == "tool_use" else block


def seen(found: Read) -> tuple[Any, ...]:
    usage = found.call.usage
    return found.call.finish_reason, found.call.usage_reported, usage and (usage.prompt_tokens, usage.completion_tokens)


def test_a_document_that_was_asked_for_is_read_by_litellm() -> None:
    """Some models of OpenAI have no stream; and where one was asked for, their document is no answer."""
    said = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    said |= {"output": [openai_responses.message(WELL)], "error": None, "incomplete_details": None}
    said |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    streams = OPENAI_RESPONSES.provider("http://127.0.0.1:9")
    asks = streams.model_copy(update={"model": "openai/o1-pro"})
    assert (read(Said(said), asks).outcome, read(Said(said), streams).outcome) == (WELL, "server")


OWN = {
    "stop": "stop STOP end_turn stop_sequence COMPLETE eos eos_token end normal",
    "tool_calls": "tool_calls tool_use function_call TOOL_CALL",
    "length": "length max_tokens MAX_TOKENS model_length max_output_tokens model_context_window_exceeded",
    "content_filter": "content_filter SAFETY sensitive refusal guardrail_intervened ERROR_TOXIC",
}
FOREIGN = "error network_error abort rate_limit USER_CANCEL MALFORMED_FUNCTION_CALL pause_turn stopped xyz"


def test_only_a_finish_that_is_the_models_own_makes_an_answer() -> None:
    found = {word: read(text_answer(WELL, word)).call.finish_reason for words in OWN.values() for word in words.split()}
    assert found == {word: reason for reason, words in OWN.items() for word in words.split()}
    cases: list[tuple[Said, Any]] = [
        (text_answer("I will now edit the fi", each), "server") for each in FOREIGN.split()
    ]
    cases += [(call_answer(call("echo", '{"command":"ec'), finish="error"), "server")]
    cases += [(streamed(chunk(content=WELL), done=done), "server") for done in (True, False)]
    # A finish reason in each chunk tells nothing, but the end of the stream does.
    each = [chunk("stop", content=part) for part in ("All ", "is ", "well.")]
    cases += [(streamed(*each), WELL), (streamed(*each, done=False), "server")]
    cases += [(streamed(chunk("error", content=WELL), chunk("stop")), "server")]
    cases += [(text_answer(WELL, "timeout"), "timeout")]
    cases += [(streamed(chunk("null", content=WELL), chunk("", content=""), chunk("stop")), WELL)]
    assert wrong_outcomes(cases) == {}
    said = read(text_answer("Half", "network\n_error " + "x" * 100)).failure
    assert said is not None
    assert said.interrupted.startswith("its finish reason is `network _error xxx")
    assert len(said.interrupted) < 100
    # And people are told.
    with calling(VLLM, text_answer("Half", ""), limits=Limits(max_retries=1, base_delay=0)) as (called, endpoint):
        failed = refusal_of(called)
    (retry,) = called.recorder.bodies
    assert (failed.error_class, len(endpoint.asked)) == ("server", 2)
    assert all("no finish reason" in text for text in (failed.what, retry.error))  # type: ignore[union-attr]


def test_the_finish_of_every_protocol_is_judged() -> None:
    text, url = [{"type": "text", "text": "Half"}], "http://127.0.0.1:9"
    said = {"content": {"parts": [{"text": "Half"}]}}
    odd = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "NEW_WORD", "FINISH_REASON_UNSPECIFIED")
    of_gemini = [{"candidates": [{**said, "finishReason": each}]} for each in odd]
    ollama = {"model": "m", "message": {"content": "Half"}, "done": True}
    of_ollama = [{**ollama, "done_reason": each} for each in ("load", "new_word")]
    of_bedrock = [
        bedrock.stream([{"text": "Half"}], each, Counted()) for each in ("malformed_model_output", "new_word")
    ]
    incomplete = openai_responses.incomplete([openai_responses.message("Half")], "max_output_tokens", Counted())
    unexplained = tuple(each.replace(b'{"reason": "max_output_tokens"}', b"null") for each in incomplete.pieces)
    cases: list[tuple[Spoken, Said]] = [
        *((ANTHROPIC, anthropic.stream(text, each, Counted())) for each in ("pause_turn", "abort", "new_word")),
        *((BEDROCK, each) for each in of_bedrock),
        *((GEMINI, replace(streamed(), body=sse(each)[0])) for each in of_gemini),
        *((OLLAMA, Said(json.dumps(each).encode() + b"\n")) for each in of_ollama),
        (OPENAI_RESPONSES, replace(incomplete, pieces=unexplained)),
    ]
    found = [(str(protocol), read(said, protocol.provider(url)).failure) for protocol, said in cases]
    assert [(name, each and each.error_class) for name, each in found] == [(name, "server") for name, _ in found]
    assert [(name, each) for name, each in found if not (each and each.interrupted)] == []


def test_an_error_in_the_middle_is_one_of_its_class() -> None:
    half = sse(chunk(content="Half of an ans"))
    cases = [
        ([*half, *sse({"error": {"message": "no", "code": "503"}})], "overloaded"),
        ([*half, *sse({"error": {"message": "no", "code": "context_length_exceeded"}})], "context_overflow"),
        ([*half, *sse({"error": "Upstream request timeout"})], "timeout"),
        ([*half, *sse({"error": {"message": None}}, done=True)], "server"),
        ([*half, *sse({"object": "error", "message": "overloaded", "code": None})], "overloaded"),
        ([*half, b"event: error\n", *sse({"message": "no", "code": 504})], "timeout"),
        ([*half, b'{"error": {"message": "no", "code": 429}}\n'], "rate_limit"),
        ([*half, *sse(chunk("stop"), {"error": {"message": "no", "code": 529}}, done=True)], "overloaded"),
        ([*half, *sse({"error": None, **chunk(content="wer")}, chunk("stop"))], "Half of an answer"),
        ([*half, b"data: Internal Server Error\n\n", *sse(chunk("stop"), done=True)], "server"),
        ([*half, b'data: {"choices": "none"}\n\n', *sse(chunk("stop"))], "server"),
        ([*half, b"data: null\n\n", *sse(chunk("stop"))], "Half of an ans"),
        ([*half, b'data: {"choices": [{"delta": "x"}]}\n\n', *sse(chunk("stop"))], "server"),
        ([*half, b'data: {"choices": [{"delta": {"content": 1}}]}\n\n', *sse(chunk("stop"))], "server"),
        ([*half, b"data: " + b"[" * 100_000 + b"\n\n", *sse(chunk("stop"))], "server"),
        ([*half, 'data: {"id": "ä"}\n\n'.encode("latin-1"), *sse(chunk("stop"))], "server"),
        ([*half, *sse(whole({"content": "another"})), *sse(chunk("stop"))], "server"),
        ([*half, httpx.ReadError("reset")], "server"),
        ([*half, httpx.ReadTimeout("The read operation timed out")], "timeout"),
        ([*half, *sse(chunk("stop")), httpx.RemoteProtocolError("cut")], "Half of an ans"),
    ]
    assert wrong_outcomes(cases) == {}


def endless(piece: bytes, began: bytes = b"") -> tuple[Iterator[bytes], Iterator[int]]:
    """A body without an end, and a count of its pieces."""
    counted = count()
    return (began if at == 0 else piece for at in counted), counted


def test_a_line_and_an_answer_have_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    mega = b"x" * 2**20
    for began in (b'data: {"a": "', b"", b'{"a": "', b'{\n"a": "'):
        body, pieces = endless(mega, began)
        assert read(body).outcome == "server", began
        assert next(pieces) <= MOST_LINE / len(mega) + 2, began
    for line in (b"data: " + mega + b"\n", b"[\n" + mega[:-2] + b"\n"):
        body, pieces = endless(line, line[:2] if line.startswith(b"[") else b"")
        assert read(body).outcome == "server"
        assert next(pieces) <= MOST_LINE / len(mega) + 2
    monkeypatch.setattr(answer_bytes, "MOST_ANSWER", 2**16)
    for line in (b": ping\n", sse(chunk(content="x"))[0], b"{}\n"):
        body, pieces = endless(line * (2**15 // len(line)))
        assert read(body).outcome == "server", line[:40]
        assert next(pieces) <= 5, line[:40]
    monkeypatch.setattr(raw_chunks, "MOST_CHUNKS", 10)
    assert read([*sse(*[chunk(content="x")] * 9, chunk("stop"), done=True)]).outcome == "x" * 9
    assert read([*sse(*[chunk(content="x")] * 10, chunk("stop"), done=True)]).outcome == "server"
    body, pieces = endless(mega)
    frames = Said(headers={"Content-Type": "application/vnd.amazon.eventstream"}, pieces=body)  # type: ignore[arg-type]
    assert read(frames, BEDROCK.provider("http://127.0.0.1:9")).outcome == "server"
    assert next(pieces) <= 5


LITELLMS = {"azure/m": "", "azure_ai/m": "", "cohere_chat/m": "", "databricks/m": "", "huggingface/m/n": "/v1"}
LITELLMS |= {"nvidia_nim/m": "/v1", "perplexity/m": "", "snowflake/m": ""}
"""Providers that take no client of ours, and the path of their address: litellm or a package creates one."""
COHERES_TYPES = pytest.mark.filterwarnings("ignore:.*ReadOnly:UserWarning")


@COHERES_TYPES
def test_an_answer_that_litellm_receives_by_its_own_client_is_read_here_and_has_a_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = raw(ch(None), chunk(content="a\u2028b [DONE]"), chunk("stop"))
    said = replace(said, headers={**said.headers, "Connection": "close"})
    for model in LITELLMS.keys() - {"cohere_chat/m"}:
        with called_at(model, said) as (called, _):
            assert called.ask().message.content == "a\u2028b [DONE]", model
    monkeypatch.setattr(answer_bytes, "MOST_LINE", 2**16)
    monkeypatch.setattr(answer_bytes, "MOST_ANSWER", 2**18)
    monkeypatch.setattr(raw_chunks, "MOST_CHUNKS", 9)
    long, many, line, one = "longer than 0 MiB", "more than 9 pieces", b"x" * 2**15, cohere("x")
    cases = [(model, b'data: {"a": "', line, long) for model in LITELLMS]
    cases += [("azure/m", b"\n", b": ping\n" * 2**12, long), ("azure/m", b"{", line, long)]
    cases += [("cohere_chat/m", one, one, many), ("databricks/m", *sse(chunk(content="x")) * 2, many)]
    for model, began, repeated, why in cases:
        with called_at(model, endless_answer(began, repeated)) as (called, endpoint):
            failed = refusal_of(called)
            assert endpoint.left.wait(60), (model, began)
        assert (failed.error_class, failed.detail.endswith(why)) == ("server", True), (model, began, failed.detail)


@COHERES_TYPES
def test_a_call_that_is_interrupted_closes_the_connection_of_litellms_own_client() -> None:
    for model, began in (("azure/m", b"data: "), ("cohere_chat/m", cohere("x"))):
        with called_at(model, endless_answer(began)) as (called, endpoint):
            called.controls.check = partial(preempt, endpoint)  # type: ignore[method-assign]
            with pytest.raises(Preempted):
                called.ask()
            assert endpoint.left.wait(60), (model, began)


def endless_answer(began: bytes, repeated: bytes = b"") -> Said:
    """An answer that never ends."""
    return Said(pieces=(began,), headers={"Content-Type": "text/event-stream"}, ends="open", repeat=repeated)


@contextmanager
def called_at(model: str, said: Said) -> Iterator[tuple[Called, Endpoint]]:
    """A model that litellm calls by a client of its own, at an endpoint that gives this answer."""
    with Endpoint(said) as endpoint:
        provider = OrderProvider(name="p", model=model, api_key="k", api_base=endpoint.url + LITELLMS[model])
        called = Called("", provider, limits=ONCE)
        yield called, endpoint
        called.model.close()


def preempt(endpoint: Endpoint) -> None:
    if endpoint.staying.is_set():
        raise Preempted


def cohere(text: str) -> bytes:
    """A piece of text as Cohere streams it."""
    return json.dumps({"is_finished": False, "event_type": "text-generation", "text": text}).encode() + b"\n"


def test_of_a_refusal_only_the_beginning_is_read() -> None:
    refusal = Said(status=400, pieces=(b'{"error": "maximum context length is 10 tokens',), ends="open")
    with calling(VLLM, replace(refusal, repeat=b"x" * MOST_REFUSAL)) as (called, endpoint):
        assert refusal_of(called).error_class == "context_overflow"
        assert endpoint.left.wait(60)


def test_litellm_still_has_the_faults_that_are_worked_around() -> None:
    """One that is gone needs no work-around any more: see the beginning of drone/model/answer_bytes.py."""
    from litellm.litellm_core_utils.core_helpers import _FINISH_REASON_MAP
    from litellm.llms.openai.chat.gpt_transformation import OpenAIChatCompletionStreamingHandler as Handler

    def read_by_litellm(*lines: str) -> list[Any]:
        return list(Handler(iter(lines), sync_stream=True))

    (said,) = read_by_litellm(f"data: {json.dumps(chunk(content='[DONE]'))}")
    assert said["text"] == ""
    cut = httpx.Response(200, content=raw(chunk(content="a\u2028b"), done=False).content).iter_lines()
    assert [each["text"] for each in read_by_litellm(*cut)] == ["", ""]
    with pytest.raises(TypeError):
        read_by_litellm(f"data: {json.dumps(ch(None))}")
    (said,) = read_by_litellm(json.dumps(whole({"content": WELL})))
    assert said.choices[0].delta.content is None
    (said,) = read_by_litellm(f"data: {json.dumps(chunk(reasoning=None, reasoning_content='Hm.'))}")
    assert not getattr(said.choices[0].delta, "reasoning_content", None)
    assert dict(_FINISH_REASON_MAP)["network_error"] == dict(_FINISH_REASON_MAP)["error"] == "stop"
