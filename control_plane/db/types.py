"""Column types that behave alike on SQLite and PostgreSQL."""

from __future__ import annotations

import re
from datetime import MINYEAR, UTC, datetime
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from sqlalchemy import JSON, DateTime, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time in both directions; SQLite itself would drop the zone. A naive time is refused.

    Of a time that no calendar has in UTC, the nearest: `0001-01-01T00:00+05:00` may be asked for as the first of all.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a time zone cannot be stored")
        try:
            return value.astimezone(UTC)
        except OverflowError:
            return _FIRST if value.year == MINYEAR else _LAST

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class ForeignText(TypeDecorator[str]):
    """A text of any length from a drone or a model: characters that PostgreSQL refuses are replaced.

    NUL and unpaired surrogates become U+FFFD, on both databases; a report is never refused because of one character.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        if value is None:
            return None
        return _UNSTORABLE.sub("\ufffd", value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return value


def without_nul(value: Any) -> Any:
    """JSON without NUL characters, which models and commands may output and PostgreSQL cannot store."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, dict):
        return {without_nul(key): without_nul(each) for key, each in value.items()}
    return [without_nul(each) for each in value] if isinstance(value, list | tuple) else value


class Fact(TypeDecorator[Any]):
    """One of several pydantic models, as JSON. A value that only a newer version can read is read as None.

    It also accepts stored JSON: an import writes the JSON of the export.
    """

    impl = JSON(none_as_null=True)
    cache_ok = True

    def __init__(self, models: Any) -> None:
        super().__init__()
        self.models = models
        self._adapter: TypeAdapter[Any] = TypeAdapter(models)

    def process_bind_param(self, value: BaseModel | dict[str, Any] | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return value.model_dump(mode="json") if isinstance(value, BaseModel) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        if value is None:
            return None
        try:
            return self._adapter.validate_python(value)
        except ValidationError:
            # During a rolling upgrade a newer process writes kinds that this one does not know.
            return None
