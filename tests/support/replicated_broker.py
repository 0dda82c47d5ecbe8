"""A broker of two real servers with three Sentinels and, for drones, HAProxy, all as `deploy/` configures them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from control_plane.broker.valkey_config import USERS
from tests.support import free_port, wait_until
from tests.support.broker import PASSWORD, BrokerServer, TlsAddress
from tests.support.documents import ROOT

NAME = "fleet"
_DEPLOY = ROOT / "deploy"
_PROXY = f"user proxy on >{PASSWORD} -@all +info\n"
_DOWN_AFTER = ("5000", "2000")
_ATTEMPT = ("failover-timeout fleet 30000", "failover-timeout fleet 5000")
"""On a busy machine the sentinels do not agree at once, and a second attempt begins after twice this."""


class ReplicatedBroker(BrokerServer):
    """A primary, its replica and what watches them. `port` is HAProxy's: the address that drones know.

    With `tls`, servers and Sentinels speak TLS alone, and there is no HAProxy.
    """

    def __init__(self, directory: Path, binary: Path, *, tls: TlsAddress | None = None) -> None:
        super().__init__(directory, binary, tls=tls)
        self.servers = [BrokerServer(directory / name, binary, tls=tls) for name in ("one", "two")]
        self._sentinel_ports = [free_port() for _ in range(3)]
        sentinels = ",".join(f"127.0.0.1:{port}" for port in self._sentinel_ports)
        self.url = f"{'rediss' if tls else 'redis'}+sentinel://control:{PASSWORD}@{sentinels}/{NAME}"
        self._watchers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        primary, replica = self.servers
        login: tuple[str, ...] = ("--masteruser", "control", "--masterauth", PASSWORD)
        if self.tls:
            login = (*login, "--tls-replication", "yes", "--tls-ca-cert-file", str(self.tls.ca_file))
        primary.options, replica.options = login, (*login, "--replicaof", f"127.0.0.1 {primary.port}")
        for server in self.servers:
            server.directory.mkdir(parents=True)
            (server.directory / USERS).write_text(_PROXY)
            server.start()
        wait_until(lambda: replica.redis.info("replication")["master_link_status"] == "up")
        for port in self._sentinel_ports:
            self._start_sentinel(port)
        wait_until(self._all_know_each_other, seconds=60)
        if self.tls is None:
            self._start_proxy()
            wait_until(self.answers)

    def primary(self) -> BrokerServer | None:
        """The server that says so; None if there is none, as in the seconds of a failover."""
        return next((server for server in self.servers if _role(server) == "master"), None)

    def close(self) -> None:
        self.redis.close()
        for watcher in self._watchers:
            watcher.kill()
            watcher.wait(60)
        for server in self.servers:
            server.close()

    def _start_sentinel(self, port: int) -> None:
        text = (_DEPLOY / "sentinel.conf").read_text(encoding="utf-8")
        text = (
            text.replace("port 26379", f"port {port}")
            .replace("PASSWORD", PASSWORD)
            .replace(*_DOWN_AFTER)
            .replace(*_ATTEMPT)
        )
        text = text.replace("PRIMARY 6379", f"127.0.0.1 {self.servers[0].port}")
        home = self.directory / f"sentinel-{port}"
        home.mkdir()
        config = home / "sentinel.conf"
        if self.tls:
            certificate, key = self.tls.files
            text = text.replace(f"port {port}", f"port 0\ntls-port {port}")
            text += f"tls-cert-file {certificate}\ntls-key-file {key}\ntls-ca-cert-file {self.tls.ca_file}\n"
            text += "tls-auth-clients no\ntls-replication yes\n"
        config.write_text(f"{text}\nbind 127.0.0.1\ndir {home}\n")
        self._watch([str(self.binary), str(config), "--sentinel"], home / "log")

    def _start_proxy(self) -> None:
        places = {f"BROKER_SERVER_{n}": f"127.0.0.1:{server.port}" for n, server in enumerate(self.servers, 1)}
        environment = {"BROKER_BIND": f"127.0.0.1:{self.port}", "BROKER_PROXY_PASSWORD": PASSWORD, **places}
        command = ["haproxy", "-db", "-f", str(_DEPLOY / "haproxy.cfg")]
        self._watch(command, self.directory / "haproxy.log", env={**os.environ, **environment})

    def _watch(self, command: list[str], log: Path, **options: Any) -> None:
        with log.open("ab") as output:
            self._watchers.append(subprocess.Popen(command, stdout=output, stderr=output, **options))

    def _all_know_each_other(self) -> bool:
        return all(self._known(port) == (1, 2) for port in self._sentinel_ports)

    def _known(self, port: int) -> tuple[int, int]:
        """How many replicas and how many other Sentinels a Sentinel knows."""
        more: dict[str, Any] = {"ssl": True, "ssl_ca_certs": str(self.tls.ca_file)} if self.tls else {}
        more["retry"] = Retry(NoBackoff(), 0)
        client = redis.Redis(host="127.0.0.1", port=port, username="control", password=PASSWORD, **more)
        with client:
            try:
                state = client.sentinel_master(NAME)
            except redis.RedisError:
                return 0, 0
        return int(state["num-slaves"]), int(state["num-other-sentinels"])


def _role(server: BrokerServer) -> str:
    try:
        return str(server.redis.info("replication")["role"])
    except redis.RedisError:
        return ""
