"""Runs that try a provider or a project, and the report that comes out."""

from __future__ import annotations

from typing import Any

from shared.events import ProjectCheckStep, ProviderCheckStep, RunEnded
from shared.work_order import Limits, OrderProvider
from tests.support.endpoints import Said, call, call_answer, chunk, streamed
from tests.support.runs import Bench

USAGE = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
PING = call("ping", {"text": "ok"})
CALLS_PING = {"text": "ok", "tool_calls": [{"name": "ping", "arguments": {"text": "ok"}}]}
"""A reply of the scripted model to both calls of a check."""


def hello(*, usage: bool = True) -> Said:
    """An answer of one token."""
    counted = [{**chunk(), "choices": [], "usage": USAGE}] if usage else []
    return streamed(chunk(role="assistant", content="ok"), chunk("length"), *counted)


def works() -> list[Said]:
    """The answers of a provider with everything that a run needs."""
    return [hello(), call_answer(PING)]


def trying_provider(bench: Bench, url: str, **fields: Any) -> OrderProvider:
    """Let the bench's run try the provider at this address."""
    known = {"name": "main", "model": "openai/small", "api_base": url, "api_key": "sk-order-secret"}
    provider = OrderProvider.model_validate({**known, **fields})
    limits = Limits(max_run_seconds=60, max_retries=0)
    changes = {"purpose": "check_provider", "provider": provider, "limits": limits, "prompt": "Check provider main."}
    bench.order = bench.order.model_copy(update=changes)
    return provider


def tried(bench: Bench, url: str, **fields: Any) -> ProviderCheckStep:
    """The report of a run that tried the provider at this address."""
    trying_provider(bench, url, **fields)
    end = bench.run(url)
    assert end.status == "success", end.reason
    return reported(bench)


def reported(bench: Bench) -> ProviderCheckStep:
    report: ProviderCheckStep = bench.last(ProviderCheckStep)
    return report


def try_project(bench: Bench, **project: Any) -> RunEnded:
    """Let the bench's run try a project with these fields."""
    changed = bench.order.project.model_copy(update=project)
    changes = {"purpose": "check_project", "project": changed, "prompt": "Check project test."}
    bench.order = bench.order.model_copy(update=changes)
    return bench.run("http://127.0.0.1:9/v1")


def project_report(bench: Bench) -> ProjectCheckStep:
    report: ProjectCheckStep = bench.last(ProjectCheckStep)
    return report
