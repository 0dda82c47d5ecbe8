"""A model endpoint that answers at once, and remembers when it was asked: a client's time between two calls is its own.

    python -m tests.bench.side_by_side.instant_endpoint --tool shell --steps 100 [--command "echo hi"]

It prints its address. Each of the first `--steps` answers calls the tool with the command and a number; the next one
ends the run in the way that the tool's agent expects, and then it begins again for the next run. `GET /times` returns
the moments as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

Doc = dict[str, Any]
ENDS: dict[str, Doc | None] = {
    "shell": None,
    "bash": {"name": "bash", "arguments": {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}},
    "terminal": {"name": "finish", "arguments": {"message": "Done."}},
}
"""The last answer's call, by the name of the tool that the agent uses for commands; None: a message without calls."""
_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
_BASE = {"id": "instant", "created": 0, "model": "instant"}


@dataclass
class InstantEndpoint:
    """Answers every chat completion with the next call."""

    tool: str
    steps: int
    command: str
    asked: list[float] = field(default_factory=list)
    """When each request had arrived as a whole, in seconds of the system's monotonic clock."""
    answered: list[float] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until the client closes it."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                body = await reader.readexactly(_length(head))
                writer.write(self._response(head, body))
                await writer.drain()
                if head.startswith(b"POST"):
                    self.answered.append(time.monotonic())
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has closed the connection
        finally:
            writer.close()

    def _response(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"GET"):
            return _framed("application/json", json.dumps({"asked": self.asked, "answered": self.answered}))
        self.asked.append(time.monotonic())
        message = self._message(len(self.asked))
        reason = "tool_calls" if "tool_calls" in message else "stop"
        # The member stands beside the messages, at the beginning or the end of what may be a megabyte of history.
        if b'"stream":true' in body.replace(b'"stream": true', b'"stream":true'):
            deltas = {"delta": message, "finish_reason": None}, {"delta": {}, "finish_reason": reason}
            chunks = [*({"choices": [{"index": 0, **each}]} for each in deltas), {"choices": [], "usage": _USAGE}]
            lines = [json.dumps(_BASE | {"object": "chat.completion.chunk"} | chunk) for chunk in chunks]
            return _framed("text/event-stream", "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]))
        choice = {"index": 0, "finish_reason": reason, "message": message}
        whole = {"object": "chat.completion", "choices": [choice], "usage": _USAGE}
        return _framed("application/json", json.dumps(_BASE | whole))

    def _message(self, number: int) -> Doc:
        call = {"name": self.tool, "arguments": {"command": f"{self.command} {number}"}}
        of_run = (number - 1) % (self.steps + 1)
        asked = call if of_run < self.steps else ENDS[self.tool]
        if asked is None:
            return {"role": "assistant", "content": "Done."}
        function = {"name": asked["name"], "arguments": json.dumps(asked["arguments"])}
        calls = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
        return {"role": "assistant", "content": "Let me look.", "tool_calls": calls}


def _framed(kind: str, text: str) -> bytes:
    content = text.encode()
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def _main(endpoint: InstantEndpoint) -> None:
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0, limit=1 << 26)
    port = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"http://127.0.0.1:{port}/v1\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", choices=sorted(ENDS), required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--command", default="echo hi")
    given = parser.parse_args()
    asyncio.run(_main(InstantEndpoint(given.tool, given.steps, given.command)))
