"""A model endpoint that sends exactly the bytes a test gives it: answers and errors as real providers word them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Doc = dict[str, Any]
Ending = Literal["whole", "cut", "open"]
"""After the body: the response is complete; the connection breaks; it stays open, and `repeat` is sent forever."""


@dataclass(frozen=True)
class Said:
    """One response; a body that is a document is sent as JSON. `pieces` are sent one by one instead of a body."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: tuple[bytes, ...] = ()
    ends: Ending = "whole"
    repeat: bytes = b""

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Asked:
    """One request; `raw` is its body as it was sent."""

    path: str
    headers: Mapping[str, str]
    body: Doc
    raw: bytes = b""


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        super().__init__(("127.0.0.1", 0), _Exchange)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: in many tests the client disconnects on purpose."""


class Endpoint:
    """Sends the responses one after another, the last one repeatedly, for the duration of the `with` block."""

    def __init__(self, *said: Said) -> None:
        self.said = list(said)
        self.asked: list[Asked] = []
        self.ending = threading.Event()
        self.staying = threading.Event()
        """Set when a response that stays open has been sent up to there."""
        self.left = threading.Event()
        """Set when a client has closed the connection of a response that stayed open."""
        self._http = _HTTPServer(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def bodies(self) -> list[Doc]:
        return [asked.body for asked in self.asked]

    def next(self, asked: Asked) -> Said:
        self.asked.append(asked)
        return self.said.pop(0) if len(self.said) > 1 else self.said[0]

    def __enter__(self) -> Endpoint:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def refused(status: int, body: Any, **headers: str) -> Said:
    return Said(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


def streamed(*chunks: Any, done: bool = True) -> Said:
    """An answer in the format of chat completions, as the given chunks, the last of them with the finish reason."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    body = "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()
    return Said(body, headers={"Content-Type": "text/event-stream"})


def sent_in_pieces(pieces: Iterable[bytes], kind: str = "text/event-stream", **headers: str) -> Said:
    """A streamed response: each piece is sent by itself."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Said(pieces=tuple(pieces), headers={"Content-Type": kind, **named})


def chunk(finish: str | None = None, **delta: Any) -> Doc:
    """One chunk of chat completions."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def text_answer(text: str, finish: str = "stop") -> Said:
    return streamed(chunk(role="assistant", content=text), chunk(finish))


def call_answer(*calls: Doc, finish: str = "tool_calls", **delta: Any) -> Said:
    """An answer with these tool calls, each in one chunk."""
    return streamed(chunk(role="assistant", tool_calls=list(calls), **delta), chunk(finish))


def call(name: str | None, arguments: Any, call_id: str | None = "call_1", index: int | None = 0) -> Doc:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def anthropic_answer(*blocks: Doc, stop: str = "end_turn", usage: Doc | None = None) -> Said:
    """An answer as Anthropic streams it: each block starts, arrives in one or two pieces, and stops."""
    started = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": []}
    tokens = {"input_tokens": 10, "output_tokens": 1, **(usage or {})}
    ended = {"stop_reason": stop, "stop_sequence": None}
    return anthropic_events(
        {"type": "message_start", "message": {**started, "usage": tokens}},
        *(event for index, block in enumerate(blocks) for event in anthropic_block(index, block)),
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )


def anthropic_events(*events: Doc) -> Said:
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Said(body.encode(), headers={"Content-Type": "text/event-stream"})


def anthropic_block(index: int, block: Doc) -> Iterator[Doc]:
    """The events of one block; the arguments of a call with `partial` arrive as this text."""
    start, deltas = _in_deltas(block)
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _in_deltas(block: Doc) -> tuple[Doc, list[Doc]]:
    match block["type"]:
        case "thinking":
            deltas: list[Doc] = [
                {"type": "thinking_delta", "thinking": half} for half in halves(block["thinking"]) if half
            ]
            signed = [{"type": "signature_delta", "signature": block["signature"]}] if block["signature"] else []
            return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, *signed]
        case "text":
            return {"type": "text", "text": ""}, [
                {"type": "text_delta", "text": half} for half in halves(block["text"])
            ]
        case "tool_use":
            text = block.get("partial") or json.dumps(block["input"])
            partial = [{"type": "input_json_delta", "partial_json": part} for part in ("", *halves(text))]
            return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}, partial
    return block, []


def halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _HTTPServer

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        said = self.server.endpoint.next(Asked(self.path, dict(self.headers.items()), json.loads(raw), raw))
        size = {"Transfer-Encoding": "chunked"} if said.pieces else {"Content-Length": str(len(said.content))}
        self.send_response(said.status)
        for name, value in {"Content-Type": "application/json", **size, **said.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if said.pieces:
            self._stream(said)
        else:
            self.wfile.write(said.content)

    def _stream(self, said: Said) -> None:
        for piece in said.pieces:
            self._send(piece)
        if said.ends == "whole":
            self.wfile.write(b"0\r\n\r\n")
            return
        self.close_connection = True
        if said.ends == "open":
            self._stay(said.repeat)

    def _send(self, piece: bytes) -> None:
        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    def _stay(self, repeat: bytes) -> None:
        """Stay until the client leaves, or the endpoint ends."""
        self.connection.settimeout(0.02)
        self.server.endpoint.staying.set()
        while not self.server.endpoint.ending.is_set():
            try:
                if repeat:
                    self._send(repeat)
                gone = not self.connection.recv(1)
            except TimeoutError:
                continue
            except OSError:
                gone = True
            if gone:
                self.server.endpoint.left.set()
                return

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
