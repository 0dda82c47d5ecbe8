"""Operations are tested on SQLite; a test that is marked `dialects` runs on PostgreSQL too."""

from __future__ import annotations

import pytest


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database."""
    kind = getattr(request, "param", "sqlite")
    return str(request.getfixturevalue("sqlite_url" if kind == "sqlite" else "postgres_url"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what is marked `dialects` once on each kind of database."""
    if "database_url" in metafunc.fixturenames and metafunc.definition.get_closest_marker("dialects"):
        metafunc.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
