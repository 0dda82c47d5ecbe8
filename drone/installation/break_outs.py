"""Break-outs that `drone doctor --sandbox` tries for real: each as a command of the model would, against decoys.

A try that succeeds changes nothing: it reads a decoy, writes back the value that it read, or removes what it made.
What is refused proves something only if it is possible without walls: where that depends on the machine, the same line
is run without any for comparison.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import psutil

from drone.installation.policy import Policy
from drone.installation.settings import own_places
from drone.processes.ending import end_marked
from drone.processes.tree import MARK, alive, marked
from drone.sandbox import CommandSpec, Sandbox, choose
from drone.sandbox.opened import close_all
from shared.terminal.doctor import FAIL, OK, WARN, Check

OUT = "BROKEN-OUT"
SECONDS = 20.0
_ENDING_SECONDS = 5.0
"""How long the kernel may take to end a namespace whose sandbox is gone: what is there then has got out of it."""
_PROXY = (
    "if (: < /dev/tcp/127.0.0.1/3128) 2>/dev/null; then"
    ' exec 3<>/dev/tcp/127.0.0.1/3128 && printf "CONNECT %s HTTP/1.1\\r\\n\\r\\n" {host}:{port} >&3'
    ' && head -1 <&3 | grep " 200 "; else timeout 2 bash -c ": < /dev/tcp/{host}/{port}"; fi'
)
"""Where there is no proxy, connect directly."""
_SOCKETS = '/run/docker.sock /run/podman/podman.sock /run/dbus/system_bus_socket "$SSH_AUTH_SOCK"'
_CONNECT = 'import socket; socket.socket(socket.AF_UNIX).connect("{address}")'
_METADATA = "169.254.169.254"


@dataclass(frozen=True)
class _Decoys:
    """What a command must not reach, made for this examination."""

    word: str
    """A secret: in the files, in the environment, on the command line of a process, and a socket's name."""
    home: Path
    """A file in the owner's home."""
    tmp: Path
    port: int
    """Of a listener on this machine's loopback."""
    keys: Path
    """The drone's own home."""
    socket: Path
    """A listener beside those of docker and D-Bus, or where this user's own ones are."""


@dataclass(frozen=True)
class _BreakOut:
    """One try. It got out if its line succeeds, prints the secret word, changes the file or leaves a process."""

    name: str
    what: str
    line: str
    """A shell line with the fields of the decoys; `pattern` matches the word, and not itself."""
    by_network: bool = False
    """Whether it is open where the owner's policy allows the whole network."""
    compared: bool = False
    """Whether the machine may refuse it without walls too; it only reads, and is also tried without any."""


_TRIES = (
    _BreakOut("HOME", "read a file in your home", "grep . {home}"),
    _BreakOut("TMP", "read a file in /tmp", "grep . {tmp}"),
    _BreakOut("WRITE", "change a file outside", "echo changed >> {home}; false"),
    _BreakOut("KEYS", "read this drone's keys", "find {keys} -type f -size +0 | grep ."),
    _BreakOut("SSH", "read ssh keys", "cat {home.parent}/.ssh/* /etc/ssh/ssh_host_*_key | grep .", compared=True),
    _BreakOut("PASSWORDS", "read the password hashes", "cat /etc/shadow /etc/gshadow | grep .", compared=True),
    _BreakOut("SYSTEM", "change a system directory", "f=/usr/.drone-$$; touch $f && rm $f"),
    _BreakOut("KERNEL", "change the kernel's settings", "f=/proc/sys/kernel/core_pattern; v=$(cat $f) && echo $v > $f"),
    _BreakOut("HOSTNAME", "change the host name", "f=/proc/sys/kernel/hostname; v=$(cat $f) && echo $v > $f"),
    _BreakOut("ENVIRONMENT", "read the drone's environment", "env; grep -qsa {pattern} /proc/*/environ"),
    _BreakOut("PROCESSES", "see other processes", "grep -qsa {pattern} /proc/*/cmdline"),
    _BreakOut("ROOT", "reach the files around", "grep -s . /proc/*/root{home} /proc/*/cwd{home}"),
    _BreakOut("RIGHTS", "have rights of root", "grep CapEff /proc/self/status | grep -v ':.0*$'"),
    _BreakOut(
        "SUDO", "become root", "(sudo -n id -u || su -c 'id -u' </dev/null || setpriv --reuid 0 id -u) | grep -x 0"
    ),
    _BreakOut("MOUNT", "mount a file system", "mount -t tmpfs none /mnt && umount /mnt"),
    _BreakOut(
        "DISK",
        "read a disk or the memory",
        "cat /dev/sd? /dev/vd? /dev/nvme* /dev/mem | head -c 1 | wc -c | grep 1",
        compared=True,
    ),
    _BreakOut("DEVICE", "make a device", "cd && mknod disk b 8 0 && rm disk"),
    _BreakOut(
        "LOG", "read the kernel's log", "dmesg | grep . || timeout 1 head -c 1 /dev/kmsg | grep .", compared=True
    ),
    _BreakOut(
        "SOCKETS",
        "reach docker, D-Bus or ssh-agent",
        f"""(for s in {_SOCKETS}; do test -S "$s" && exit; done; false) || python3 -c '{_CONNECT}'""".replace(
            "{address}", "{socket}"
        ),
    ),
    _BreakOut(
        "ABSTRACT",
        "reach an abstract socket",
        f"python3 -c '{_CONNECT}'".replace("{address}", "\\0{word}"),
        by_network=True,
    ),
    _BreakOut("LOOPBACK", "reach this machine's ports", "echo > /dev/tcp/127.0.0.1/{port}", by_network=True),
    _BreakOut("PROXY", "reach them through the proxy", _PROXY.replace("{host}", "127.0.0.1"), by_network=True),
    _BreakOut(
        "METADATA",
        "reach a cloud's metadata",
        _PROXY.replace("{host}", _METADATA).replace("{port}", "80"),
        by_network=True,
        compared=True,
    ),
    _BreakOut(
        "LEFTOVER",
        "leave a process behind",
        "setsid nohup sleep 60 >/dev/null 2>&1 & sleep 0.3; false",
        compared=True,
    ),
)


class _Finding(Enum):
    OUT = "possible"
    REFUSED = "refused"
    UNPROVABLE = "not provable here: it is refused without a sandbox, too"


def examine_sandbox(kind: str, environ: Mapping[str, str], policy: Policy, keys: Path) -> list[Check]:
    """Try all break-outs in the sandbox that runs would get. Raises Precondition if that sandbox does not work here.

    An open way is a failure in a sandbox; without one, which its owner knows, and for a network that the policy
    opens, it is a warning.
    """
    with _decoys(environ, keys) as decoys, tempfile.TemporaryDirectory(prefix="drone-") as directory:
        owner = f"doctor-{secrets.token_hex(8)}"
        secret = {**environ, "DRONE_DECOY_KEY": decoys.word}
        private = own_places(keys, environ)
        chosen = choose(kind, secret, policy.network, policy.limits, owner=owner, image=policy.image, private=private)
        sandbox, work = chosen.for_session(scratch=Path(directory, "scratch")), Path(directory, "work")
        work.mkdir()
        examination = _Examination(sandbox, work, decoys, owner, secret)
        return [_check(each, examination.finding(each), sandbox, policy) for each in _TRIES]


@dataclass(frozen=True)
class _Examination:
    """Tries break-outs in one sandbox."""

    sandbox: Sandbox
    work: Path
    decoys: _Decoys
    owner: str
    environ: Mapping[str, str]

    def finding(self, each: _BreakOut) -> _Finding:
        """What became of one try. A refusal by the network policy proves itself."""
        refused: list[str] = []

        def walled(line: str) -> str:
            done = self.sandbox.run(CommandSpec(line, workspace=self.work, timeout=SECONDS))
            refused.extend(done.refused)
            return done.output

        if self._gets_out(each, walled, ending=_ENDING_SECONDS):
            return _Finding.OUT
        if refused:
            return _Finding.REFUSED
        # Without a sandbox, everything but a leftover was tried without walls already.
        provable = self._gets_out(each, self._bare) if each.compared else self.sandbox.kind != "none"
        return _Finding.REFUSED if provable else _Finding.UNPROVABLE

    def _gets_out(self, each: _BreakOut, run: Callable[[str], str], *, ending: float = 0.0) -> bool:
        decoys = self.decoys
        pattern = f"[{decoys.word[0]}]{decoys.word[1:]}"
        line = each.line.format(**vars(decoys), pattern=pattern)
        # The word that tells of success is not on the command line, which the command can see.
        output = run(f"({line}) && echo BROKEN''-OUT")
        changed = decoys.home.read_text() != f"{decoys.word}\n"
        decoys.home.write_text(f"{decoys.word}\n")
        left = self._left_behind(ending)
        return OUT in output or decoys.word in output or changed or left

    def _left_behind(self, seconds: float) -> bool:
        """Whether a process of the command is still there after that time. It is ended."""
        found = marked(f"{self.owner}.")
        psutil.wait_procs(found, timeout=seconds)
        left = bool(alive(found))
        if left:
            end_marked(f"{self.owner}.")
        return left

    def _bare(self, line: str) -> str:
        """Run a line as this user without a sandbox and without what holds its processes; return its output."""
        try:
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=self.work,
                env={**self.environ, MARK: f"{self.owner}.bare"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.decode(errors="replace")


def _check(each: _BreakOut, finding: _Finding, sandbox: Sandbox, policy: Policy) -> Check:
    code = f"D-WALL-{each.name}"
    if finding is not _Finding.OUT:
        return Check(code, OK, each.what, finding.value)
    if sandbox.kind == "none":
        return Check(code, WARN, each.what, "possible: there is no sandbox", "apt-get install bubblewrap")
    if each.by_network and policy.network.kind == "host":
        return Check(code, WARN, each.what, 'possible: the policy has access = "host"', f"edit {policy.place}")
    return Check(code, FAIL, each.what, f"possible in {sandbox.kind}", "drone doctor    and report it: SECURITY.md")


@contextmanager
def _decoys(environ: Mapping[str, str], keys: Path) -> Iterator[_Decoys]:
    word = f"decoy{secrets.token_hex(12)}"
    with ExitStack() as stack:
        home = stack.enter_context(_file(Path(environ.get("HOME") or Path.home()), word))
        tmp = stack.enter_context(_file(Path(tempfile.gettempdir()), word))
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{word}")
        abstract.listen()
        sleeper = subprocess.Popen([word, "600"], env={"WORD": word}, cwd="/", executable="/bin/sleep")
        stack.callback(sleeper.wait)
        stack.callback(sleeper.kill)
        path = stack.enter_context(_listening(environ))
        yield _Decoys(word, home, tmp, int(listener.getsockname()[1]), keys, path)
    close_all()


@contextmanager
def _file(directory: Path, word: str) -> Iterator[Path]:
    """A file that every user could read."""
    descriptor, name = tempfile.mkstemp(prefix=".drone-decoy-", dir=directory)
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{word}\n")
        path.chmod(0o644)
        yield path
    finally:
        path.unlink()


@contextmanager
def _listening(environ: Mapping[str, str]) -> Iterator[Path]:
    """A socket to which every user could connect."""
    places = ["/run", environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir()]
    writable = next(place for place in places if place and os.access(place, os.W_OK | os.X_OK))
    with tempfile.TemporaryDirectory(prefix=".drone-decoy-", dir=writable) as directory:
        path = Path(directory, "socket")
        Path(directory).chmod(0o755)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            path.chmod(0o777)
            listener.listen()
            yield path
