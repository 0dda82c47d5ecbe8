"""The bubblewrap sandbox: the system read-only, the workspace read-write, and the rest of the machine absent.

The visible paths are listed, not the hidden ones: the owner's home, other users, the drone's keys, /run with its
sockets and every data directory stay out without being named. Where one of these is below a visible path, emptiness is
mounted over it. Processes run in their own PID namespace, which dies with its first process. On a drone that root runs,
commands have another account (`account.py`).
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from drone.sandbox import account
from drone.sandbox.bwrap_program import bwrap_program
from drone.sandbox.command import Watch, run_line
from drone.sandbox.command_lines import is_long, limited, new_mark, passable, shell_line, shell_program
from drone.sandbox.environment import carried, clean_environment, own_python, search_path
from drone.sandbox.network import MACHINES_OWN, Gateway, Network, NetworkAccess
from drone.sandbox.protocol import NO_VARIABLES, CommandLine, CommandResult, CommandSpec, Tally
from drone.sandbox.resources import Resources
from shared.errors import Precondition

HOME = "/home/drone"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/sys")
"""Read-only if they exist."""
HIDDEN = ("/etc/dronefleet", "/etc/ssh", "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-")
"""Below SYSTEM, but hidden from commands: settings of the drone's own service, host keys and password hashes."""
_NAMESPACES = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session"),
)


@dataclass(frozen=True)
class Bubblewrap:
    """Runs commands in bubblewrap."""

    environ: Mapping[str, str] = field(repr=False, compare=False)
    """The drone's own environment."""
    network: Network | None = None
    """What commands can reach; None: all that the machine can."""
    resources: Resources | None = None
    """What commands may use of the machine; None: all of it."""
    owner: str = ""
    user: int | None = None
    """The account of the commands, on a drone that root runs (`account.of_commands`)."""
    scratch: Path | None = None
    read_only: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    """Below SYSTEM, and private (`hidden_places`)."""
    tally: Tally = field(default_factory=Tally)
    kind: str = "bwrap"
    python: str = field(default_factory=own_python)
    warning: str = ""

    @property
    def network_rule(self) -> str:
        return self.network.access.rule if self.network else MACHINES_OWN

    @property
    def gateway(self) -> Gateway:
        return self.network.gateway if self.network else Gateway(NetworkAccess("host"), self.environ)

    def for_session(self, *, scratch: Path, read_only: Sequence[Path] = ()) -> Bubblewrap:
        return replace(self, scratch=scratch, read_only=(*self.read_only, *read_only))

    def run(self, spec: CommandSpec) -> CommandResult:
        with ExitStack() as stack:
            command, scratch = spec.command, self.scratch
            if scratch is None and (self.user is not None or is_long(command)):
                # A tmpfs belongs to root, and the account of the commands could not write there.
                scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drone-")))
            if scratch is not None:
                command = stack.enter_context(passable(command, shell_program(), scratch / "tmp", "/tmp"))  # noqa: S108
            also_read = replace(self, scratch=scratch, read_only=(*self.read_only, *spec.read_only))
            line = also_read.line(command, workspace=spec.workspace)
            watch = Watch(spec)
            if self.resources:
                usage = self.resources.watch([spec.workspace, *([scratch] if scratch else [])])
                watch = Watch(spec, usage, self.resources.spawn)
            result = run_line(line, watch, self.tally)
            refused = self.network.take_refused() if self.network else ()
            reached = self.resources.take_reached() if self.resources else ()
            return replace(result, refused=refused, reached=reached)

    def line(
        self, command: str | Sequence[str], *, workspace: Path, variables: Mapping[str, str] = NO_VARIABLES
    ) -> CommandLine:
        mark = new_mark(self.owner)
        visible = _visible_directories(self.hidden)
        path = search_path(visible, self.environ)
        environment = clean_environment(home=HOME, tmp="/tmp", path=path, mark=mark, source=self.environ)  # noqa: S108
        inside, carriers = carried(shell_line(command), variables)
        program = bwrap_program(self.environ) or "bwrap"
        if self.resources is not None:
            alone = self.user is None and not _is_set_user_id(program)
            inside = self.resources.counted(inside, os.getuid() if self.user is None else self.user, alone=alone)
        if self.user is not None:
            inside = account.switched(inside)
        enter, options, proxies = self.network.connected() if self.network else ([], [], {})
        arguments = [
            *(*enter, program, *_NAMESPACES, *_capabilities(self.user)),
            *options,
            *_mounts(visible, self.hidden, self.environ),
            # Root may write the kernel's settings even without capabilities.
            *(["--ro-bind", "/proc/sys", "/proc/sys"] if self.user is not None else []),
            *self._places(workspace.resolve()),
            *("--", *inside),
        ]
        return CommandLine(limited(arguments, self.resources), environment | proxies | carriers, Path("/"), mark)

    def _places(self, workspace: Path) -> list[str]:
        """Home, /tmp, additional readable paths, the workspace. A later mount covers an earlier one."""
        mounts = self._scratch_places()
        if self.user is not None:
            account.hand_over(workspace, self.user)
        for path in self.read_only:
            mounts += [*_parents(path), "--ro-bind", str(path), str(path)]
        mounts += [*_parents(workspace), "--bind", str(workspace), str(workspace), "--chdir", str(workspace)]
        # Last, or bwrap could not create the mount points. A write outside the workspace fails instead of vanishing.
        return [*mounts, *(part for place in (*_in_memory(self.hidden), "/") for part in ("--remount-ro", place))]

    def _scratch_places(self) -> list[str]:
        if self.scratch is None:
            if self.user is not None:
                raise ValueError("commands of a drone that root runs need a session's home: use for_session")
            return ["--tmpfs", HOME, "--tmpfs", "/tmp", "--tmpfs", "/dev/shm"]  # noqa: S108
        # On disk and for the whole session: the next command finds the files that a command leaves in /tmp, and a
        # large file there does not fill the memory, as it would in a tmpfs.
        places = {"home": HOME, "tmp": "/tmp", "shm": "/dev/shm"}  # noqa: S108
        mounts = []
        for name, place in places.items():
            directory = self.scratch / name
            directory.mkdir(parents=True, exist_ok=True)
            if self.user is not None:
                account.hand_over(directory, self.user)
            mounts += [*_parents(Path(place)), "--bind", str(directory), place]
        return mounts if self.user is None else [*mounts, *_named(self.user, self.scratch)]


def _named(user: int, scratch: Path) -> list[str]:
    """Give the account a name: some programs do not start without one."""
    mounts = []
    for name, entry in (("passwd", f"drone:x:{user}:{user}::{HOME}:/bin/sh"), ("group", f"drone:x:{user}:")):
        system, own = Path("/etc", name), scratch / name
        if not own.exists() or own.stat().st_mtime < system.stat().st_mtime:
            text = f"{system.read_text(errors='surrogateescape').rstrip()}\n{entry}\n"
            own.write_text(text, errors="surrogateescape")
        mounts += ["--ro-bind", str(own), str(system)]
    return mounts


@lru_cache(maxsize=1024)
def _parents(place: Path) -> tuple[str, ...]:
    """The directories above a mount point, open to all: bwrap would make them its own user's alone."""
    return tuple(part for parent in reversed(place.parents[:-1]) for part in ("--dir", str(parent)))


def _capabilities(user: int | None) -> list[str]:
    kept = account.KEPT_FOR_THE_SWITCH if user is not None else ()
    return ["--cap-drop", "ALL", *(part for name in kept for part in ("--cap-add", name))]


def hidden_places(private: Sequence[Path]) -> tuple[Path, ...]:
    """Those of the private files and directories that commands would see, each without what is in another one.

    Raises Precondition for a directory that commands need.
    """
    system = [Path(name) for name in SYSTEM]
    found = sorted({path for each in private if (path := each.resolve()).exists() and _is_in(path, system)})
    for path in found:
        if path in system:
            raise Precondition(
                f"the drone cannot keep its files in {path}, which has the programs of its commands",
                code="E-SANDBOX",
                why="what is private is hidden from commands",
                next="export DRONE_HOME=DIR DRONE_POLICY=FILE        in a directory of their own",
            )
    return tuple(path for path in found if not _is_in(path.parent, found))


def _is_in(path: Path, directories: Sequence[Path]) -> bool:
    return any(path.is_relative_to(each) for each in directories)


def _visible_directories(hidden: Sequence[Path]) -> list[Path]:
    """The system, and the interpreter that runs the drone: the only Python on some machines."""
    found = [Path(name) for name in SYSTEM if Path(name).exists()]
    own = Path(sys.base_prefix)
    return found if _is_in(own, found) and not _is_in(own, hidden) else [*found, own]


def _mounts(visible: Sequence[Path], hidden: Sequence[Path], environ: Mapping[str, str]) -> list[str]:
    mounts = ["--proc", "/proc", "--dev", "/dev", "--dir", "/var", "--symlink", "/tmp", "/var/tmp"]  # noqa: S108
    for path in visible:
        if path.is_symlink():
            mounts += ["--symlink", str(path.readlink()), str(path)]
        else:
            mounts += [*_parents(path), "--ro-bind", str(path), str(path)]
    for path in filter(Path.exists, (*map(Path, HIDDEN), *hidden)):
        mounts += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    for path in (each for each in visible if _is_in(each, hidden)):
        mounts += [*_parents(path), "--ro-bind", str(path), str(path)]
    for needed in _needed_files(environ):
        if _is_in(needed, hidden) or not _is_in(needed, visible):
            mounts += [*_parents(needed), "--ro-bind-try", str(needed), str(needed)]
    return mounts


def _in_memory(hidden: Sequence[Path]) -> list[str]:
    """Where bwrap mounts a tmpfs of its own user: files that a command wrote there would be memory without a limit."""
    return ["/dev", *(str(path) for path in (*map(Path, HIDDEN), *hidden) if path.is_dir())]


def _needed_files(environ: Mapping[str, str]) -> list[Path]:
    """Single files in other places: the name server's settings below /run, and the owner's certificates."""
    names = ["/etc/resolv.conf", "/etc/localtime", environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")]
    paths = [Path(name) for name in names if name]
    return [place for path in paths for place in dict.fromkeys((path, path.resolve())) if place.exists()]


def _is_set_user_id(program: str) -> bool:
    """Whether bwrap needs no user namespace, in which the kernel would count a command's processes apart."""
    return Path(program).exists() and bool(Path(program).stat().st_mode & stat.S_ISUID)
