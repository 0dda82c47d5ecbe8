"""Conversations are tested on SQLite; a test that is marked `dialects` runs on PostgreSQL too."""

from tests.integration.operations.conftest import database_url, pytest_generate_tests

__all__ = ["database_url", "pytest_generate_tests"]
