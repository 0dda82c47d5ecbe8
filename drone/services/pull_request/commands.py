"""The hosts' own command-line tools, logged in by the drone's owner: the `api` commands of `gh`, `glab` and `tea`.

Text written by users and models is passed in the JSON on stdin, never on the command line, where it could be taken for
an option and be read by every user of the machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from drone.services.pull_request.address import Address
from drone.services.pull_request.api import MAX_TEXT, SHOWN, HostApi, HostRefused, Json, NotLetIn, refusal_of

COMMAND_SECONDS = 60.0
_TICK = 0.05
_LONGEST_ANSWER = 16 * 1024 * 1024
_QUIET = {
    "GH_PROMPT_DISABLED": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "GLAB_CHECK_UPDATE": "false",
    "NO_PROMPT": "1",
    "NO_COLOR": "1",
    "PAGER": "cat",
}
_STATUS = re.compile(r"\bHTTP(?:/[\d.]+)?[ :]+(\d{3})\b|\b(\d{3}) (?:Unauthorized|Forbidden|Not Found)\b")


@dataclass(frozen=True)
class Commands:
    """Runs programs of the owner in the owner's environment, in `/`, where no repository can affect them."""

    environment: Mapping[str, str]
    check: Callable[[], None] = field(default=lambda: None)
    """Called while a program runs; an exception from it ends the program and propagates."""
    seconds: float = COMMAND_SECONDS

    def has(self, program: str) -> bool:
        return shutil.which(program, path=self.environment.get("PATH", os.defpath)) is not None

    def run(self, command: Sequence[str], stdin: bytes = b"") -> tuple[int | None, str, str]:
        """Exit code, stdout and stderr; the code is None if the program took too long and was ended."""
        # Files and not pipes: a helper that stays behind would keep a pipe open.
        with tempfile.TemporaryFile() as into, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            into.write(stdin)
            into.seek(0)
            process = subprocess.Popen(
                list(command),
                cwd="/",
                env={**self.environment, **_QUIET},
                stdin=into,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                code = self._waited(process)
            finally:
                # A program that has ended may have left a helper of the owner's, which is not ours to end.
                if process.returncode is None:
                    _end(process)
            out.seek(0)
            err.seek(0)
            return code, out.read(_LONGEST_ANSWER).decode(errors="replace"), err.read(65536).decode(errors="replace")

    def _waited(self, process: subprocess.Popen[bytes]) -> int | None:
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            self.check()
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_TICK)
        return None


@dataclass(frozen=True)
class CommandApi:
    """One tool's `api` command for one host."""

    via: str
    commands: Commands
    host: str
    prefix: Sequence[str]
    """The command up to the method."""
    input: Sequence[str]
    """The options that make it read the body from stdin."""

    def call(self, method: str, path: str, body: dict[str, Json] | None = None) -> Json:
        """Like `HostApi.call`. A tool that gives no answer in time counts as a refusal."""
        stdin = json.dumps(body).encode() if body is not None else b""
        reads = self.input if body is not None else ()
        command = [*self.prefix, *_method(self.via, method), *reads, path]
        return _parsed(self._run(command, stdin))

    def text(self, path: str) -> str:
        """Like `HostApi.text`."""
        return self._run([*self.prefix, *_method(self.via, "GET"), path], b"")[-MAX_TEXT:]

    def _run(self, command: Sequence[str], stdin: bytes) -> str:
        code, out, err = self.commands.run(command, stdin)
        if code is None:
            raise HostRefused(f"{self.via} did not answer within {self.commands.seconds:.0f} s and was stopped")
        status = _status(err)
        if code == 0 and not (status and status >= 400):
            return out
        if status == 401:
            raise NotLetIn(f"{self.via} is logged in to {self.host}, but access was denied")
        if status:
            raise refusal_of(self.host, status, _parsed(out) or err)
        raise HostRefused(f"{self.via} failed: {' '.join((err or out).split())[:SHOWN] or f'exit code {code}'}")


def tool_for(kind: str, address: Address, commands: Commands) -> HostApi | None:
    """The owner's tool for this kind of host, if it is installed and logged in there."""
    match kind:
        case "github":
            return _logged_in("gh", address, commands, ("--hostname", address.host), ("--input", "-"))
        case "gitlab":
            reads = ("--header", "Content-Type: application/json", "--input", "-")
            return _logged_in("glab", address, commands, ("--hostname", address.host), reads)
        case _:
            return _tea(address, commands)


def _logged_in(
    program: str, address: Address, commands: Commands, host: Sequence[str], reads: Sequence[str]
) -> HostApi | None:
    if not commands.has(program):
        return None
    code, _, _ = commands.run([program, "auth", "status", *host])
    return CommandApi(program, commands, address.host, (program, "api", *host), reads) if code == 0 else None


def _tea(address: Address, commands: Commands) -> HostApi | None:
    """The owner chooses the names of tea's logins; the login whose server has the repository is used."""
    if not commands.has("tea"):
        return None
    code, out, _ = commands.run(["tea", "logins", "list", "--output", "json"])
    logins = _parsed(out) if code == 0 else None
    for login in logins if isinstance(logins, list) else ():
        if isinstance(login, dict) and _is_at(login, address) and (name := str(login.get("name") or "")):
            prefix = ("tea", "api", f"--login={name}", "--include")
            return CommandApi("tea", commands, address.host, prefix, ("--data", "@-"))
    return None


def _is_at(login: Mapping[str, Json], address: Address) -> bool:
    """Whether a login is for the repository's server: by its address, or by the name under which ssh reaches it."""
    server = urlsplit(str(login.get("url") or ""))
    here = urlsplit(address.origin)
    if server.hostname == here.hostname:
        # With ssh, the port of its pages is unknown.
        return here.port in (None, server.port)
    return address.host in {str(login.get(key) or "").lower() for key in ("sshhost", "ssh_host", "ssh host")}


def _method(program: str, method: str) -> list[str]:
    return ["-X", method] if program == "tea" else ["--method", method]


def _parsed(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1] or found[2]) if found else None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program with all its processes; it has its own process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)
            return
