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


def test_a_line_is_json_with_the_ids_of_its_process_in_all_threads_and_those_of_its_context_before() -> None:
    stream = StringIO()
    logs.configure(stream=stream)
    logs.bind(drone="d1", run="r1")

    thread = threading.Thread(target=logging.getLogger("library").warning, args=("in a thread",))
    thread.start()
    thread.join()
    with logs.bound(run="r2", order="o1"):
        logs.get("fleet").info("in a context", generation=2)

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(each["event"], each["drone"], each["run"]) for each in lines] == [
        ("in a thread", "d1", "r1"),
        ("in a context", "d1", "r2"),
    ]
    assert (lines[1]["order"], lines[1]["generation"], lines[1]["level"], "order" in lines[0]) == (
        "o1",
        2,
        "info",
        False,
    )


def test_no_line_holds_a_password_or_a_token() -> None:
    stream = StringIO()
    logs.configure(stream=stream)

    logs.get("fleet").info("at redis://u:s3cret@h/0", token="fd_0123456789abcdef")
    logging.getLogger("redis").warning("cannot reach %s", "redis://u:s3cret@h/0")

    assert "s3cret" not in stream.getvalue()
    assert "0123456789abcdef" not in stream.getvalue()


def test_a_log_file_is_json_and_is_made_with_its_directory(tmp_path: Path) -> None:
    logs.configure(file=tmp_path / "logs" / "drone.log", level="warning")

    logs.get("drone").info("not this")
    logs.get("drone").warning("but this")

    lines = (tmp_path / "logs" / "drone.log").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["but this"]
