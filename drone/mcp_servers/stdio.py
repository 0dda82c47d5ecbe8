"""Communicates with an MCP server over stdin and stdout: one JSON message per line; other output is tolerated.

The SDK's transport keeps lines of any length in memory, passes on the drone's environment and does not support the
sandbox; so this one implements the SDK's protocol for transports instead.
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
"""Bytes on stdout without a message, after which a server is given up; each line counts `_LINE` bytes extra."""
_LINE = 1_000
GRACE = 2.0
"""Seconds to exit after its stdin is closed, and again after TERM (MCP, lifecycle: shutdown)."""
_READ = 64 * 1024
_EXIT_SECONDS = 3.0
"""How long a server that closed its stdout has to exit; on a busy machine an interpreter needs more than one second."""
_ANSWER = re.compile(rb'"id"\s*:\s*(\d{1,9})')
_HEAD = 200
"""Bytes at the start of a message that identify it."""

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


class StdioServer:
    """One process of a server. `ended` is called with the reason as soon as the server can no longer send anything."""

    def __init__(self, line: CommandLine, log: ServerLog, ended: Callable[[str], None]) -> None:
        self._line = line
        self._log = log
        self._ended = ended
        self._noise = 0
        self._all_noted = False
        self.note = ""
        self.ours = True
        self.counts = Ended()
        """The processes that existed when it was ended."""

    @contextlib.asynccontextmanager
    async def transport(self) -> AsyncIterator[Streams]:
        """Start the process and yield its message streams; at the end, no process of it is left.

        Raises OSError if it cannot be started.
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
        """Ask it to exit by closing its stdin, then end its remaining processes, including all that it started."""
        loop, stdin = asyncio.get_running_loop(), process.stdin

        def ask() -> None:
            if stdin is not None:
                loop.call_soon_threadsafe(stdin.close)

        # In a thread, because it waits: meanwhile the loop empties the pipes, which a server may need in order to exit.
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
        # If the other end of the stream is closed, we are ending the server ourselves.
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            why = await self._pass_on(stdout, incoming)
            self._ended(why or await self._how_it_went(process))
        incoming.close()
        while await stdout.read(_READ):
            pass  # it must not block on a full pipe while it exits

    async def _pass_on(self, stdout: asyncio.StreamReader, incoming: MemoryObjectSendStream[Incoming]) -> str:
        """Read messages until they end; return the server's violation, empty if it just ended."""
        try:
            while self._noise <= MOST_NOISE:
                await self._deliver(await stdout.readuntil(b"\n"), incoming)
        except asyncio.IncompleteReadError as error:
            self._log.note(error.partial)
            return ""
        except asyncio.LimitOverrunError:
            return f"sent a message larger than {LARGEST_MESSAGE:,} bytes"
        return "printed too much on stdout that is not an MCP message"

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
        """Describe the server's end; the pipe may close before its exit code and its last output are known."""
        deadline = asyncio.get_running_loop().time() + _EXIT_SECONDS
        while (process.returncode is None or not self._all_noted) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        how = "closed its stdout" if process.returncode is None else f"ended with exit code {process.returncode}"
        return f"{how}{self._log.last_words()}"


def _message(line: bytes) -> JSONRPCMessage | None:
    """Return the message in a line, or an error that it cannot be read; None if the line is not a message.

    Invalid UTF-8 and lone surrogates are replaced: one bad file name must not lose a long answer.
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
    # The caller that waits for this answer must not wait until its time is up.
    unreadable = ErrorData(code=PARSE_ERROR, message="it is not JSON that can be parsed")
    return JSONRPCError(jsonrpc="2.0", id=int(answered[1]), error=unreadable)
