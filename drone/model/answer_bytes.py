"""Reads the bytes of an endpoint's answer, and gives litellm only what its readers understand.

They lose parts of an answer without a word: a line that contains "[DONE]" anywhere
(https://github.com/BerriAI/litellm/issues/31562), text with U+2028, U+2029 or U+0085, where httpx's `iter_lines` ends a
line (https://github.com/BerriAI/litellm/issues/30471), and a document in place of a stream. Null choices are an error
to them, and nothing is too long. So the body of a response is read here and written anew: each document as one line of
ASCII, and each chunk of chat completions in one form (`chat_chunks`). See docs/decisions/0027-answers-read-here.md;
tests/integration/protocols/test_answer_bytes.py fails when a fault of litellm is gone.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import httpx

from drone.model.chat_chunks import ChatChunks, Document
from drone.model.errors import AnswerInterrupted
from drone.model.raw_chunks import RawChunks

MOST_LINE = 16 * 1024**2
"""Bytes of a line, or of a document of several lines: longer than any answer (`answer_assembly.LONGEST`) in escapes."""
MOST_ANSWER = 128 * 1024**2
"""Bytes of an answer: 128,000 tokens in chunks of 400 bytes are 51 million."""
MOST_REFUSAL = 64 * 1024
"""Bytes that are read of a response with an error status."""
DRAIN_S = 0.5
"""Seconds to wait for the end of a response after the end of the answer: its connection can then be used again."""
_BOM = b"\xef\xbb\xbf"
_DONE = b"[DONE]"


def rewrite(response: httpx.Response, raw: RawChunks) -> None:
    """Replace the body of a response that has just begun: `raw` hears each document, and litellm reads it rewritten."""
    received = httpx.Response(response.status_code, headers=response.headers, stream=response.stream)
    pieces = received.iter_bytes()
    chat = response.request.url.path.endswith("/chat/completions")
    if not response.is_success:
        body = _beginning(pieces)
    elif (chat or raw.known) and _streams_documents(response):
        raw.read_here = True
        body = chain(rewritten(pieces, raw, chat=chat), _drained(pieces, raw, response))
    else:
        body = _counted(pieces, raw)
    # What is passed on is decoded, and has another length.
    for name in ("Content-Encoding", "Content-Length"):
        response.headers.pop(name, None)
    response.stream = _Body(body, received)


def _streams_documents(response: httpx.Response) -> bool:
    """Whether an answer is a stream of JSON. Of some models of OpenAI and Amazon, litellm makes one of a document."""
    # Within a string, the second quotation mark would follow a backslash. Google and Amazon have it in the path.
    request = response.request
    asked_for = re.search(rb'"stream":\s?true', request.content) or "stream" in request.url.path.lower()
    return bool(asked_for) and "amazon.eventstream" not in response.headers.get("Content-Type", "")


def shut(response: httpx.Response) -> None:
    """End a connection that another thread reads: only closing it would wait until that thread has read something."""
    stream = response.extensions.get("network_stream")
    connection = stream.get_extra_info("socket") if stream is not None else None
    if connection is not None:
        with suppress(OSError):  # the endpoint was first
            connection.shutdown(socket.SHUT_RDWR)


class _Body(httpx.SyncByteStream):
    def __init__(self, body: Iterator[bytes], received: httpx.Response) -> None:
        self._body = body
        self._received = received

    def __iter__(self) -> Iterator[bytes]:
        return self._body

    def close(self) -> None:
        self._received.close()


def rewritten(pieces: Iterable[bytes], raw: RawChunks, *, chat: bool) -> Iterator[bytes]:
    """Yield an answer's documents for litellm; `raw` knows afterwards whether it is complete.

    `chat`: they are chat completions. A connection that breaks after the finish reason took nothing of the answer with
    it; otherwise its error propagates.
    """
    form = ChatChunks() if chat else None
    try:
        for name, received, bare in _documents(_lines(_not_too_many(pieces), raw), raw):
            for document in [received] if form else _as_events(received):
                raw.note(document)
                passed_on = form.chunk(name, document) if form else document
                if passed_on:
                    # What has a type is an event of Anthropic's, also if it came bare.
                    yield _line(passed_on, bare=bare and not form and "type" not in document)
    except AnswerInterrupted as error:
        raw.problem = str(error)
    except httpx.HTTPError:
        if not raw.reason:
            raise
    if form and raw.reason:
        yield _line(form.end(raw.reason))


def _line(document: Document, *, bare: bool = False) -> bytes:
    # Within JSON, these characters can only be part of a string.
    text = json.dumps(document).replace("[DONE]", "\\u005bDONE]")
    return (f"{text}\n" if bare else f"data: {text}\n\n").encode()


def _drained(pieces: Iterator[bytes], raw: RawChunks, response: httpx.Response) -> Iterator[bytes]:
    """Read what follows `[DONE]`, and yield nothing; an endpoint that leaves its response open is not waited for."""
    if raw.done:
        timer = threading.Timer(DRAIN_S, shut, (response,))
        timer.start()
        try:
            with suppress(httpx.HTTPError, AnswerInterrupted):
                for _ in _not_too_many(pieces):
                    pass
        finally:
            timer.cancel()
    yield from ()


def _beginning(pieces: Iterable[bytes]) -> Iterator[bytes]:
    left = MOST_REFUSAL
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _counted(pieces: Iterable[bytes], raw: RawChunks) -> Iterator[bytes]:
    """What is not read here as it is: botocore reads Amazon's frames, and litellm a document or another protocol."""
    try:
        yield from _not_too_many(pieces)
    except AnswerInterrupted as error:
        # It propagates: litellm would report what it could not read of it, and search it for secrets, for minutes.
        raw.problem = str(error)
        raise


def _not_too_many(pieces: Iterable[bytes]) -> Iterator[bytes]:
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > MOST_ANSWER:
            raise AnswerInterrupted(f"it is longer than {MOST_ANSWER // 1024**2} MiB")
        yield piece


def _lines(pieces: Iterable[bytes], raw: RawChunks) -> Iterator[bytes]:
    """Yield lines without their ends, which are LF, CRLF or CR. Each line is a sign of life."""
    line, after_cr, mark = bytearray(), False, _BOM
    for piece in pieces:
        # A CR ends its line at once: nothing may follow for a while. If an LF follows, it belongs to it.
        rest = piece[1:] if after_cr and piece.startswith(b"\n") else piece
        after_cr = piece.endswith(b"\r") if piece else after_cr
        for part in rest.splitlines(keepends=True):
            line += part
            _limit(len(line))
            if part.endswith((b"\n", b"\r")):
                raw.heard += 1
                yield bytes(line).rstrip(b"\r\n").removeprefix(mark)
                mark = b""
                line.clear()
    if line:
        yield bytes(line).removeprefix(mark)


def _limit(length: int) -> None:
    if length > MOST_LINE:
        raise AnswerInterrupted(f"a line of it is longer than {MOST_LINE // 1024**2} MiB")


def _documents(lines: Iterator[bytes], raw: RawChunks) -> Iterator[tuple[bytes, Document, bool]]:
    """Yield each event's name and document, and whether the document came bare; ends at `data: [DONE]`.

    The first line tells whether these are server-sent events, or JSON: one document, or one in each line.
    """
    first = next((line for line in lines if line.strip()), b"")
    bare = first.lstrip().startswith((b"{", b"["))
    values = ((b"", value) for value in _bare(first, lines)) if bare else _events(chain([first], lines), raw)
    for name, value in values:
        if isinstance(value, dict):
            yield name, value, bare
        elif value is not None:  # a null says nothing
            raise AnswerInterrupted("it has an event that is no JSON object")


def _bare(first: bytes, lines: Iterator[bytes]) -> Iterator[Any]:
    """Yield documents of one line each, as of Ollama, or one document: an answer, or Gemini's list of chunks."""
    if not _is_json(first):
        document = bytearray(first)
        for line in lines:
            document += b"\n" + line
            _limit(len(document))
        first = bytes(document)
    value = _parsed(first)
    yield from value if isinstance(value, list) else [value]
    for line in lines:
        if line.strip():
            if not _is_json(line) and not any(lines):
                return  # the last one was cut off
            yield _parsed(line)


def _events(lines: Iterable[bytes], raw: RawChunks) -> Iterator[tuple[bytes, Any]]:
    """Yield name and document of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""
    name, data = b"", bytearray()
    for line in lines:
        field, value = _field(line)
        # Some endpoints leave out the empty line between two events.
        if field in {b"", _DONE} or (field == b"data" and b"\n" not in data and _is_json(data)):
            if data.strip():
                yield name, _parsed(data)
            name, data = b"", bytearray()
        if field == _DONE:
            raw.done = True
            return
        if field == b"event":
            name = value
        if field == b"data":
            data += (b"\n" if data else b"") + value
            _limit(len(data))
    if _is_json(data):  # otherwise it was cut off
        yield name, _parsed(data)


def _field(line: bytes) -> tuple[bytes, bytes]:
    """The name of a line's field, and its value; an empty line has no name, and the end of the stream has its own."""
    if line.startswith((b"{", b"[")):
        return b"data", line  # some gateways send their own errors so
    field, _, value = line.partition(b":")
    if field == b"data" and value.strip() == _DONE:
        return _DONE, b""
    return (field or b":") if line else b"", value.removeprefix(b" ")


def _parsed(text: bytes | bytearray) -> Any:
    try:
        return json.loads(text.decode())
    except (ValueError, RecursionError):
        raise AnswerInterrupted("it has a piece that is not valid JSON") from None


def _is_json(text: bytes | bytearray) -> bool:
    try:
        _parsed(text)
    except AnswerInterrupted:
        return False
    return True


# --- a whole message of Anthropic's, which some gateways send in place of a stream --------------

_FRAME = {"id", "type", "role", "model"}
_EMPTY: dict[str, Document] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}
"""How blocks begin whose content follows in deltas; others begin with all that they have."""


def _as_events(document: Document) -> Iterator[Document]:
    """Yield a document as litellm is to read it: as it is, unless it is a whole message.

    Raises AnswerInterrupted for a message that cannot be understood.
    """
    if document.get("type") != "message":
        yield document
        return
    blocks, usage = document.get("content"), document.get("usage")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise AnswerInterrupted("it has a content that is no list of blocks")
    used = {"usage": usage} if isinstance(usage, dict) else {}
    frame = {name: value for name, value in document.items() if name in _FRAME}
    yield {"type": "message_start", "message": {**frame, **used, "content": [], "stop_reason": None}}
    for index, block in enumerate(blocks):
        start = {**block, **_EMPTY.get(str(block.get("type")), {})}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {name: document.get(name) for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": delta, **used}
    yield {"type": "message_stop"}


def _deltas(block: Document) -> Iterator[Document]:
    match block.get("type"):
        case "text":
            yield {"type": "text_delta", "text": _text_of(block, "text")}
        case "thinking":
            yield {"type": "thinking_delta", "thinking": _text_of(block, "thinking")}
            if block.get("signature"):
                yield {"type": "signature_delta", "signature": _text_of(block, "signature")}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": json.dumps(block.get("input") or {})}


def _text_of(block: Document, name: str) -> str:
    text = block.get(name) or ""
    if not isinstance(text, str):
        raise AnswerInterrupted("it has a block whose content is no text")
    return text
