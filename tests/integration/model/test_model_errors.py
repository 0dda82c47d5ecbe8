"""The table of failures: complete for the litellm that is installed, and never a bug taken for a failure."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime

import httpx
import pytest

from drone.model.errors import BY_EXCEPTION, RETRIED, ErrorClass, Failure, classify, sentence
from drone.model.litellm_import import litellm
from shared.errors import Preempted
from shared.work_order import OrderProvider

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PROVIDER = OrderProvider(name="p", model="openai/x", api_base="http://ada:secret@models.example:8000/v1")

pytestmark = pytest.mark.usefixtures("warm_model")


def _exceptions_of_litellm() -> set[str]:
    module = litellm().exceptions
    classes = inspect.getmembers(module, lambda item: inspect.isclass(item) and issubclass(item, Exception))
    return {name for name, cls in classes if cls.__module__ == module.__name__}


def test_the_table_has_every_exception_that_litellm_has_and_no_other() -> None:
    assert set(BY_EXCEPTION) == _exceptions_of_litellm()


def test_every_class_of_failure_has_a_sentence_without_a_secret() -> None:
    said = [sentence(Failure(error_class, "no such thing"), PROVIDER) for error_class in ErrorClass]
    assert len(set(said)) == len(ErrorClass)
    assert not any("secret" in text for text in said)


def test_exactly_these_failures_are_tried_again() -> None:
    assert {*RETRIED} == {"rate_limit", "overloaded", "server", "timeout", "context_overflow", "unknown"}


def test_a_bug_or_a_signal_is_no_failure_of_a_call() -> None:
    cases: list[BaseException] = [ImportError("no module named mcp"), TypeError("a bug"), KeyError("x"), Preempted()]
    wrong = [(bug, got) for bug in cases if (got := classify(bug, NOW)) is not None]
    assert wrong == []


def test_an_import_error_is_a_bug_however_deep_litellm_wrapped_it() -> None:
    wrapped = litellm().APIConnectionError(message="no module", llm_provider="openai", model="x")
    wrapped.__context__ = ImportError("no module named mcp")
    assert classify(wrapped, NOW) is None


def test_errors_of_the_http_client_that_litellm_let_through_are_known() -> None:
    cases: list[tuple[Exception, ErrorClass]] = [
        (httpx.ReadTimeout("slow"), ErrorClass.TIMEOUT),
        (httpx.RemoteProtocolError("peer closed"), ErrorClass.SERVER),
        (httpx.InvalidURL("no such scheme"), ErrorClass.FORMAT),
    ]
    for error, expected in cases:
        failure = classify(error, NOW)
        assert failure is not None, error
        assert failure.error_class is expected, error
