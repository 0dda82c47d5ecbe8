"""The broker of `fleet up` over TLS: a server that can encrypt, as the wheel's cannot, and its renewed certificate."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from control_plane.broker.valkey_config import quoted
from control_plane.core.certificates import ChangedFiles
from control_plane.server.embedded.ports import hold_port
from shared.sockets import redis_tls
from shared.terminal.output import say

PROGRAMS = ("valkey-server", "redis-server")
OLDEST = (7, 0)
"""The first version whose users can have the rights that drones get."""
TRIAL_S = 10.0
LOOPBACK = "127.0.0.1"
_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: the certificate that is to be replaced may have expired."""


def encrypting_server(certificate: Path, key: Path) -> Path | None:
    """The first server on PATH that serves TLS with this certificate and is new enough, tried; None: there is none."""
    found = (shutil.which(name) for name in PROGRAMS)
    return next((Path(path) for path in found if path and _encrypts(path, certificate, key)), None)


class BrokerCertificate:
    """Hands the broker its certificate again when its files change."""

    def __init__(self, ca_file: str, certificate: Path, key: Path) -> None:
        self._ca_file = ca_file
        self._settings = ("tls-cert-file", str(certificate), "tls-key-file", str(key))
        self._files = ChangedFiles(certificate, key)
        self._due = False

    def renew(self, broker_url: str) -> None:
        """Have changed files loaded; the server keeps its previous certificate while it cannot use them."""
        import redis

        self._due = self._files.changed() or self._due
        if not self._due:
            return
        options = {**redis_tls(broker_url, self._ca_file), "ssl_include_verify_flags": [_NO_CHECK_TIME]}
        try:
            with redis.Redis.from_url(broker_url, socket_timeout=2, **options) as server:
                # Both at once: one alone would not fit the other. The same names make the server read them again.
                server.config_set(*self._settings)
        except redis.ResponseError as error:
            say(f"WARNING: the broker keeps its previous certificate: {error}")
        except redis.RedisError:
            # It is being restarted; it then loads the files anyway.
            return
        self._due = False


def _encrypts(program: str, certificate: Path, key: Path) -> bool:
    """Start the server for a moment, behind a password, and ask it over TLS for its version."""
    port, password = hold_port(LOOPBACK, 0), secrets.token_hex(16)
    with tempfile.TemporaryDirectory() as directory:
        config = (
            f"port 0\ntls-port {port}\nbind {LOOPBACK}\ntls-auth-clients no\n"
            f"tls-cert-file {quoted(certificate)}\ntls-key-file {quoted(key)}\n"
            f'requirepass {password}\nsave ""\ndir {quoted(Path(directory))}\n'
        )
        # Through stdin, because a command line is shown to every user of the machine.
        words, quiet = [program, "-"], subprocess.DEVNULL
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, text=True) as process:
            try:
                assert process.stdin is not None
                process.stdin.write(config)
                process.stdin.close()
                return _version(process, port, password) >= OLDEST
            finally:
                process.kill()


def _version(process: subprocess.Popen[str], port: int, password: str) -> tuple[int, ...]:
    """The version that the server names; empty if it ends or does not answer over TLS."""
    import redis

    # Only the ability is tried here: whether clients accept the certificate was checked before.
    client = redis.Redis(host=LOOPBACK, port=port, password=password, ssl=True, ssl_cert_reqs="none", socket_timeout=2)
    deadline = time.monotonic() + TRIAL_S
    with client:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                return tuple(int(part) for part in str(client.info("server")["redis_version"]).split(".")[:2])
            except redis.RedisError:
                time.sleep(0.05)
    return ()
