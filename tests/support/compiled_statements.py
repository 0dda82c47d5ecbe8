"""Lets all databases of one kind share what SQLAlchemy compiled: a test with an engine of its own starts warm.

An engine keeps its compiled statements for itself, keyed by its dialect, and a test that opens a database would compile
each statement anew: a sixth of the time of a test that writes orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

_FIRST: dict[str, Engine] = {}
"""By kind, the first engine of this process that was ever connected."""


@pytest.fixture(scope="session", autouse=True)
def shared_compiled_statements() -> Iterator[None]:
    """For the whole process: new engines get dialect and cache of the first one that knows its server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("control_plane.db.engine.create_engine", _create_sharing)
        yield


def _create_sharing(url: Any, **options: Any) -> Engine:
    made = create_engine(url, **options)
    first = _FIRST.setdefault(made.name, made)
    # A dialect learns the server's version with its first connection; one that never had any is of no use.
    if getattr(first.dialect, "server_version_info", None) is None:
        _FIRST[made.name] = made
    else:
        made.dialect = made.pool._dialect = first.dialect
        made._compiled_cache = first._compiled_cache
    return made
