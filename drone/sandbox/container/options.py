"""The options with which a container is started: its walls, its account, its limits and what it sees of the machine."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from drone.sandbox import account
from drone.sandbox.command_lines import OPEN_FILES
from drone.sandbox.container.engine import Engine, fault
from drone.sandbox.environment import PROXIES
from drone.sandbox.network.access import NetworkAccess
from drone.sandbox.resources import ResourceLimits

HOME = "/home/drone"
OURS = "/run/dronefleet"
"""Where the container sees the program of its first process."""
MOST_PROCESSES = 32768
"""Of the commands' account on the machine. runc refuses a higher limit than it has itself."""
WALLS = (
    *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--hostname", "drone"),
    # Else SELinux keeps the container from the workspace, whose labels are the owner's.
    *("--security-opt", "label=disable"),
    *("--log-driver", "none", "--no-healthcheck", "--stop-signal", "SIGKILL"),
    # The engine passes on the owner's proxies from its own settings.
    *(word for name in PROXIES for word in ("--env", f"{name}=")),
)


@dataclass(frozen=True)
class Mounts:
    """What a container sees of the machine."""

    workspace: Path
    scratch: Path
    """Has `home` and `tmp`, the commands' own."""
    read_only: tuple[Path, ...] = ()


def options(engine: Engine, mounts: Mounts, ours: Path, access: NetworkAccess, limits: ResourceLimits) -> list[str]:
    """Those of `run`. `ours`: the directory with the program of the first process. Raises FleetFault."""
    return [
        *WALLS,
        # Its memory would not be the commands' where no cgroup counts it.
        *(["--read-only-tmpfs=false"] if engine.is_podman else []),
        *("--network", "host" if access.kind == "host" else "none"),
        *_user(engine),
        *_limits(engine, limits),
        *_mounts(mounts, ours, engine.environ),
    ]


def holds_by_cgroup(engine: Engine) -> bool:
    """Whether the engine can limit memory, processes and processor time: podman without root needs cgroup version 2."""
    return account.is_root() or not engine.is_podman or Path("/sys/fs/cgroup/cgroup.controllers").exists()


def _user(engine: Engine) -> list[str]:
    if account.is_root():
        return ["--user", f"{account.UNPRIVILEGED}:{account.UNPRIVILEGED}"]
    same = ["--userns", "keep-id"] if engine.is_podman else []
    return [*same, "--user", f"{os.getuid()}:{os.getgid()}"]


def _limits(engine: Engine, limits: ResourceLimits) -> Iterator[str]:
    by_cgroup = holds_by_cgroup(engine)
    most = MOST_PROCESSES if by_cgroup or limits.processes is None else min(limits.processes, MOST_PROCESSES)
    each = {"nofile": _at_most(resource.RLIMIT_NOFILE, OPEN_FILES), "nproc": _at_most(resource.RLIMIT_NPROC, most)}
    if limits.file_size is not None:
        each["fsize"] = limits.file_size
    for name, value in {**each, "core": 0}.items():
        yield from ("--ulimit", f"{name}={value}:{value}")
    if by_cgroup:
        yield from _by_cgroup(limits)
    elif limits.cpus is not None:
        raise fault(
            "podman cannot enforce the limit on processor time here: without root it needs cgroups of version 2",
            "on the drone: remove cpus from [limits] in the policy file",
        )


def _by_cgroup(limits: ResourceLimits) -> Iterator[str]:
    if limits.memory is not None:
        yield from ("--memory", str(limits.memory), "--memory-swap", str(limits.memory))
    if limits.cpus is not None:
        yield from ("--cpus", f"{limits.cpus:g}")
    yield from ("--pids-limit", str(limits.processes or -1))


def _at_most(kind: int, wanted: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _mounts(mounts: Mounts, ours: Path, environ: Mapping[str, str]) -> Iterator[str]:
    certificates = [Path(environ[name]) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if environ.get(name)]
    read_only = {path: path for path in (*mounts.read_only, *filter(Path.exists, certificates))}
    read_only |= {Path(OURS): ours, Path("/etc/passwd"): ours / "passwd", Path("/etc/group"): ours / "group"}
    home, tmp = mounts.scratch / "home", mounts.scratch / "tmp"
    # On disk, as in bubblewrap: what a command leaves in /tmp does not fill the memory.
    writable = {Path(HOME): home, Path("/tmp"): tmp, Path("/var/tmp"): tmp, mounts.workspace: mounts.workspace}  # noqa: S108
    for target, source in {**read_only, **writable}.items():
        if ":" in f"{source}{target}":
            raise fault(f"the engine cannot mount a path with a colon: {source}", "rename that directory")
        _make_mount_point(source, target, {Path(HOME): home, Path("/tmp"): tmp})  # noqa: S108
        yield from ("--volume", f"{source}:{target}{':ro' if target in read_only else ''}")


def _make_mount_point(source: Path, target: Path, scratch: Mapping[Path, Path]) -> None:
    """Make the place of a mount within the session's home or /tmp. The engine would make it too, as another user's."""
    for outer, directory in scratch.items():
        if target != outer and target.is_relative_to(outer) and source.is_dir():
            try:
                _make_directories(directory, target.relative_to(outer).parts)
            except OSError as error:
                raise fault(
                    f"{target} cannot be mounted: {error.strerror}", "remove the session on that drone"
                ) from error


def _make_directories(top: Path, names: tuple[str, ...]) -> None:
    """Commands write in `top`: a link that they made leads nowhere."""
    at = os.open(top, os.O_DIRECTORY)
    try:
        for name in names:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=at)
            inner = os.open(name, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
    finally:
        os.close(at)
