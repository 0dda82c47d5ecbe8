"""Work that is committed together with the first writing transaction of an operation, for who calls the operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sqlalchemy.orm import Session


@dataclass
class Joined:
    """The work, and whether a transaction with it was committed."""

    work: Callable[[Session], None]
    committed: bool = False


_JOINED: ContextVar[Joined | None] = ContextVar("first_write", default=None)


@contextmanager
def along(work: Callable[[Session], None]) -> Iterator[Joined]:
    """Do `work` at the beginning of the block's first writing transaction; what it raises ends that transaction."""
    joined = Joined(work)
    token = _JOINED.set(joined)
    try:
        yield joined
    finally:
        _JOINED.reset(token)


def begin(db: Session) -> None:
    """Do the work that is to be committed with this transaction, unless it was committed with an earlier one."""
    joined = _JOINED.get()
    if joined is not None and not joined.committed:
        joined.work(db)


def committed() -> None:
    """Note that the transaction with the work was committed."""
    joined = _JOINED.get()
    if joined is not None:
        joined.committed = True
