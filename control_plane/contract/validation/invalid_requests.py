"""Malformed requests, reported with the same text at every door: pydantic's findings, translated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from shared.errors import Invalid

SHOWN_FIELDS = 5
PLACES = frozenset({"body", "query", "path", "header"})
"""The parts of a request in which HTTP found a field; the sentence omits them."""
_WHOLE, _NUMBER, _BOOL = "must be a whole number", "must be a number", "must be true or false"
_DAY = "must be a date, such as 2026-01-31"
_OBJECT, _TIME = "must be an object", "must be a date and time with a time zone, such as 2026-01-31T12:00:00Z"
WORDS: Mapping[str, str] = {
    "missing": "is required",
    "extra_forbidden": "unknown field",
    "json_invalid": "is not JSON",
    "value_error": "{error}",
    "string_type": "must be text",
    "string_unicode": "must be text",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), _NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), _BOOL),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _OBJECT),
    **dict.fromkeys(("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "timezone_aware"), _TIME),
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact"), _DAY),
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} values",
    "too_long": "must have at most {max_length} values",
    "string_pattern_mismatch": "must match {pattern}",
}
"""By pydantic's type of error, with the values that it provides. A test covers all types that requests can cause."""
R = TypeVar("R", bound=BaseModel)


class FieldProblem(BaseModel):
    """An invalid value in a request."""

    field: str
    """Its location: `body.prompt`, `query.limit`."""
    what: str


class InvalidRequest(Invalid):
    """A malformed request; names each field."""

    def __init__(self, fields: Sequence[FieldProblem], form: str = "see /openapi.json for the request format") -> None:
        named = "; ".join(f"{_without_place(each.field)}: {each.what}" for each in fields[:SHOWN_FIELDS])
        more = f"; and {len(fields) - SHOWN_FIELDS} more" if len(fields) > SHOWN_FIELDS else ""
        super().__init__(f"invalid request: {named}{more}", code="E-REQUEST", next=form)
        self.fields = list(fields)


def checked(model: type[R], given: Mapping[str, Any], *, form: str) -> R:
    """The request with these fields. Raises InvalidRequest; `form` says where the request's form is described."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise InvalidRequest([field_problem(dict(each)) for each in error.errors()], form) from error


def field_problem(error: Mapping[str, Any]) -> FieldProblem:
    """One finding of pydantic without the value, which may be a secret, or a megabyte."""
    kind, where = error["type"], error["loc"]
    parts = where[:1] if kind == "json_invalid" else where
    message = str(error["msg"])
    words = WORDS[kind].format_map(error.get("ctx") or {}) if kind in WORDS else message[:1].lower() + message[1:]
    return FieldProblem(field=".".join(str(part) for part in parts), what=words)


def _without_place(field: str) -> str:
    place, dot, name = field.partition(".")
    return name if dot and place in PLACES else field
