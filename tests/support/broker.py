"""Real brokers for tests: Valkey from its wheel and Debian's Redis, restartable in place."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from control_plane.broker.broker import Broker
from control_plane.broker.valkey_config import CONTROL_USER, program, write_config
from shared.names import new_id
from tests.support import free_port, needs, wait_until
from tests.support.left_behind import lasts

PASSWORD = "control-password"


@dataclass(frozen=True)
class TlsAddress:
    """Where a server listens, with a certificate for that."""

    host: str
    files: tuple[Path, Path]
    """Certificate and key."""
    ca_file: Path


class BrokerServer:
    """A server with its own directory and one port for its whole life; it can be stopped and restarted."""

    def __init__(self, directory: Path, binary: Path, *, tls: TlsAddress | None = None) -> None:
        self.directory = directory
        self.binary = binary
        self.port = free_port()
        self.tls = tls
        scheme, host = ("rediss", tls.host) if tls else ("redis", "127.0.0.1")
        self.public_url = f"{scheme}://{host}:{self.port}/0"
        self.url = f"{scheme}://control:{PASSWORD}@{host}:{self.port}/0"
        trust = {"ssl_ca_certs": str(tls.ca_file)} if tls else {}
        self.redis = redis.Redis.from_url(self.url, decode_responses=True, **trust)
        self.options: tuple[str, ...] = ()
        """Further words of its command line."""
        self.disturbed = False
        """True if a test stopped or froze it; the next test then gets a new one."""
        self._process: subprocess.Popen[bytes] | None = None
        self._was_started = False

    def start(self) -> None:
        more = {"bind": self.tls.host, "tls": self.tls.files} if self.tls else {}
        config = write_config(self.directory, self.port, PASSWORD, **more)
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen([self.binary, config, *self.options], stdout=log, stderr=log)
        if self._was_started:
            # The server may be shared: the new process outlives the test that restarted it.
            lasts(self.pid)
        self._was_started = True
        wait_until(self.answers)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def answers(self) -> bool:
        try:
            return bool(self.redis.ping())
        except redis.RedisError:
            return False

    def stop(self, *, kill: bool = False) -> None:
        """Stop it: gracefully, so that all data is on disk, or with SIGKILL."""
        self.disturbed = True
        if self._process is None:
            return
        (self._process.kill if kill else self._process.terminate)()
        self._process.wait(60)
        self._process = None

    def restart(self, *, kill: bool = False) -> None:
        self.stop(kill=kill)
        self.start()

    def freeze(self) -> None:
        """Suspend it: it keeps its connections and answers nothing."""
        self.disturbed = True
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume a frozen server."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def refusing_writes(self) -> Iterator[None]:
        """It answers, and refuses every write, as a primary does that lacks its replica."""
        self.redis.config_set("min-replicas-to-write", 1)
        try:
            yield
        finally:
            self.redis.config_set("min-replicas-to-write", 0)

    def empty(self) -> None:
        """Delete all data and all users except the control plane's."""
        self.redis.flushall()
        users = set(self.redis.acl_users()) - {"default", CONTROL_USER}
        if users:
            self.redis.acl_deluser(*users)
        self.redis.acl_save()
        self.redis.acl_log_reset()

    def acl_log(self) -> list[dict[str, object]]:
        """Users' denied attempts."""
        return self.redis.acl_log()

    def close(self) -> None:
        self.redis.close()
        self.stop(kill=True)


@dataclass
class BrokerLender:
    """Lends one server to test after test, emptied in between, and replaces it if a test stopped it."""

    root: Path
    lent: BrokerServer | None = None

    def lend(self) -> BrokerServer:
        if self.lent is None:
            self.lent = BrokerServer(self.root / new_id(), program())
            self.lent.start()
            lasts(self.lent.pid)
        return self.lent

    def take_back(self) -> None:
        if self.lent is None:
            return
        if self.lent.disturbed:
            self.close()
        else:
            self.lent.empty()

    def close(self) -> None:
        if self.lent is not None:
            self.lent.close()
            self.lent = None


@pytest.fixture(scope="session")
def valkey_lender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerLender]:
    lender = BrokerLender(tmp_path_factory.mktemp("valkeys"))
    yield lender
    lender.close()


@pytest.fixture
def valkey(valkey_lender: BrokerLender) -> Iterator[BrokerServer]:
    """Valkey as `fleet up` configures it, empty; the test may stop and start it."""
    yield valkey_lender.lend()
    valkey_lender.take_back()


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[BrokerServer]:
    """The distribution's Redis, with the same configuration."""
    needs("redis-server")
    server = BrokerServer(tmp_path / "redis", Path(str(shutil.which("redis-server"))))
    server.start()
    yield server
    server.close()


@pytest.fixture(params=["valkey", "redis_server"])
def broker_server(request: pytest.FixtureRequest) -> Any:
    """Both kinds of server, one after the other."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def broker(valkey: BrokerServer) -> Iterator[Broker]:
    """The control plane's connection to the running Valkey."""
    made = Broker(valkey.url)
    yield made
    made.close()
