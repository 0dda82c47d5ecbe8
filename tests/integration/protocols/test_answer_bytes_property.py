"""Whatever bytes an endpoint makes of an answer: it is what the model meant, or an error that is retried."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drone.model.errors import RETRIED, ErrorClass
from tests.support.endpoints import Doc
from tests.support.protocols.in_process import Read, read

pytestmark = [pytest.mark.usefixtures("warm_model"), pytest.mark.timeout(1800)]

EXAMPLES = settings.default.max_examples * 4
"""120, and 4,000 in `make long`."""
TOKENS = ["data:", "data: [DONE]\n\n", "event: error\n", "[DONE]", "null", "error", "a", *' :"\\{}[\n\r']
TOKENS += ["\r\n", "\n\n", "\u2028", "\u2029", "\x85", "\x0b", "\x1c", "\ufeff", "\u00e9", "\U0001f600"]
USED = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
FOREIGN = ("error", "network_error", "abort", "insufficient_system_resource", "new_word")
texts = st.lists(st.sampled_from(TOKENS), max_size=8).map("".join)


@dataclass(frozen=True)
class Meant:
    """What the model meant to answer; `finish` is how the endpoint says that it ended."""

    text: str
    thinking: str
    calls: tuple[tuple[str, str], ...]
    finish: str

    @property
    def is_whole(self) -> bool:
        return self.finish not in {*FOREIGN, ""}


arguments = st.builds(lambda text, ascii: json.dumps({"text": text}, ensure_ascii=ascii), texts, st.booleans())
answers = st.builds(
    Meant,
    text=texts,
    thinking=texts,
    calls=st.lists(st.tuples(st.sampled_from(["echo", "shell"]), arguments), max_size=2).map(tuple),
    finish=st.sampled_from(["stop", "tool_calls", "length", "stop", "end_turn", *FOREIGN, ""]),
)


@st.composite
def parts(draw: st.DrawFn, text: str) -> list[str]:
    """A text in pieces, of which some may be empty."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@st.composite
def deltas(draw: st.DrawFn, meant: Meant) -> list[Doc]:
    found: list[Doc] = [{"role": "assistant", "content": ""}] * draw(st.integers(0, 1))
    thought = draw(st.sampled_from(["reasoning", "reasoning_content"]))
    found += [{thought: part} for part in draw(parts(meant.thinking))]
    found += [{"content": part} for part in draw(parts(meant.text))]
    for index, (name, arguments) in enumerate(meant.calls):
        first, *rest = draw(parts(arguments))
        call = {"index": index, "id": f"call_{index}", "type": "function"}
        found.append({"tool_calls": [{**call, "function": {"name": name, "arguments": first or None}}]})
        found += [{"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in rest]
    empty = [dict.fromkeys(draw(st.sets(st.sampled_from(["role", "content", "tool_calls", "refusal", "reasoning"]))))]
    return [{**draw(st.sampled_from([{}, *empty])), **each} for each in found]


@st.composite
def documents(draw: st.DrawFn, meant: Meant) -> list[Doc]:
    """The chunks of an answer, or the answer as one document, with all that endpoints add and leave out."""
    if draw(st.integers(0, 9)) == 0:
        calls = [{"id": f"call_{n}", "function": {"name": c[0], "arguments": c[1]}} for n, c in enumerate(meant.calls)]
        message = {"role": "assistant", "content": meant.text, "reasoning": meant.thinking, "tool_calls": calls or None}
        return [frame(draw, [{"message": message, "finish_reason": meant.finish or None}])]
    found = [frame(draw, [{"index": 0, "delta": delta, "finish_reason": None}]) for delta in draw(deltas(meant))]
    finish = {"index": 0, "delta": draw(st.sampled_from([{}, None])), "finish_reason": meant.finish or None}
    if draw(st.booleans()) and found:
        found[-1]["choices"][0]["finish_reason"] = meant.finish or None
    else:
        found.append(frame(draw, [finish]))
    more = [frame(draw, choices) for choices in draw(NOTHINGS)] + draw(st.sampled_from([[], [{}], [{"usage": USED}]]))
    more += [{**frame(draw, choices), "usage": USED} for choices in draw(UNUSED)]
    for each in more:
        found.insert(draw(st.integers(0, len(found))), each)
    return found


ANOTHER = {"index": 1, "delta": {"content": "another answer"}, "finish_reason": "stop"}
NO_CHOICES: list[Any] = [None, [], [None], [{}], [{"delta": None}], [ANOTHER]]
NOTHINGS = st.lists(st.sampled_from(NO_CHOICES), max_size=3)
UNUSED = st.lists(st.sampled_from([None, [], [{"delta": None}]]), max_size=2)
FIELDS: Doc = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "usage": None, "error": None}
FRAMES: list[Doc] = [{**FIELDS, "choices": 0}, {"choices": 0}, {"choices": 0, "x": {"y": [1]}}]
FRAMES += [{"choices": 0, **FIELDS, name: None} for name in FIELDS]


def frame(draw: st.DrawFn, choices: Any) -> Doc:
    return {**draw(st.sampled_from(FRAMES)), "choices": choices}


ENDS = st.sampled_from([["\n"], ["\r\n"], ["\r"], ["\r\n", "\n", "\n", "\r", "\r"]])
MARKS = st.sampled_from(["", "", "\ufeff"])
INDENTS = st.sampled_from([None, 1])
BESIDE = ([], [], [": ping", ""], [":"], ["retry: 5", "id: 1"], ["event: message"], ["event"], ["unknown: x", "data"])
NOISE = st.tuples(st.sampled_from(BESIDE), st.sampled_from(["", " "]), st.sampled_from([[], [""], *BESIDE[4:7]]))
LAST = st.sampled_from([["data: [DONE]", ""], ["data:[DONE]"], [": bye", ""], []])


@st.composite
def bodies(draw: st.DrawFn, said: Sequence[Doc]) -> bytes:
    """These documents as server-sent events, or the only one as it is."""
    escaped, ends, mark = draw(st.booleans()), draw(ENDS), draw(MARKS)
    if len(said) == 1 and draw(st.booleans()):
        return (mark + json.dumps(said[0], indent=draw(INDENTS), ensure_ascii=escaped)).encode()
    lines: list[str] = []
    for each in said:
        before, space, after = draw(NOISE)
        lines += [*before, f"data:{space}{json.dumps(each, ensure_ascii=escaped)}", *after, ""]
    lines += draw(LAST)
    return (mark + "".join(line + end for line, end in zip(lines, cycle(ends), strict=False))).encode()


@st.composite
def pieces(draw: st.DrawFn, body: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=8)))
    return [body[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]


def assert_meant(found: Read, meant: Meant) -> None:
    assert found.failure is None
    assert found.message is not None
    calls = tuple((call.name, call.arguments) for call in found.message.tool_calls)
    assert (found.message.content, found.message.thinking, calls) == (meant.text, meant.thinking, meant.calls)


def assert_retried(found: Read) -> None:
    assert found.failure is not None
    assert found.failure.error_class in RETRIED - {ErrorClass.CONTEXT_OVERFLOW}


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_an_answer_in_any_bytes_is_what_the_model_meant_or_a_retried_error(data: st.DataObject) -> None:
    meant = data.draw(answers)
    said = data.draw(documents(meant))
    if error := data.draw(st.sampled_from([None, None, None, "no", {"message": "no", "code": 429}])):
        said.insert(data.draw(st.integers(0, len(said))), {"error": error})
    body = data.draw(bodies(said))
    kept = data.draw(st.one_of(st.just(len(body)), st.integers(0, len(body))))
    cut = [httpx.RemoteProtocolError("cut")] if data.draw(st.booleans()) and kept < len(body) else []
    found = read([*data.draw(pieces(body[:kept])), *cut])
    if found.failure is None and kept < len(body) and meant.is_whole:
        # Before an error that was cut off, all of the answer may have arrived.
        assert_meant(found, meant)
    elif kept == len(body) and meant.is_whole and not error:
        assert_meant(found, meant)
    else:
        assert_retried(found)
