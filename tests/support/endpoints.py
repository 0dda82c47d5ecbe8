"""A model endpoint that sends exactly the bytes a test gives it: answers and errors as real providers word them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Doc = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """One response; a body that is a document is sent as JSON."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Asked:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: Doc


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: in many tests the client disconnects on purpose."""


class Endpoint:
    """Sends the responses one after another, the last one repeatedly, for the duration of the `with` block."""

    def __init__(self, *said: Said) -> None:
        self.said = list(said)
        self.asked: list[Asked] = []
        self._http = _HTTPServer(("127.0.0.1", 0), _exchange(self))
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
    events: list[Doc] = [{"type": "message_start", "message": {**started, "usage": tokens}}]
    for index, block in enumerate(blocks):
        empty, deltas = _in_pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events.extend({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 7}})
    events.append({"type": "message_stop"})
    return anthropic_events(*events)


def anthropic_events(*events: Doc) -> Said:
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Said(body.encode(), headers={"Content-Type": "text/event-stream"})


def _in_pieces(block: Doc) -> tuple[Doc, list[Doc]]:
    kind = block["type"]
    if kind == "thinking":
        half = len(block["thinking"]) // 2
        halves = block["thinking"][:half], block["thinking"][half:]
        pieces: list[Doc] = [{"type": "thinking_delta", "thinking": text} for text in halves]
        return {"type": kind, "thinking": "", "signature": ""}, [
            *pieces,
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if kind == "text":
        return {"type": kind, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if kind == "tool_use":
        arguments = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        return {**block, "input": {}}, [arguments]
    return block, []


def _exchange(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Exchange(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            said = endpoint.next(Asked(self.path, dict(self.headers.items()), json.loads(raw)))
            self.send_response(said.status)
            headers = {"Content-Type": "application/json", "Content-Length": str(len(said.content)), **said.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said.content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Exchange
