"""Background loops work row by row: what one row holds must not hold up those of others."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from sqlalchemy import Row as RowOfSeveral
from sqlalchemy.exc import InterfaceError, OperationalError

from shared.errors import FleetFault
from shared.terminal import logs

log = logs.get(__name__)
Row = TypeVar("Row")
Result = TypeVar("Result")


def each_alone(loop: str, rows: Iterable[Row], act: Callable[[Row], Result]) -> list[Result]:
    """What `act` returns for each row. A row with which it fails is logged, once, and delays no other.

    Raises FleetFault, and OperationalError or InterfaceError: an unavailable service concerns all rows.
    """
    done: list[Result] = []
    for row in rows:
        try:
            done.append(act(row))
        except (FleetFault, OperationalError, InterfaceError):
            raise
        except Exception as error:  # noqa: BLE001 - what one row holds must not hold up the others
            where = traceback.extract_tb(error.__traceback__)[-1]
            _tell(loop, _name(row), type(error).__name__, f"{where.filename}:{where.lineno} in {where.name}")
    return done


def _name(row: object) -> str:
    """The row's id, if it is no id itself; of several joined rows, that of the first."""
    first = row[0] if isinstance(row, tuple | RowOfSeveral) else row
    return str(first if isinstance(first, str) else getattr(first, "id", type(first).__name__))[:200]


# Without the cache, a loop would log the same row in each round.
@lru_cache(maxsize=1000)
def _tell(loop: str, row: str, error: str, where: str) -> None:
    log.error("a row was left out, as it cannot be processed", loop=loop, row=row, error=error, where=where)
