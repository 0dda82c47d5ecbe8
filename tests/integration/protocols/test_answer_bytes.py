"""A model's answer is taken whole or not at all, whatever bytes an endpoint makes of it."""

from __future__ import annotations

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
from shared.outcome import ExitStatus
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
from tests.support.protocols.in_process import CHAT, Read, read
from tests.support.protocols.played import ONCE, Ran, calling, refusal_of
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


def wrong_outcomes(cases: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """What came of answers of which something else was meant, for each reader of LiteLLM."""
    return {
        f"{provider.model} {said!r}": found
        for said, meant in cases
        for provider in CHAT
        if (found := read(said, provider).outcome) != meant
    }


def test_done_within_an_answer_is_text() -> None:
    half = [{"index": 0, "function": {"arguments": part}} for part in ('one [DONE]\\n"', "}")]
    arguments = '{"path": "todo.md", "content": "- [DONE] parser\\n"}'
    cases: list[tuple[Said, Any]] = [
        (call_answer(call("echo", arguments)), ("", ("echo", arguments))),
        (
            streamed(chunk(content="One. "), chunk(content="Two [DONE]. "), chunk(content="Three."), chunk("stop")),
            "One. Two [DONE]. Three.",
        ),
        (
            streamed(
                chunk(tool_calls=[call("echo", '{"t":"')]), *(chunk(tool_calls=[h]) for h in half), chunk("tool_calls")
            ),
            ("", ("echo", '{"t":"one [DONE]\\n"}')),
        ),
        *(
            (text_answer(text), text)
            for text in ("[DONE]", "data: [DONE]", "\n\ndata: [DONE]\n\n", "[DONE][DONE]", "[D")
        ),
        (streamed(chunk(content="[DO"), chunk(content="NE]"), chunk("stop")), "[DONE]"),
        (call_answer(call("[DONE]", "{}")), ("", ("[DONE]", "{}"))),
        (streamed(chunk(reasoning_content="[DONE]"), chunk(content=WELL), chunk("stop")), WELL),
        (Said(whole({"content": "[DONE]"})), "[DONE]"),
    ]
    assert wrong_outcomes(cases) == {}


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
    apart = "\u2028", "\u2029", "\x85", "\u2028\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\ufeff", "\x7f"
    for c in apart:
        arguments = f'{{"path":"i.js","content":"a{c}b\\n"}}'
        # JSON allows these characters unescaped, except for control characters, which become escapes.
        calls = raw(chunk(tool_calls=[call("echo", arguments)]), chunk("tool_calls"))
        escaped = arguments.replace(c, json.dumps(c)[1:-1]) if c < " " else arguments
        assert read(calls).outcome == ("", ("echo", escaped)), repr(c)
        for said in (
            raw(chunk(content="One, "), chunk(content=f"two{c}, "), chunk(content="three."), chunk("stop")),
            Said(json.dumps(whole({"content": f"One, two{c}, three."}), ensure_ascii=False).encode()),
        ):
            assert read(said).outcome == f"One, two{c}, three.", repr(c)
    for protocol in (each for each in PROTOCOLS if each is not BEDROCK):
        said = protocol.answer(Answer("a\u2028b\x85[DONE]c", calls=(SpokenCall("a1b2c3d4e"),)))
        body = b"".join(said.pieces).replace(b"\\u2028", "\u2028".encode()).replace(b"\\u0085", "\x85".encode())
        # Its parts may be in two pieces, and each is decoded by itself.
        for end in (b"\n", b"\r\n", b"\r"):
            ended = body.replace(b"\n", end)
            for pieces in ([ended], [ended[at : at + 1] for at in range(len(ended))], [b"\xef\xbb\xbf", ended]):
                found = read(replace(said, pieces=tuple(pieces)), protocol.provider("http://127.0.0.1:9"))
                assert found.outcome == ("a\u2028b\x85[DONE]c", ("echo", '{"text": "x"}')), (protocol, end, len(pieces))


def test_every_provider_that_takes_our_client_has_its_bytes_read_here() -> None:
    said = raw(ch(None), chunk(content="a\u2028b [DONE]"), chunk("stop"))
    providers = [OrderProvider(name="p", model=f"{each}/m", api_key="k") for each in _OWN_PATHS - OTHER_PROTOCOLS]
    found = {provider.model: read(said, provider).outcome for provider in providers}
    assert found == dict.fromkeys(found, "a\u2028b [DONE]")
    assert len(found) > 8


OTHER_PROTOCOLS = {"anthropic", "bedrock", "gemini", "ollama", "ollama_chat"}


def test_nulls_and_what_is_missing_take_nothing_of_an_answer() -> None:
    said, stop = chunk(content=WELL), chunk("stop")
    empty = [None, [], [None], [{}], [{"delta": None}], [{"index": 0, "delta": {}, "finish_reason": None}]]
    odd: list[Doc] = [*map(ch, empty), ch(None, usage=USED), ch(None, usage=None), {}, {"id": None}, {"usage": USED}]
    odd += [ch([{"delta": dict.fromkeys(("role", "content", "tool_calls", "refusal", "function_call", "reasoning"))}])]
    odd += [{**chunk(content=""), name: None} for name in ("id", "object", "created", "model", "usage")]
    odd += [ch([{"index": 1, "delta": {"content": "another answer"}, "finish_reason": "stop"}])]
    ends = [ch([{"index": 0, "delta": None, "finish_reason": "stop"}]), ch([{"finish_reason": "stop"}])]
    ends += [ch([{"delta": {"content": None}, "finish_reason": "stop"}], usage={"prompt_tokens": None})]
    cases = [(streamed(*chunks), WELL) for each in odd for chunks in ((each, said, stop), (said, each, stop, each))]
    cases += [(streamed(said, each), WELL) for each in ends]
    ended = {"index": 0, "delta": {"content": WELL}, "finish_reason": "stop"}
    cases += [(streamed(ch([ended])), WELL), (streamed(ch([{**ended, "index": None}])), WELL)]
    cases += [(streamed(chunk("null", content=WELL), chunk("", content=""), stop), WELL)]
    assert wrong_outcomes(cases) == {}


def test_a_whole_answer_in_place_of_a_stream_is_read() -> None:
    asked = {"id": "call_1", "type": "function", "function": {"name": "echo", "arguments": '{"text": "x"}'}}
    called = ("echo", '{"text": "x"}')
    answer = {"role": "assistant", "content": WELL}
    usual, calls = (
        whole(answer),
        whole({"content": None, "tool_calls": [asked, {**asked, "id": "call_2"}]}, "tool_calls"),
    )
    # Perplexity's chunks repeat the whole answer so far.
    repeating = [ch([{"delta": {"content": each}, "message": answer}]) for each in ("All ", "is well.")]
    as_object = {**asked, "function": {"name": "echo", "arguments": {"text": "x"}}}
    cases: list[tuple[Any, Any]] = [
        (Said(usual), WELL),
        (Said(json.dumps(usual, indent=2).encode()), WELL),
        (Said(b"\n\xef\xbb\xbf"[1:] + json.dumps(usual, indent=1).encode()), WELL),
        (Said(b"\r\n" + json.dumps(usual).encode() + b"\r\n\r\n"), WELL),
        (streamed(usual), WELL),
        (streamed(usual, done=False), WELL),
        (Said(calls), ("", called, called)),
        (streamed(calls), ("", called, called)),
        (Said(whole({"tool_calls": [as_object]}, "tool_calls")), ("", called)),
        (Said(whole({"content": [{"type": "text", "text": "All "}, {"type": "text", "text": "is well."}]})), WELL),
        (Said(whole({"reasoning": "Hm.", "content": WELL})), WELL),
        (streamed(*repeating, chunk("stop")), WELL),
        (Said(whole(answer, None)), "server"),
        (Said(whole(answer, "error")), "server"),
        (Said(json.dumps(usual).encode()[:-3]), "server"),
        (Said(json.dumps(usual, indent=2).encode()[:-3]), "server"),
        (Said({"error": {"message": "Slow down: rate limit reached", "code": 429}}), "rate_limit"),
        (Said({"error": "The model is overloaded."}), "overloaded"),
        (Said({"object": "error", "message": "maximum context length is 10 tokens", "code": 400}), "context_overflow"),
        (Said(b"<html>hello</html>"), "server"),
        (Said(b""), "server"),
    ]
    assert wrong_outcomes(cases) == {}
    found = read(Said(whole(answer, "length", usage=USED)))
    assert (found.outcome, found.call.finish_reason, found.call.usage_reported) == (WELL, "length", True)
    assert found.call.usage.prompt_tokens == 1


def test_a_whole_message_of_anthropics_in_place_of_a_stream_is_read() -> None:
    said = {"type": "text", "text": "Line\u2028with [DONE] and \ud83d\ude00."}
    thought, hidden = anthropic.thinking("Hm.", "c2lnbmVk"), anthropic.redacted("b64")
    used = {"input_tokens": 5, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 7}
    answers = [[said], [said, said], [thought, said], [hidden, said], [uses(1)], [thought, said, uses(1), uses(2)]]
    provider, differ = ANTHROPIC.provider("http://127.0.0.1:9"), {}
    counted = Counted(10, 7, read=3, written=2)
    for blocks in answers:
        stop = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
        for stopped in (stop, "max_tokens"):
            meant = read(anthropic.stream([in_stream(each) for each in blocks], stopped, counted), provider)
            document = message_of(blocks, stopped, usage=used)
            for body in (Said(document), Said(json.dumps(document, indent=1).encode()), Said(sse(document)[0])):
                found = read(body, provider)
                assert meant.message is not None
                if (found.message, seen(found)) != (meant.message, seen(meant)):
                    differ[str(body)] = found, meant
    assert differ == {}


def test_a_message_of_anthropics_that_is_not_whole_is_no_answer() -> None:
    text = {"type": "text", "text": WELL}
    whole_text = json.dumps(message_of([text], "end_turn")).encode()
    wrong = {"error": {"type": "rate_limit_error", "message": "Slow down: rate limit reached"}, "type": "error"}
    cases: list[tuple[Any, Any]] = [
        (whole_text, WELL),
        (json.dumps(message_of([text], "end_turn", usage=None)).encode(), WELL),
        (whole_text[:-3], "server"),
        *((json.dumps(message_of([text], stop)).encode(), "server") for stop in (None, "error", "pause_turn", 1)),
        *(
            (json.dumps(message_of(content, "end_turn")).encode(), "server")
            for content in (None, "text", [None], ["x"])
        ),
        (json.dumps(message_of([{"type": "text", "text": 5}], "end_turn")).encode(), "server"),
        (json.dumps(message_of([{"type": "text", "text": None}, text], "end_turn")).encode(), WELL),
        (json.dumps(message_of([text, {"type": "something_new"}], "end_turn")).encode(), WELL),
        (json.dumps(wrong).encode(), "rate_limit"),
    ]
    provider = ANTHROPIC.provider("http://127.0.0.1:9")
    found = [(body, read(Said(body), provider).outcome) for body, _ in cases]
    assert found == cases


def message_of(blocks: Any, stop: Any, **more: Any) -> Doc:
    """A message that was not streamed."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": blocks}
    return {**message, "stop_reason": stop, "stop_sequence": None, **more}


def uses(number: int) -> Doc:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "echo", "input": {"text": "x" * number}}


def in_stream(block: Doc) -> Doc:
    """A block as `anthropic.stream` takes it."""
    return {**block, "partial": json.dumps(block["input"])} if block["type"] == "tool_use" else block


def seen(found: Read) -> Any:
    usage = found.call.usage
    return found.call.finish_reason, found.call.usage_reported, usage and (usage.prompt_tokens, usage.completion_tokens)


def test_a_document_that_was_asked_for_is_read_by_litellm() -> None:
    """Some models of OpenAI have no stream; and where one was asked for, their document is no answer."""
    output = [openai_responses.message(WELL)]
    said = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": output,
    }
    said |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None}
    streams = OPENAI_RESPONSES.provider("http://127.0.0.1:9")
    found = [read(Said(said), streams.model_copy(update={"model": model})).outcome for model in PRO]
    assert (found, read(Said(said), streams).outcome) == ([WELL] * len(PRO), "server")


PRO = ("openai/o1-pro", "openai/gpt-5-pro")
OWN = {
    "stop": "stop STOP end_turn stop_sequence COMPLETE eos eos_token end normal",
    "tool_calls": "tool_calls tool_use function_call TOOL_CALL",
    "length": "length max_tokens MAX_TOKENS model_length max_output_tokens model_context_window_exceeded",
    "content_filter": "content_filter SAFETY sensitive refusal guardrail_intervened ERROR_TOXIC",
}
FOREIGN = (
    "error ERROR network_error insufficient_system_resource abort cancelled time_limit rate_limit USER_CANCEL "
    "malformed_function_call MALFORMED_FUNCTION_CALL malformed_tool_use unexpected_tool_call pause_turn "
    "incomplete xyz stopped"
)


def test_only_a_finish_that_is_the_models_own_makes_an_answer() -> None:
    found = {word: read(text_answer(WELL, word)).call.finish_reason for words in OWN.values() for word in words.split()}
    assert found == {word: reason for reason, words in OWN.items() for word in words.split()}
    half = '{"command":"ec'
    cases: list[tuple[Said, Any]] = [
        (text_answer("I will now edit the fi", word), "server") for word in FOREIGN.split()
    ]
    cases += [(call_answer(call("echo", half), finish=word), "server") for word in FOREIGN.split()]
    cases += [(streamed(chunk(content=WELL), done=done), "server") for done in (True, False)]
    # A finish reason in each chunk tells nothing, but the end of the stream does.
    each = [chunk("stop", content=part) for part in ("All ", "is ", "well.")]
    cases += [(streamed(*each), WELL), (streamed(*each, done=False), "server")]
    cases += [
        (streamed(chunk("error", content=WELL), chunk("stop")), "server"),
        (text_answer(WELL, "timeout"), "timeout"),
    ]
    assert wrong_outcomes(cases) == {}
    said = read(text_answer("Half", "network\n_error " + "x" * 100)).failure
    assert said is not None
    assert said.interrupted.startswith("its finish reason is `network _error xxx")
    assert len(said.interrupted) < 100


def test_the_finish_of_every_protocol_is_judged() -> None:
    text, url = [{"type": "text", "text": "Half"}], "http://127.0.0.1:9"
    said = {"content": {"parts": [{"text": "Half"}]}}
    odd = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "NEW_WORD", "FINISH_REASON_UNSPECIFIED")
    of_gemini = [{"candidates": [{**said, "finishReason": each}]} for each in odd]
    ollama = {"model": "m", "message": {"content": "Half"}, "done": True}
    of_ollama = [{**ollama, "done_reason": each} for each in ("load", "new_word")]
    of_bedrock = [bedrock.stream([{"text": "Half"}], each, Counted()) for each in ("malformed_tool_use", "new_word")]
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


def test_a_run_whose_answers_are_all_interrupted_fails_and_does_nothing_of_them() -> None:
    half = call_answer(call("echo", '{"text": "x"}'), finish="error"), text_answer("I will now edit the fi", "abort")
    for said in half:
        ran = Ran(VLLM.provider, said)
        assert (ran.outcome.exit_status, ran.outcome.response, ran.toolbox.ran) == (ExitStatus.MODEL_ERROR, "", [])
        assert len(ran.bodies) == Limits().max_retries + 1


def test_people_are_told_what_interrupted_an_answer() -> None:
    cases = {
        "finish reason is `network_error`": text_answer("I will now edit the fi", "network_error"),
        "no finish reason": text_answer("Half", ""),
        "not valid JSON": Said(b"data: <oops>\n\n", headers={"Content-Type": "text/event-stream"}),
    }
    for why, said in cases.items():
        with calling(VLLM, said, limits=Limits(max_retries=1, base_delay=0)) as (called, endpoint):
            failed = refusal_of(called)
            assert (failed.error_class, why in failed.what, len(endpoint.asked)) == ("server", True, 2), failed.what
            (retry,) = called.recorder.bodies
            assert why in retry.error  # type: ignore[union-attr]


def test_an_error_in_the_middle_is_one_of_its_class() -> None:
    half = sse(chunk(content="Half of an ans"))
    cases = [
        ([*half, *sse({"error": {"message": "no", "code": 429}})], "rate_limit"),
        ([*half, *sse({"error": {"message": "no", "code": "503"}})], "overloaded"),
        ([*half, *sse({"error": {"message": "no", "code": "context_length_exceeded"}})], "context_overflow"),
        ([*half, *sse({"error": "Upstream request timeout"})], "timeout"),
        ([*half, *sse({"error": {"message": None}}, done=True)], "server"),
        ([*half, *sse({"object": "error", "message": "overloaded", "code": None})], "overloaded"),
        ([*half, b"event: error\n", *sse({"message": "no", "code": 504})], "timeout"),
        ([*half, b'{"error": {"message": "no", "code": 429}}\n'], "rate_limit"),
        ([*half, *sse({"error": {"message": "no", "code": 502}, **chunk("error", content="")})], "server"),
        ([*half, *sse(chunk("stop"), {"error": {"message": "no", "code": 529}}, done=True)], "overloaded"),
        ([*half, *sse({"error": None, **chunk(content="wer")}, chunk("stop"))], "Half of an answer"),
        ([*half, b"data: Internal Server Error\n\n", *sse(chunk("stop"), done=True)], "server"),
        ([*half, b"Internal Server Error"], "server"),
        ([*half, b'data: {"choices": "none"}\n\n', *sse(chunk("stop"))], "server"),
        ([*half, b"data: 1\n\n", *sse(chunk("stop"))], "server"),
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
    for began in (b"data: ", b'data: {"a": "', b"", b'{"a": "', b": ", b'{\n"a": "'):
        body, pieces = endless(mega, began)
        assert read(body).outcome == "server", began
        assert next(pieces) <= MOST_LINE / len(mega) + 2, began
    for line in (b"data: " + mega + b"\n", b"[\n" + mega[:-2] + b"\n"):
        body, pieces = endless(line, line[:2] if line.startswith(b"[") else b"")
        assert read(body).outcome == "server"
        assert next(pieces) <= MOST_LINE / len(mega) + 2
    monkeypatch.setattr(answer_bytes, "MOST_ANSWER", 2**16)
    for line in (b": ping\n", b"\n", sse(chunk(content=""))[0], sse(chunk(content="x"))[0], b"{}\n"):
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
def test_an_answer_that_litellm_receives_by_its_own_client_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_bytes, "MOST_LINE", 2**16)
    monkeypatch.setattr(answer_bytes, "MOST_ANSWER", 2**18)
    monkeypatch.setattr(raw_chunks, "MOST_CHUNKS", 9)
    said, one = sse(chunk(content="x"))[0], cohere("x")
    long, many, line = "longer than 0 MiB", "more than 9 pieces", b"x" * 2**15
    cases = [(model, b'data: {"a": "', line, long) for model in LITELLMS]
    cases += [
        ("azure/m", said, said, many),
        ("azure/m", b"\n", b": ping\n" * 2**12, long),
        ("azure/m", b"{", line, long),
    ]
    cases += [("cohere_chat/m", one, one, many), ("azure/m", b"x", line, long)]
    cases += [("huggingface/m/n", said, said, many), ("databricks/m", said, said, many)]
    wrong = {}
    for model, began, repeated, why in cases:
        with endless_at(model, began, repeated) as (called, endpoint):
            failed = refusal_of(called)
            left = endpoint.left.wait(60)
        if not (failed.error_class == "server" and failed.detail.endswith(why) and left):
            wrong[model, began] = failed.detail, left
    assert wrong == {}


@COHERES_TYPES
def test_a_call_that_is_interrupted_closes_the_connection_of_litellms_own_client() -> None:
    for model, began in (("azure/m", b": ping\n"), ("azure/m", b"data: "), ("cohere_chat/m", cohere("x"))):
        with endless_at(model, began, b"") as (called, endpoint):
            called.controls.check = partial(preempt, endpoint)  # type: ignore[method-assign]
            with pytest.raises(Preempted):
                called.ask()
            assert endpoint.left.wait(60), (model, began)


def preempt(endpoint: Endpoint) -> None:
    if endpoint.staying.is_set():
        raise Preempted


@contextmanager
def endless_at(model: str, began: bytes, repeated: bytes) -> Iterator[tuple[Called, Endpoint]]:
    """A model at an endpoint that never ends its answer."""
    headers = {"Content-Type": "text/event-stream"}
    with Endpoint(Said(pieces=(began,), headers=headers, ends="open", repeat=repeated)) as endpoint:
        provider = OrderProvider(name="p", model=model, api_key="k", api_base=endpoint.url + LITELLMS[model])
        called = Called("", provider, limits=ONCE)
        yield called, endpoint
        called.model.close()


def cohere(text: str) -> bytes:
    """A piece of text as Cohere streams it."""
    return json.dumps({"is_finished": False, "event_type": "text-generation", "text": text}).encode() + b"\n"


def test_what_litellms_own_client_receives_is_read_here() -> None:
    said = raw(ch(None), chunk(content="a\u2028b [DONE]"), chunk("stop"))
    said, found = replace(said, headers={**said.headers, "Connection": "close"}), {}
    for model in LITELLMS.keys() - {"cohere_chat/m"}:
        with Endpoint(said) as endpoint:
            provider = OrderProvider(name="p", model=model, api_key="k", api_base=endpoint.url + LITELLMS[model])
            called = Called("", provider, limits=ONCE)
            found[model] = called.ask().message.content
            called.model.close()
    assert found == dict.fromkeys(found, "a\u2028b [DONE]")


def test_of_a_refusal_only_the_beginning_is_read() -> None:
    refusal = Said(status=400, pieces=(b'{"error": "maximum context length is 10 tokens',), ends="open")
    with calling(VLLM, replace(refusal, repeat=b"x" * MOST_REFUSAL)) as (called, endpoint):
        assert refusal_of(called).error_class == "context_overflow"
        assert endpoint.left.wait(60)


def test_compressed_answers_are_read() -> None:
    import gzip

    said = text_answer(WELL)
    zipped = replace(said, body=gzip.compress(said.content), headers={**said.headers, "Content-Encoding": "gzip"})
    assert read(zipped).outcome == WELL


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
