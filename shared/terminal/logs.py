"""Logs: JSON lines for machines, readable lines on a terminal; order, run and drone are bound once per context."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any, TextIO

import structlog

from shared.terminal.doctor import without_secrets
from shared.terminal.output import coloured, printable

_QUIET = ("httpx", "httpcore", "httpx2", "mcp", "urllib3", "LiteLLM", "asyncio", "kombu", "amqp")
"""Libraries that log every request at INFO; only their warnings are of interest."""


def configure(*, level: str = "info", stream: TextIO | None = None, file: Path | None = None) -> None:
    """Send all logs, including those of libraries, to `file` as JSON, or to `stream` (default stderr).

    A terminal gets readable lines, any other stream JSON. Call once per process, before its threads start.
    """
    target = stream or sys.stderr
    people = file is None and target.isatty()
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(target)
    else:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = logging.FileHandler(file, encoding="utf-8")
    renderers = (_printable, _for_people(target)) if people else (structlog.processors.JSONRenderer(),)
    handler.setFormatter(_formatter(*renderers))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _QUIET:
        quiet = logging.getLogger(name)
        # A level that was raised already stays: a run's process inherits loaded libraries.
        quiet.setLevel(max(logging.WARNING, root.level, quiet.level))
    structlog.configure(
        processors=[*_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def get(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of a module: `log = logs.get(__name__)`; `log.info("claimed", generation=2)`."""
    return structlog.stdlib.get_logger(name)


@contextlib.contextmanager
def bound(
    *, order: str | None = None, run: str | None = None, drone: str | None = None, trace: str | None = None
) -> Iterator[None]:
    """Add these ids to every line that this thread logs inside the block."""
    names = {"order": order, "run": run, "drone": drone, "trace": trace}
    with structlog.contextvars.bound_contextvars(**{name: value for name, value in names.items() if value}):
        yield


def bind(**names: str) -> None:
    """Add these ids to every line of this process, in all its threads: for the entry point of a worker or a run."""
    _PROCESS.update(names)


_PROCESS: dict[str, str] = {}


def _shared() -> list[structlog.typing.Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        _add_process,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        structlog.processors.StackInfoRenderer(),
    ]


def _add_process(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """What a line says itself, or its context, is more exact."""
    for name, value in _PROCESS.items():
        event.setdefault(name, value)
    return event


def _formatter(*renderers: structlog.typing.Processor) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_shared(),
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _hide_secrets,
            *renderers,
        ],
    )


def _for_people(stream: TextIO) -> structlog.typing.Processor:
    return structlog.dev.ConsoleRenderer(colors=coloured(stream), timestamp_key="at", pad_event_to=32)


def _printable(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Foreign text in a line, or in the traceback below it, must not drive the terminal."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = printable(value)
    return event


def _hide_secrets(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The last line of defense: passwords in URLs and the fleet's tokens never reach a log."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = without_secrets(value)
    return event
