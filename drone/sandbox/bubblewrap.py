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
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Self

from drone.processes.tree import MARK
from drone.sandbox import account
from drone.sandbox.bwrap_program import bwrap_program
from drone.sandbox.command import Watch, at_once
from drone.sandbox.command_lines import is_long, limited, mark_of_keeper, new_mark, passable, shell_line, shell_program
from drone.sandbox.environment import carried, clean_environment, own_python, search_path
from drone.sandbox.keepers import OWN_PROCESSES, Keepers, Kind, run_held
from drone.sandbox.network import MACHINES_OWN, Gateway, Network, NetworkAccess
from drone.sandbox.protocol import NO_VARIABLES, Asked, CommandLine, CommandResult, CommandSpec, Tally
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
_OF_A_SESSION = {"home": HOME, "tmp": "/tmp", "shm": "/dev/shm"}  # noqa: S108
"""Directories of its scratch, and where commands see them."""
_SHOWN = ("--bind", "--ro-bind", "--ro-bind-try")


@dataclass(frozen=True)
class _Mounts:
    """bubblewrap's options about files, and which files they show."""

    options: tuple[str, ...]
    identities: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, options: Sequence[str]) -> Self:
        return cls(tuple(options), cls._identities(options))

    def are_as_before(self) -> bool:
        """Whether none of them was replaced by another one with its name."""
        return self._identities(self.options) == self.identities

    @staticmethod
    def _identities(options: Sequence[str]) -> tuple[tuple[int, int], ...]:
        return tuple(_identity(options[at + 1]) for at, word in enumerate(options) if word in _SHOWN)


@dataclass(frozen=True)
class _Walls:
    """bubblewrap with all its options, and variables for what it is connected to."""

    arguments: tuple[str, ...]
    proxies: dict[str, str]
    identities: tuple[tuple[int, int], ...]


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
    keepers: Keepers = field(default_factory=Keepers, compare=False)
    mounts: dict[Hashable, _Mounts] = field(default_factory=dict, repr=False, compare=False)
    """For the places of earlier commands."""
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
            workspace, mark = spec.workspace.resolve(), new_mark(self.owner)
            walls = also_read._walls(workspace)
            kind = also_read._kind(walls)
            if self.scratch is None:
                stack.callback(self.keepers.leave, kind)
            watch = Watch(spec)
            if self.resources:
                usage = self.resources.watch([spec.workspace, *([scratch] if scratch else [])])
                watch = Watch(spec, usage, self.resources.spawn)
            asked = Asked(shell_line(command), self._environment(mark) | walls.proxies, workspace)
            result = run_held(self.keepers, kind, asked, watch, self.tally)
            refused = self.network.take_refused() if self.network else ()
            reached = self.resources.take_reached() if self.resources else ()
            return replace(result, refused=refused, reached=reached)

    def line(
        self, command: str | Sequence[str], *, workspace: Path, variables: Mapping[str, str] = NO_VARIABLES
    ) -> CommandLine:
        mark, walls = new_mark(self.owner), self._walls(workspace.resolve())
        inside, carriers = carried(shell_line(command), variables)
        arguments = limited([*walls.arguments, "--", *self._inside(inside)], self.resources)
        return CommandLine(arguments, self._environment(mark) | walls.proxies | carriers, Path("/"), mark)

    def _kind(self, walls: _Walls) -> Kind:
        def around(own: Sequence[str]) -> Asked:
            words = [*walls.arguments, "--as-pid-1", "--", *self._inside([self.python, *own], OWN_PROCESSES)]
            environment = {"PATH": self._path(), MARK: mark_of_keeper(self.owner)}
            return Asked(limited(words, self.resources), environment, Path("/"))

        return Kind((walls.arguments, walls.identities), around, self.resources.spawn if self.resources else at_once)

    def _walls(self, workspace: Path) -> _Walls:
        enter, options, proxies = self.network.connected() if self.network else ([], [], {})
        self._hand_over(workspace)
        place = (workspace, self.scratch, self.read_only)
        mounts = self.mounts.get(place)
        if mounts is None or not mounts.are_as_before():
            mounts = self.mounts[place] = _Mounts.of(self._mounts(workspace))
        begin = [*enter, bwrap_program(self.environ) or "bwrap", *_NAMESPACES, *_capabilities(self.user), *options]
        return _Walls((*begin, *mounts.options), proxies, mounts.identities)

    def _mounts(self, workspace: Path) -> list[str]:
        return [
            *_system(_visible_directories(self.hidden), self.hidden, self.environ),
            # Root may write the kernel's settings even without capabilities.
            *(["--ro-bind", "/proc/sys", "/proc/sys"] if self.user is not None else []),
            *self._places(workspace),
        ]

    def _inside(self, command: Sequence[str], own: int = 0) -> list[str]:
        """A command with what is set inside: the limit on processes, and the account."""
        command = list(command)
        if self.resources is not None:
            alone = self.user is None and not _is_set_user_id(bwrap_program(self.environ) or "bwrap")
            user = os.getuid() if self.user is None else self.user
            command = self.resources.counted(command, user, alone=alone, own=own)
        return command if self.user is None else account.switched(command)

    def _path(self) -> str:
        return search_path(_visible_directories(self.hidden), self.environ)

    def _environment(self, mark: str) -> dict[str, str]:
        return clean_environment(home=HOME, tmp="/tmp", path=self._path(), mark=mark, source=self.environ)  # noqa: S108

    def _hand_over(self, workspace: Path) -> None:
        """Make the directories that commands may write, and give them to their account."""
        scratch = [] if self.scratch is None else [self.scratch / name for name in _OF_A_SESSION]
        for directory in scratch:
            directory.mkdir(parents=True, exist_ok=True)
        if self.user is not None:
            for directory in (workspace, *scratch):
                account.hand_over(directory, self.user)

    def _places(self, workspace: Path) -> list[str]:
        """Home, /tmp, additional readable paths, the workspace. A later mount covers an earlier one."""
        mounts = self._scratch_places()
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
        mounts = []
        for name, place in _OF_A_SESSION.items():
            directory = self.scratch / name
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


def _system(visible: Sequence[Path], hidden: Sequence[Path], environ: Mapping[str, str]) -> list[str]:
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


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - for some twenty paths with each command
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _is_set_user_id(program: str) -> bool:
    """Whether bwrap needs no user namespace, in which the kernel would count a command's processes apart."""
    return Path(program).exists() and bool(Path(program).stat().st_mode & stat.S_ISUID)
