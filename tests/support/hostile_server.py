"""A control plane that cannot be trusted: terminal codes and hidden characters are in every text of its answers."""

from __future__ import annotations

import json
import re
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from control_plane.contract.declarations.operation import every_operation
from control_plane.contract.documents.orders import OrderDocument
from shared.events import Body

EVIL = (
    "evil\x1b]0;title\x07\x1b]52;c;ZWNobw==\x1b\\\x1b[2J\x1b[1;1H\x1b[8mconcealed\r\x08\x0b\x0c\x1c\x7f\x85\x90\x9b31m"
    "\u2028\u202e\u2066\u200e\u061c\u200b\u200c\u200d\u2060\ufeff\u00ad\U000e0041words"
)
WHEN = "2026-01-01T00:00:00Z"
_WITHOUT = {"parent", "context", "inner"}
"""Fields that name something of their own kind: a tree of texts that are all the same would have no end."""


def hostile(annotation: Any, name: str = "") -> Any:
    """A value of this type, as JSON, with EVIL as every text, and one entry in every list and mapping."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is str or annotation is Any:
        return EVIL
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _object(annotation)
    if origin in {Union, types.UnionType}:
        return None if name in _WITHOUT else hostile(arguments[0], name)
    if origin is Literal:
        return arguments[0]
    if origin in {list, tuple, set, frozenset}:
        return [hostile(arguments[0])]
    if origin is dict or getattr(origin, "__name__", "") == "Mapping":
        return {EVIL: hostile(arguments[1])}
    if origin is not None:
        return hostile(arguments[0], name)
    return _scalar(annotation)


def steps() -> list[dict[str, Any]]:
    """One step of each kind."""
    kinds = get_args(get_args(Body)[0])
    bodies = [{**_object(kind), **_ADDED.get(kind.model_fields["kind"].default, {})} for kind in kinds]
    known = {"run": EVIL, "at": WHEN, "undone": False, "drone": EVIL, "from_step": 1, "from_attempt": 1}
    return [{"seq": number, **known, "from_drone": EVIL, **body} for number, body in enumerate(bodies, 1)]


def _object(model: type[BaseModel]) -> dict[str, Any]:
    document = {
        name: hostile(info.annotation, name) if model not in get_args(info.annotation) else []
        for name, info in model.model_fields.items()
    }
    loose = {name: made() for name, made in _LOOSE.items() if name in document and _is_open(document[name])}
    # A task that is not done would be followed forever.
    return {**document, **loose, **({"status": "done"} if "timeline" in document else {})}


def _is_open(value: Any) -> bool:
    return value in ({EVIL: EVIL}, [{EVIL: EVIL}], {EVIL: 1})


def _scalar(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return next(iter(annotation)).value
    return {datetime: WHEN, bool: True, int: 1, float: 1.0, bytes: EVIL, dict: {EVIL: EVIL}, list: [EVIL]}.get(
        annotation
    )


_LOOSE: dict[str, Callable[[], Any]] = {
    "steps": lambda: [{"number": 1, **step} for step in steps()],
    "pull_request": lambda: dict.fromkeys(("state", "url", "why", "head", "title", "order"), EVIL),
    "limits": lambda: {EVIL: 1},
    "tasks": lambda: {"open": 1, "in_progress": 1, "done": 1},
    "todo": lambda: [{"text": EVIL, "status": "pending"}],
    "receipt": lambda: {"unreachable_since": EVIL},
    "doing": lambda: [{"order_id": EVIL, "in_words": EVIL}],
}
"""What is in the fields that the declarations leave open."""
_ADDED: dict[str, dict[str, Any]] = {
    "tool_call": {"tool": "shell", "arguments": {"command": EVIL, EVIL: EVIL}},
    "child": {"step": {"kind": "assistant", "text": EVIL}},
    "user": {"source": "steer"},
    "verify": {"passed": False},
    "tool_result": {"return_code": 1},
}


class _Answers(BaseHTTPRequestHandler):
    refuses = False
    routes: ClassVar = [
        (each.method, re.compile(r"/api/v1" + re.sub(r"\{\w+\}", "[^/]+", each.path)), each.answer)
        for each in every_operation()
    ]

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        if self.refuses:
            self._send(409, {name: EVIL for name in ("code", "title", "detail", "why", "next", "help")})
        elif "/orders/" in path and path.endswith("/events"):
            self._send(200, self._events(), "text/event-stream")
        else:
            self._send(200, self._answer(path))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the server's names

    def _answer(self, path: str) -> Any:
        if path.endswith("/doctor"):
            return [dict.fromkeys(("code", "what", "found", "fix"), EVIL) | {"state": "WARN"}]
        if path.endswith("/trajectory"):
            return {"messages": [EVIL]}
        if path.endswith("/patch"):
            return EVIL.encode()
        found = [answer for method, route, answer in self.routes if method == self.command and route.fullmatch(path)]
        return hostile(found[0]) if found else EVIL.encode()

    def _events(self) -> bytes:
        pieces = [{"kind": kind, "text": EVIL, "offset": None} for kind in ("thinking", "text", "output", "tool_call")]
        order = _object(OrderDocument)
        events = [("order", order), *(("delta", each) for each in pieces), *(("step", each) for each in steps())]
        return b"".join(
            f"event: {name}\ndata: {json.dumps(data)}\n\n".encode() for name, data in [*events, ("end", order)]
        )

    def _send(self, status: int, answer: Any, kind: str = "application/json") -> None:
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@contextmanager
def hostile_server(*, refuses: bool = False) -> Iterator[str]:
    """The address of such a server; with `refuses`, it answers every request with a refusal."""
    answers = type("Answers", (_Answers,), {"refuses": refuses})
    server = ThreadingHTTPServer(("127.0.0.1", 0), answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
