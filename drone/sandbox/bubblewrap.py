"""The bubblewrap sandbox: the system read-only, the workspace read-write, and the rest of the machine absent.

The visible paths are listed, not the hidden ones: the owner's home, other users, the drone's keys, /run with its
sockets and every data directory stay out without being named. Processes run in their own PID namespace, which dies
with its first process.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from drone.sandbox.command import Watch, run_line
from drone.sandbox.environment import clean_environment, search_path
from drone.sandbox.limits import limited, new_mark, shell_line
from drone.sandbox.own_variables import carried
from drone.sandbox.protocol import NO_VARIABLES, Check, CommandLine, CommandResult, OnOutput, Tally

HOME = "/home/drone"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/sys")
"""Read-only if they exist."""
HIDDEN = ("/etc/dronefleet",)
"""Below SYSTEM, but hidden from commands: settings of the drone's own service."""
_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session")


@dataclass(frozen=True)
class Bubblewrap:
    """Runs commands in bubblewrap. `network` is on unless policy says otherwise; if off, there is not even loopback."""

    environ: Mapping[str, str] = field(repr=False, compare=False)
    """The drone's own environment."""
    network: bool = True
    owner: str = ""
    scratch: Path | None = None
    read_only: tuple[Path, ...] = ()
    tally: Tally = field(default_factory=Tally)
    kind: str = "bwrap"
    warning: str = ""

    def for_session(self, *, scratch: Path, read_only: Sequence[Path] = ()) -> Bubblewrap:
        return replace(self, scratch=scratch, read_only=(*self.read_only, *read_only))

    def run(  # noqa: PLR0913 - the protocol's
        self,
        command: str | Sequence[str],
        *,
        workspace: Path,
        timeout: float,
        log: Path | None = None,
        on_output: OnOutput | None = None,
        check: Check | None = None,
        read_only: Sequence[Path] = (),
    ) -> CommandResult:
        also_read = replace(self, read_only=(*self.read_only, *read_only))
        line = also_read.line(command, workspace=workspace)
        return run_line(line, Watch(timeout, log, on_output, check), self.tally)

    def line(
        self, command: str | Sequence[str], *, workspace: Path, variables: Mapping[str, str] = NO_VARIABLES
    ) -> CommandLine:
        mark = new_mark(self.owner)
        visible = _visible_directories()
        path = search_path(visible, self.environ)
        environment = clean_environment(home=HOME, tmp="/tmp", path=path, mark=mark, source=self.environ)  # noqa: S108
        inside, carriers = carried(shell_line(command), variables)
        arguments = [
            *("bwrap", *_NAMESPACES, "--cap-drop", "ALL"),
            *([] if self.network else ["--unshare-net"]),
            *_mounts(visible, self.environ),
            *self._places(workspace.resolve()),
            *("--", *inside),
        ]
        return CommandLine(limited(arguments), environment | carriers, Path("/"), mark)

    def _places(self, workspace: Path) -> list[str]:
        """Home, /tmp, additional readable paths, the workspace. A later mount covers an earlier one."""
        mounts = ["--tmpfs", HOME, "--tmpfs", "/tmp"]  # noqa: S108
        if self.scratch:
            # On disk and for the whole session: the next command finds the files that a command leaves in /tmp, and
            # a large file there does not fill the memory, as it would in a tmpfs.
            mounts = []
            for directory, place in ((self.scratch / "home", HOME), (self.scratch / "tmp", "/tmp")):  # noqa: S108
                directory.mkdir(parents=True, exist_ok=True)
                mounts += ["--bind", str(directory), place]
        for path in self.read_only:
            mounts += ["--ro-bind", str(path), str(path)]
        mounts += ["--bind", str(workspace), str(workspace), "--chdir", str(workspace)]
        # Last, or bwrap could not create the mount points. A write outside the workspace fails instead of vanishing.
        return [*mounts, "--remount-ro", "/"]


def _visible_directories() -> list[Path]:
    """The system, and the interpreter that runs the drone: the only Python on some machines."""
    found = [Path(name) for name in SYSTEM if Path(name).exists()]
    own = Path(sys.base_prefix)
    return found if any(own.is_relative_to(root) for root in found) else [*found, own]


def _mounts(visible: Sequence[Path], environ: Mapping[str, str]) -> list[str]:
    mounts = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/var/tmp"]  # noqa: S108
    for path in visible:
        if path.is_symlink():
            mounts += ["--symlink", str(path.readlink()), str(path)]
        else:
            mounts += ["--ro-bind", str(path), str(path)]
    for path in filter(Path.is_dir, map(Path, HIDDEN)):
        mounts += ["--tmpfs", str(path)]
    for needed in _needed_files(environ):
        if not any(needed.is_relative_to(root) for root in visible):
            mounts += ["--ro-bind-try", str(needed), str(needed)]
    return mounts


def _needed_files(environ: Mapping[str, str]) -> list[Path]:
    """Single files in other places: the name server's settings below /run, and the owner's certificates."""
    names = ["/etc/resolv.conf", "/etc/localtime", environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")]
    paths = [Path(name) for name in names if name]
    return [place for path in paths for place in dict.fromkeys((path, path.resolve())) if place.exists()]


def is_installed() -> bool:
    return shutil.which("bwrap") is not None
