"""Sends the product's logs to pytest's captured log while a test runs parts of the product in its own process.

structlog's default is stdout, where a background thread's line would end up in a command's output.
"""

from __future__ import annotations

import structlog


def quiet_logs() -> None:
    """Send structlog's lines to the standard library's logging."""
    structlog.reset_defaults()
    structlog.configure(
        [structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()],
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
