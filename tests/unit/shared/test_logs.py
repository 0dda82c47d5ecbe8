"""What a log line holds: the ids it is about, no secret, and JSON wherever no person looks."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import structlog

from shared.terminal import logs


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Logging is the process's own: leave it as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    logs.configure(stream=StringIO())  # closes what the test logged to
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logs._PROCESS.clear()


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_library_that_was_silenced_stays_silent_when_logs_are_set_up_later() -> None:
    library = logging.getLogger("LiteLLM")
    before = library.level
    try:
        library.setLevel(logging.CRITICAL)
        logs.configure(stream=StringIO())
        assert library.level == logging.CRITICAL
    finally:
        library.setLevel(before)


def test_a_line_in_a_pipe_is_json_with_the_ids_of_its_context() -> None:
    stream = StringIO()
    logs.configure(stream=stream)

    with logs.bound(order="o1", run="r1", drone="d1"):
        logs.get("fleet").info("claimed", generation=2)
    logs.get("fleet").info("idle")

    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert {name: first[name] for name in ("event", "order", "run", "drone", "generation", "level")} == {
        "event": "claimed",
        "order": "o1",
        "run": "r1",
        "drone": "d1",
        "generation": 2,
        "level": "info",
    }
    assert "order" not in second


def test_the_ids_of_a_process_are_in_the_lines_of_all_its_threads_and_those_of_a_context_come_before() -> None:
    stream = StringIO()
    logs.configure(stream=stream)
    logs.bind(drone="d1", run="r1")

    thread = threading.Thread(target=logging.getLogger("library").warning, args=("in a thread",))
    thread.start()
    thread.join()
    with logs.bound(run="r2"):
        logs.get("fleet").info("in a context")

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(each["event"], each["drone"], each["run"]) for each in lines] == [
        ("in a thread", "d1", "r1"),
        ("in a context", "d1", "r2"),
    ]


def test_libraries_log_in_the_same_form_and_quietly() -> None:
    stream = StringIO()
    logs.configure(stream=stream)

    logging.getLogger("sqlalchemy").warning("slow: %s", "SELECT")
    logging.getLogger("httpx").info("GET / 200")

    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["slow: SELECT"]


def test_a_terminal_gets_lines_for_people() -> None:
    stream = Terminal()
    logs.configure(stream=stream)

    logs.get("fleet").info("claimed", order="o1")

    assert "claimed" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_no_line_holds_a_password_or_a_token() -> None:
    stream = StringIO()
    logs.configure(stream=stream)

    logs.get("fleet").info("at redis://u:s3cret@h/0", token="fd_0123456789abcdef")
    logging.getLogger("redis").warning("cannot reach %s", "redis://u:s3cret@h/0")

    assert "s3cret" not in stream.getvalue()
    assert "0123456789abcdef" not in stream.getvalue()


def test_an_exception_is_in_the_line_that_tells_of_it() -> None:
    stream = StringIO()
    logs.configure(stream=stream)

    logs.get("fleet").error("failed", exc_info=ZeroDivisionError("by zero"))

    (line,) = stream.getvalue().splitlines()
    assert "ZeroDivisionError: by zero" in json.loads(line)["exception"]


def test_a_log_file_is_json_and_is_made_with_its_directory(tmp_path: Path) -> None:
    logs.configure(file=tmp_path / "logs" / "drone.log", level="warning")

    logs.get("drone").info("not this")
    logs.get("drone").warning("but this")

    lines = (tmp_path / "logs" / "drone.log").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["but this"]
