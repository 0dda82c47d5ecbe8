"""A service order on a drone: a model writes the title of a session, in one call without tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.events import Delivered, ErrorStep, Prepared
from shared.outcome import ExitStatus
from shared.work_order import Limits, WriteTitle
from tests.support.runs import Bench, small_repository
from tests.support.scripted import ScriptedFactory, says


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A run that is to write the title of a session."""
    bench = Bench(tmp_path, small_repository(tmp_path / "remote.git"))
    limits = Limits(max_iterations=1, max_format_errors=1, retry_enabled=False, max_retries=0)
    title = WriteTitle(session="c" * 12, prompt="The parser fails on tabs.")
    changes = {"purpose": "title", "title": title, "limits": limits, "prompt": "Write a title."}
    bench.order = bench.order.model_copy(update=changes)
    return bench


def test_one_call_without_tools_and_without_a_repository_gives_the_title(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    bench.refuse_url = AssertionError("the repository was asked for")
    server = scripted([says("Tabs in the parser")])
    end = bench.run(server.url)

    assert (end.status, end.exit_status, end.response) == ("success", ExitStatus.STOPPED, "Tabs in the parser")
    (request,) = server.requests
    assert "tools" not in request
    assert "The parser fails on tabs." in request["messages"][1]["content"]
    assert [event.body for event in bench.events if isinstance(event.body, Prepared | Delivered)] == []
    assert not bench.workspaces.exists()


def test_a_model_that_calls_tools_or_fails_is_asked_once_and_gives_no_title(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    server = scripted([{"text": "Let me see.", "tool_calls": [{"name": "shell", "arguments": {"command": "ls"}}]}] * 3)
    end = bench.run(server.url)

    assert (end.status, len(server.requests)) == ("failed", 1)
    assert [event.body.code for event in bench.events if isinstance(event.body, ErrorStep)] == ["E-TITLE"]
    server = scripted([says("Too late", fail=[{"status": 500, "error": "scripted"}])])
    assert (bench.run(server.url).status, len(server.requests)) == ("failed", 1)
