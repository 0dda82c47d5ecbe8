"""The network of a run's commands: a namespace of their own, whose only way out is a proxy in the run's process.

A process started with bubblewrap holds the namespace, because the proxy's port must be opened inside it; the commands
of the run then enter it one after another. Nothing runs between a command and the proxy, and starting one costs a
millisecond more.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from drone.sandbox.account import is_root
from drone.sandbox.bwrap_program import bwrap_program
from drone.sandbox.network import holder
from drone.sandbox.network.access import NetworkAccess
from drone.sandbox.network.gateway import Gateway
from drone.sandbox.network.proxy import Proxy
from drone.sandbox.opened import opened
from shared.errors import FleetFault

PORT = 3128
"""Of the proxy, inside the namespace; the usual one of HTTP proxies."""
START_SECONDS = 10.0
ATTEMPTS = 20
_MOUNTS_CHANGED = "Can't bind mount"
"""What bubblewrap says if a mount of the machine vanished while it took them over, as when a container ends."""
_URL = f"http://127.0.0.1:{PORT}"
_LOCAL = "localhost,127.0.0.1,::1"
_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
log = logging.getLogger(__name__)


class Network:
    """Connects the commands of one drone or run as its owner's policy says. The namespace is made for the first one."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.access = gateway.access
        """What commands can reach."""
        self._lock = threading.Lock()
        self._namespace: _Namespace | None = None

    def connected(self) -> tuple[list[str], list[str], dict[str, str]]:
        """For one command: the words before `bwrap`, bwrap's own options, and variables of the environment.

        A default that never worked here is replaced by the machine's network. Raises FleetFault if the owner chose it,
        or if it worked before: what fails now must not open what was closed.
        """
        with self._lock:
            if self.access.is_routed and self._namespace is None:
                self._make()
            if self._namespace is not None:
                return self._namespace.enter(), [], proxy_variables()
            return [], ["--unshare-net"] if self.access.kind == "none" else [], {}

    def take_refused(self) -> tuple[str, ...]:
        """The connections that were refused since the last time."""
        with self._lock:
            return self._namespace.proxy.take_refused() if self._namespace is not None else ()

    def _make(self) -> None:
        try:
            self._namespace = _Namespace(self.gateway)
            opened[self] = None
        except FleetFault as fault:
            if self.access.works or not self.access.is_replaceable:
                raise
            log.warning("commands use the machine's own network: %s", fault.why)
            self.access = replace(self.access, kind="host")

    def close(self) -> None:
        """End the namespace and the proxy. Commands that still run lose their connections."""
        with self._lock:
            namespace, self._namespace = self._namespace, None
            opened.pop(self, None)
        if namespace is not None:
            namespace.close()


def proxy_variables() -> dict[str, str]:
    """Variables that lead programs to the proxy; those of the owner's proxy do not apply."""
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _URL)
    return {**proxies, "no_proxy": _LOCAL, "NO_PROXY": _LOCAL, "NODE_USE_ENV_PROXY": "1"}


def explain_missing() -> str:
    """Why commands cannot have a network namespace on this machine; empty if they can."""
    if _nsenter() is None:
        return "nsenter, of util-linux, is not installed"
    try:
        _Namespace(Gateway(NetworkAccess("hosts"), {})).close()
    except FleetFault as error:
        return error.why
    return ""


class _Namespace:
    """A network namespace with the loopback device alone, its holder, and the proxy that listens in it."""

    def __init__(self, gateway: Gateway) -> None:
        self.words = ""
        """What the holder said, once it has ended."""
        # bubblewrap ends with the thread that started it, and the thread of a command may end before the run.
        self._starter = ThreadPoolExecutor(1)
        try:
            listener = self._started()
        except (OSError, ValueError) as error:
            self._starter.shutdown()
            raise FleetFault(
                "the network policy of this drone cannot be enforced",
                code="E-SANDBOX",
                why=f"a network namespace could not be created: {self.words or error}",
                next='on the drone: drone doctor    or allow everything: access = "host" under [network]',
            ) from error
        self.proxy = Proxy(listener, gateway)
        self.proxy.start()

    def _started(self) -> socket.socket:
        """Start the holder, again if the machine's mounts changed meanwhile. Raises OSError and ValueError."""
        for attempt in range(1, ATTEMPTS + 1):
            self._ours, theirs = socket.socketpair()
            self._ours.settimeout(START_SECONDS)
            with theirs:
                self._holder = self._starter.submit(_start_holder, theirs.fileno()).result()
            try:
                listener, self._pid = self._listener(), self._pid_inside()
            except (OSError, ValueError):
                self._end_holder()
                if attempt == ATTEMPTS or _MOUNTS_CHANGED not in self.words:
                    raise
            else:
                return listener
        raise AssertionError("unreachable")

    def enter(self) -> list[str]:
        user = [] if is_root() else ["--user", "--preserve-credentials"]
        return [_nsenter() or "nsenter", "--target", str(self._pid), *user, "--net", "--"]

    def close(self) -> None:
        self.proxy.close()
        self._end_holder()
        self._starter.shutdown()

    def _listener(self) -> socket.socket:
        _, descriptors, _, _ = socket.recv_fds(self._ours, 1, 1)
        if not descriptors:
            raise ValueError("its holder ended")
        return socket.socket(fileno=descriptors[0])

    def _pid_inside(self) -> int:
        output = self._holder.stdout
        return int(json.loads(os.read(output.fileno(), 4096))["child-pid"]) if output else 0

    def _end_holder(self) -> None:
        self._ours.close()
        try:
            self._holder.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self._holder.kill()
            self._holder.wait()
        self.words = self._holder.stderr.read(1000).decode(errors="replace").strip() if self._holder.stderr else ""
        for stream in filter(None, (self._holder.stdout, self._holder.stderr)):
            stream.close()


def _start_holder(descriptor: int) -> subprocess.Popen[bytes]:
    """bwrap only because it may create namespaces on machines where other programs may not."""
    user = [] if is_root() else ["--unshare-user"]
    sandbox = [
        bwrap_program(os.environ) or "bwrap",
        *user,
        "--unshare-net",
        "--die-with-parent",
        "--info-fd",
        "1",
        "--dev-bind",
        "/",
        "/",
        "--",
    ]
    return subprocess.Popen(
        [*sandbox, sys.executable, "-I", "-S", str(Path(holder.__file__)), str(descriptor), str(PORT)],
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", _SYSTEM_PATH)},
        start_new_session=True,
    )


def _nsenter() -> str | None:
    return shutil.which("nsenter", path=_SYSTEM_PATH)
