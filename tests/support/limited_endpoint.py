"""A model endpoint that enforces a limit of requests, and names it as real providers do, or not at all."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests.support.endpoints import anthropic_answer, text_answer

Style = Literal["openai", "anthropic", "retry-after", "none"]
"""What its answers say: the limits in OpenAI's or Anthropic's headers, the pause after a 429 alone, or nothing."""


@dataclass(frozen=True)
class Arrival:
    """One request."""

    at: float
    accepted: bool


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: a client may have gone."""


@dataclass
class LimitedEndpoint:
    """Accepts at most `limit` requests in any `window` seconds, a strict sliding window; open in a `with` block."""

    limit: int
    window: float = 60.0
    style: Style = "retry-after"
    takes_s: float = 0.05
    """How long it takes for an answer."""
    named: int = 0
    """The requests per minute that it names; 0: what it enforces."""
    arrivals: list[Arrival] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._accepted: deque[float] = deque()
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), _exchange(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        base = f"http://127.0.0.1:{self._http.server_address[1]}"
        return base if self.style == "anthropic" else f"{base}/v1"

    @property
    def per_minute(self) -> int:
        """What it allows."""
        return self.named or round(self.limit * 60 / self.window)

    @property
    def model(self) -> str:
        return "anthropic/claude-limited" if self.style == "anthropic" else "openai/limited"

    def __enter__(self) -> LimitedEndpoint:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def counted(self, start: float, end: float) -> tuple[int, int]:
        """How many requests it accepted and refused between two times."""
        seen = [each.accepted for each in list(self.arrivals) if start <= each.at < end]
        return seen.count(True), seen.count(False)

    def arrive(self) -> tuple[bool, Mapping[str, str]]:
        """Whether a request that arrives now is accepted, and the headers of its answer."""
        with self._lock:
            now = time.monotonic()
            while self._accepted and self._accepted[0] <= now - self.window:
                self._accepted.popleft()
            accepted = len(self._accepted) < self.limit
            if accepted:
                self._accepted.append(now)
            self.arrivals.append(Arrival(now, accepted))
            free_in = 0.0
            if not accepted:
                free_in = self._accepted[len(self._accepted) - self.limit] + self.window - now
            return accepted, self._headers(accepted, max(0, self.per_minute - len(self._accepted)), free_in)

    def _headers(self, accepted: bool, remaining: int, free_in: float) -> Mapping[str, str]:
        headers = {} if accepted or self.style == "none" else {"retry-after": f"{free_in:.2f}"}
        reset_s = 60 * (1 - remaining / self.per_minute)
        if self.style == "openai":
            headers["x-ratelimit-limit-requests"] = str(self.per_minute)
            headers["x-ratelimit-remaining-requests"] = str(remaining)
            headers["x-ratelimit-reset-requests"] = f"{reset_s:.3f}s"
        if self.style == "anthropic":
            reset = datetime.now(UTC) + timedelta(seconds=reset_s)
            headers["anthropic-ratelimit-requests-limit"] = str(self.per_minute)
            headers["anthropic-ratelimit-requests-remaining"] = str(remaining)
            headers["anthropic-ratelimit-requests-reset"] = reset.isoformat()
        return headers


def _exchange(endpoint: LimitedEndpoint) -> type[BaseHTTPRequestHandler]:
    anthropic = anthropic_answer({"type": "text", "text": "done"})
    text = anthropic if endpoint.style == "anthropic" else text_answer("done")
    refusal = json.dumps({"error": {"type": "rate_limit_error", "message": "Rate limit reached"}}).encode()

    class Exchange(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            accepted, headers = endpoint.arrive()
            if accepted:
                time.sleep(endpoint.takes_s)
            content = text.content if accepted else refusal
            self.send_response(200 if accepted else 429)
            kind = "text/event-stream" if accepted else "application/json"
            for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Exchange
