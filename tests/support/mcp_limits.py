"""The time limit of single calls of MCP servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.mcp_servers import Tools


@contextmanager
def limited(tools: Tools, seconds: float) -> Iterator[None]:
    """Calls in this block have this time limit; the start of the servers and other calls keep theirs."""
    running = tools.servers._running
    assert running is not None
    usual = [connection.config for connection in running._connections]
    for connection, config in zip(running._connections, usual, strict=True):
        connection.config = config.model_copy(update={"timeout": seconds})
    try:
        yield
    finally:
        for connection, config in zip(running._connections, usual, strict=True):
            connection.config = config
