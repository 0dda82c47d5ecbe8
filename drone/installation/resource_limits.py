"""The table `[limits]` of the owner's policy: how much of the machine the commands of one run may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ByteSize, ConfigDict, Field, ValidationError

from drone.sandbox.resources import ResourceLimits

Size = Annotated[ByteSize, Field(ge=1024 * 1024)] | Literal["none"]


class _LimitsTable(BaseModel):
    model_config = ConfigDict(extra="forbid")

    memory: Size | None = None
    processes: Annotated[int, Field(ge=16, strict=True)] | Literal["none"] | None = None
    cpus: Annotated[float, Field(ge=0.05)] | None = None
    file_size: Size | None = None
    disk: Size | None = None


_A_SIZE = 'expected a size of at least "1 MiB", such as "8 GiB", or "none"'
EXPECTED: Mapping[str, str] = {
    "memory": _A_SIZE,
    "processes": 'expected a number of at least 16, or "none"',
    "cpus": "expected a number of cores of at least 0.05",
    "file_size": _A_SIZE,
    "disk": _A_SIZE,
}


def read_limits(table: object, damaged: Callable[[str, str], Exception]) -> ResourceLimits:
    """The limits of a table; what it does not name keeps its default. Raises `damaged(setting, reason)`."""
    try:
        named = _LimitsTable.model_validate(table).model_dump(exclude_unset=True)
    except ValidationError as error:
        place = error.errors()[0]["loc"]
        name = str(place[0]) if place else ""
        if name in EXPECTED:
            raise damaged(f"limits.{name}", f"limits.{name} is invalid: {EXPECTED[name]}") from error
        raise damaged(
            f"limits.{name}" if name else "limits", f"[limits] may contain only {', '.join(EXPECTED)}"
        ) from error
    return ResourceLimits(**{name: None if value == "none" else value for name, value in named.items()})
