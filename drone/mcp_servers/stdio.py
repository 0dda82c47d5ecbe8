"""Talks with an MCP server over its stdin and stdout: one JSON message a line, whatever else it may print.

The SDK's own transport holds a line of any length in memory, passes the drone's environment on and knows no sandbox;
so this one implements the SDK's protocol for transports instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from drone.mcp_servers.server_log import ServerLog
from drone.processes.ending import end_command
from drone.processes.reaping import reap_adopted
from drone.processes.receipt import Ended
from drone.sandbox.protocol import CommandLine

LARGEST_MESSAGE = 8 * 1024 * 1024
"""Bytes of one message; a server that sends a longer one is ended."""
MOST_NOISE = 1_000_000
"""Bytes on stdout, without a message among them, until a server is given up; a line counts as `_LINE` bytes more."""
_LINE = 1_000
GRACE = 2.0
"""Seconds to go by itself after its stdin is closed, and again after TERM (MCP, lifecycle: shutdown)."""
_READ = 64 * 1024
_EXIT_SECONDS = 0.5
_ANSWER = re.compile(rb'"id"\s*:\s*(\d{1,9})')
_HEAD = 200
"""Bytes in which a message says what it is."""

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


class StdioServer:
    """One process of a server. `ended` is told why, as soon as nothing more can come from it."""

    def __init__(self, line: CommandLine, log: ServerLog, ended: Callable[[str], None]) -> None:
        self._line = line
        self._log = log
        self._ended = ended
        self._noise = 0
        self._all_noted = False
        self.note = ""
        self.ours = True
        self.counts = Ended()
        """What was there when it was ended."""

    @contextlib.asynccontextmanager
    async def transport(self) -> AsyncIterator[Streams]:
        """Start the process and give the streams of its messages; at the end nothing of it is left.

        Raises OSError where it cannot be started.
        """
        process = await self._start()
        incoming, receive = anyio.create_memory_object_stream[Incoming](0)
        send, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(part)
            for part in (self._read(process, incoming), self._write(process, outgoing), self._note(process))
        ]
        try:
            yield receive, send
        finally:
            with anyio.CancelScope(shield=True):
                receive.close()
                await self._end(process)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for stream in (incoming, send, outgoing):
                    stream.close()

    async def _start(self) -> asyncio.subprocess.Process:
        self._log.begin()
        return await asyncio.create_subprocess_exec(
            *self._line.arguments,
            cwd=self._line.directory,
            env=dict(self._line.environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=LARGEST_MESSAGE,
        )

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Ask it to go by closing its stdin, then end what is left of it and of all that it started."""
        loop, stdin = asyncio.get_running_loop(), process.stdin

        def ask() -> None:
            if stdin is not None:
                loop.call_soon_threadsafe(stdin.close)

        # In a thread, as it waits: the loop meanwhile empties the pipes, which a server may need to come to its end.
        self.counts = await asyncio.to_thread(end_command, process.pid, self._line.mark, grace=GRACE, ask=ask)
        if stdin is not None:
            stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE)
        await asyncio.to_thread(reap_adopted)

    async def _read(self, process: asyncio.subprocess.Process, incoming: MemoryObjectSendStream[Incoming]) -> None:
        stdout = process.stdout
        if stdout is None:
            raise ValueError("the server was started without a pipe")
        # Where the other end of the stream is closed we are ending it ourselves.
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            why = await self._pass_on(stdout, incoming)
            self._ended(why or await self._how_it_went(process))
        incoming.close()
        while await stdout.read(_READ):
            pass  # it must not hang on a full pipe on its way to the end

    async def _pass_on(self, stdout: asyncio.StreamReader, incoming: MemoryObjectSendStream[Incoming]) -> str:
        """Read messages as long as there are any; returns what the server did wrong, empty where it just ended."""
        try:
            while self._noise <= MOST_NOISE:
                await self._deliver(await stdout.readuntil(b"\n"), incoming)
        except asyncio.IncompleteReadError as error:
            self._log.note(error.partial)
            return ""
        except asyncio.LimitOverrunError:
            return f"sent a message of over {LARGEST_MESSAGE:,} bytes"
        return "printed too much on stdout that is no MCP message"

    async def _deliver(self, line: bytes, incoming: MemoryObjectSendStream[Incoming]) -> None:
        message = _message(line)
        if message is not None:
            self._noise = 0
            await incoming.send(SessionMessage(message))
        elif line.strip():
            self._noise += len(line) + _LINE
            self._log.note(b"[on stdout] " + line)

    async def _write(
        self, process: asyncio.subprocess.Process, outgoing: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        stdin = process.stdin
        if stdin is None:
            raise ValueError("the server was started without a pipe")
        with contextlib.suppress(ConnectionError):  # the reader will say how it ended
            async for each in outgoing:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(text.encode("utf-8", "replace") + b"\n")
                await stdin.drain()

    async def _note(self, process: asyncio.subprocess.Process) -> None:
        while process.stderr is not None and (chunk := await process.stderr.read(_READ)):
            self._log.write(chunk)
        self._all_noted = True

    async def _how_it_went(self, process: asyncio.subprocess.Process) -> str:
        """Its end may be seen on the pipe before its exit code and its last words are known."""
        deadline = asyncio.get_running_loop().time() + _EXIT_SECONDS
        while (process.returncode is None or not self._all_noted) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        how = "closed its stdout" if process.returncode is None else f"ended with exit code {process.returncode}"
        return f"{how}{self._log.last_words()}"


def _message(line: bytes) -> JSONRPCMessage | None:
    """The message in a line, or that it cannot be read; None where it is no message at all.

    Invalid UTF-8 and halves of surrogate pairs are replaced: one bad file name in a long answer shall not lose it.
    """
    if not line.lstrip().startswith(b"{"):
        return None
    text = line.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    with contextlib.suppress(ValueError, RecursionError):
        mended = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace")
        return jsonrpc_message_adapter.validate_json(mended, by_name=False)
    answered = _ANSWER.search(line[:_HEAD])
    if answered is None or b'"jsonrpc"' not in line[:_HEAD]:
        return None
    # Whoever waits for this answer shall not wait until the time is up.
    unreadable = ErrorData(code=PARSE_ERROR, message="it is not JSON that can be read")
    return JSONRPCError(jsonrpc="2.0", id=int(answered[1]), error=unreadable)
