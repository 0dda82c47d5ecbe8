"""A run obeys each limit of its order: every case fails if the loop uses the default instead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from drone.model.scripted.server import ScriptedServer
from shared.events import CompactionStep, RetryStep, RunEnded, ToolResultStep
from shared.work_order import Limits
from tests.support.runs import Bench, shell, small_repository

pytestmark = pytest.mark.usefixtures("warm_model")
LONG = [*[shell("yes word | head -c 4000")] * 14, {"text": "done"}]


SUMMARY = {"text": "What happened so far."}


def ran(tmp_path: Path, script: Sequence[dict[str, Any]], **limits: Any) -> tuple[Bench, RunEnded]:
    bench = Bench(tmp_path / "bench", small_repository(tmp_path / "repository.git"))
    given = Limits(**{"base_delay": 0.01, **limits})
    provider = bench.order.provider.model_copy(update={"context_window": 12_000})
    bench.order = bench.order.model_copy(update={"limits": given, "provider": provider})
    with ScriptedServer({"default": list(script), "summary": [{**SUMMARY, "repeat": True}]}) as server:
        return bench, bench.run(server.url)


def steps(bench: Bench, kind: type[Any]) -> list[Any]:
    return [event.body for event in bench.events if isinstance(event.body, kind)]


def test_waits_commands_and_unusable_answers_are_limited_as_the_order_says(tmp_path: Path) -> None:
    failing = {**shell("sleep 600"), "fail": [{"status": 500, "error": "boom"}]}
    bench, ended = ran(
        tmp_path, [failing, {"text": "", "repeat": True}], base_delay=0.2, command_timeout=0.5, max_format_errors=5
    )
    (retry,) = steps(bench, RetryStep)
    assert 0.15 <= retry.delay_s <= 0.25
    (result,) = steps(bench, ToolResultStep)
    assert "0.5 s" in result.output
    assert ended.exit_status == "format_errors"
    assert "5 unusable answers" in ended.reason


def test_a_failed_call_is_repeated_as_often_as_max_retries_says(tmp_path: Path) -> None:
    failing = {"text": "done", "fail": [{"status": 500, "error": "boom"}] * 6}
    bench, ended = ran(tmp_path, [failing], max_retries=5)
    assert ended.exit_status == "model_error"
    assert len(steps(bench, RetryStep)) == 5


def test_without_retries_the_first_failure_ends_the_run(tmp_path: Path) -> None:
    bench, ended = ran(tmp_path, [{"text": "done", "fail": [{"status": 500, "error": "boom"}]}], retry_enabled=False)
    assert (ended.exit_status, steps(bench, RetryStep)) == ("model_error", [])


def test_a_full_window_is_compacted_at_the_reserve_and_keeps_what_was_set(tmp_path: Path) -> None:
    (tmp_path / "usual").mkdir()
    (tmp_path / "early").mkdir()
    usual, _ = ran(tmp_path / "usual", LONG)
    early, _ = ran(tmp_path / "early", LONG, reserve_tokens=8_000, keep_recent_tokens=500)
    first_of_usual, first_of_early = steps(usual, CompactionStep)[0], steps(early, CompactionStep)[0]
    assert first_of_early.tokens_before < 9_000 <= first_of_usual.tokens_before
    assert first_of_early.kept < first_of_usual.kept


def test_switched_off_the_window_is_not_compacted(tmp_path: Path) -> None:
    bench, ended = ran(tmp_path, LONG, compaction_enabled=False)
    assert steps(bench, CompactionStep) == []
    assert ended.exit_status == "stopped"
