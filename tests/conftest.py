"""Names the fixture modules; each lives beside what it starts, in tests/support."""

from __future__ import annotations

pytest_plugins = [
    "tests.support.database",
    "tests.support.broker",
    "tests.support.scripted",
    "tests.support.repositories",
    "tests.support.git_servers",
    "tests.support.sandboxes",
    "tests.support.fleet",
    "tests.support.drones",
]
