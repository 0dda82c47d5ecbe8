"""Where the product's logs go while a test runs parts of it in its own process: to the log that pytest captures.

structlog's own default is stdout, where a line of a background thread would stand in what a command prints.
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
