"""Shares SQLAlchemy's compiled statements among all databases of one kind, so that a test's own engine starts warm.

An engine has its own cache of compiled statements, keyed by its dialect, so a test that opens a database would compile
each statement again: a sixth of the time of a test that writes orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

_FIRST: dict[str, Engine] = {}
"""By kind, the first engine of this process that has connected."""


@pytest.fixture(scope="session", autouse=True)
def shared_compiled_statements() -> Iterator[None]:
    """For the whole process: new engines use the dialect and cache of the first engine that knows its server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("control_plane.db.engine.create_engine", _create_sharing)
        yield


def _create_sharing(url: Any, **options: Any) -> Engine:
    made = create_engine(url, **options)
    first = _FIRST.setdefault(made.name, made)
    # A dialect learns the server's version on its first connection; before that it cannot be shared.
    if getattr(first.dialect, "server_version_info", None) is None:
        _FIRST[made.name] = made
    else:
        made.dialect = made.pool._dialect = first.dialect
        made._compiled_cache = first._compiled_cache
    return made
