"""Problem documents become the error that the server raised, in its class and its words."""

from __future__ import annotations

from shared import errors
from shared.problems import error_of, kind_of

PROBLEM = {"code": "E-DRONE-404", "detail": "no drone has this name", "why": "it was removed", "next": "fleet drones"}


def test_the_status_decides_the_class_and_with_it_the_exit_code() -> None:
    cases: list[tuple[int, type[errors.FleetError]]] = [
        (401, errors.Unauthenticated),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (412, errors.Precondition),
        (413, errors.TooLarge),
        (422, errors.Invalid),
        (429, errors.TooOften),
        (418, errors.Refused),
        (503, errors.FleetFault),
    ]
    for status, kind in cases:
        assert type(error_of(status, PROBLEM)) is kind, status
        assert kind_of(status) is kind, status


def test_the_words_are_the_servers() -> None:
    error = error_of(404, PROBLEM)
    assert error is not None
    assert (error.what, error.code, error.why, error.next) == tuple(
        PROBLEM[name] for name in ("detail", "code", "why", "next")
    )


def test_what_is_no_problem_document_is_no_error_of_the_fleet() -> None:
    others: list[object] = [None, [], "text", {}, {"code": 7}, {"detail": "no code"}]
    assert [other for other in others if error_of(404, other) is not None] == []
