"""The drone's checks: its prerequisites (Python, git, sandbox, disk), its registration, and the servers it needs."""

from __future__ import annotations

import platform
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from drone.installation import policy
from drone.installation.disk import free_bytes
from drone.installation.home import DroneConfig, DroneHome
from drone.installation.server_checks import REGISTER, check_broker, check_certificates, check_server
from drone.installation.settings import DroneSettings, own_places
from drone.installation.workspace_marker import WORKSPACE_MARKER, claim_root
from drone.sandbox.bwrap_program import bwrap_program
from shared.errors import FleetError
from shared.terminal.doctor import FAIL, OK, WARN, Check

if TYPE_CHECKING:
    from drone.sandbox import Sandbox
    from drone.sandbox.resources import Bound

OLDEST_GIT = (2, 39)
DISK_WARN, DISK_FAIL = 5 * 10**9, 5 * 10**8
INSTALL_SANDBOX = "apt-get install bubblewrap"
_LIMITS_FIX = (
    "drone install-service        runs the drone where the kernel enforces them",
    "start this machine with cgroups of version 2, or run the drone as root",
)
"""For bubblewrap and no sandbox, and for containers."""


def examine(settings: DroneSettings) -> list[Check]:
    """All checks that apply now; those about the registration only if there is one."""
    home = settings.home
    registration = check_registration(home)
    config = home.config() if registration.state is OK else None
    checks = [
        check_python(),
        check_git(),
        check_litellm(),
        check_policy(settings.policy_file),
        check_disk(home.path, *_workspace(config)),
        registration,
    ]
    kind = config.sandbox if config else "auto"
    sandbox = check_sandbox(kind, settings.environ, settings.policy_file, _private(settings, config))
    checks += [sandbox, *check_limits(home, settings.policy_file, kind, settings.environ, sandbox)]
    checks += check_network(settings.policy_file, sandbox, kind, settings.environ)
    if config:
        checks += [check_files(home), check_workspace(config), *check_server(config), check_broker(home)]
        checks += check_certificates(config, home)
    return checks


def _private(settings: DroneSettings, config: DroneConfig | None) -> tuple[Path, ...]:
    return own_places(settings.home.path, settings.environ, *_workspace(config))


def _workspace(config: DroneConfig | None) -> list[Path]:
    return [Path(config.workspace)] if config else []


def try_break_outs(settings: DroneSettings) -> list[Check]:
    """Real break-outs from this drone's sandbox; the one that a new drone would get, if it is not registered.

    Raises Precondition if the sandbox or the policy cannot be used.
    """
    from drone.installation.break_outs import examine_sandbox

    home = settings.home
    kind = home.config().sandbox if check_registration(home).state is OK else "auto"
    return examine_sandbox(kind, settings.environ, policy.load(settings.policy_file), home.path)


def check_python() -> Check:
    """The lock file is made for Python 3.11 to 3.13."""
    supported = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return Check(
        "D-PYTHON", OK if supported else WARN, "python", platform.python_version(), "use Python 3.11, 3.12 or 3.13"
    )


def check_git() -> Check:
    """The drone requires git."""
    try:
        answer = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return Check("D-GIT", FAIL, "git", f"cannot be run: {error}", "apt-get install git")
    numbers = re.search(r"(\d{1,9})\.(\d{1,9})", answer)
    recent = numbers is not None and (int(numbers[1]), int(numbers[2])) >= OLDEST_GIT
    return Check("D-GIT", OK if recent else WARN, "git", answer.strip(), "install git 2.39 or newer")


def check_litellm() -> Check:
    """Look up the version without an import, which takes seconds.

    LiteLLM's completion with tools needs `mcp`, which it does not declare.
    """
    try:
        found = f"{version('litellm')}, mcp {version('mcp')}"
    except PackageNotFoundError as error:
        return Check("D-LITELLM", FAIL, "litellm", f"{error.name} is not installed", "reinstall dronefleet")
    return Check("D-LITELLM", OK, "litellm", found)


def check_policy(file: Path) -> Check:
    """A policy that cannot be understood stops the drone."""
    try:
        found = policy.load(file)
    except FleetError as error:
        return Check("D-POLICY", FAIL, "policy", error.why, error.next)
    allowed = [name for name in ("extensions", "mcp_servers", "file_urls") if getattr(found, name)]
    words = [*allowed, *(f"key {name}" for name in found.keys)]
    return Check("D-POLICY", OK, "policy", f"{'allows ' + ', '.join(words) if words else 'defaults only'} ({file})")


def check_disk(*places: Path) -> Check:
    """Room for mirrors, workspaces and logs, where there is least of it."""
    free, place = min(((free_bytes(place), place) for place in places), key=itemgetter(0))
    state = FAIL if free < DISK_FAIL else WARN if free < DISK_WARN else OK
    fix = "free disk space there, or use another disk: DRONE_HOME, drone register --workspace DIR"
    return Check("D-DISK", state, "disk", f"{free / 10**9:.1f} GB free at {place}", fix)


def check_registration(home: DroneHome) -> Check:
    """Whether there is a readable registration."""
    try:
        config = home.config()
        home.credentials()
        home.private_key()
    except FleetError as error:
        return Check("D-REGISTERED", FAIL, "registration", f"{error.what}: {error.why}", REGISTER)
    return Check("D-REGISTERED", OK, "registration", f"{config.name} ({config.drone_id}) with {config.server_url}")


def check_files(home: DroneHome) -> Check:
    """Keys and credentials belong to their owner alone."""
    loose = home.loosely_kept()
    if not loose:
        return Check("D-FILES", OK, "key files", "readable only by their owner")
    names = " ".join(str(file) for file in loose)

    def close_them() -> None:
        for file in loose:
            file.chmod(stat.S_IRUSR | stat.S_IWUSR)

    return Check("D-FILES", FAIL, "key files", f"other users can read {names}", f"chmod 600 {names}", close_them)


def check_workspace(config: DroneConfig) -> Check:
    """The workspace must exist, be ours and be writable."""
    path = Path(config.workspace)
    if not path.exists():
        return Check("D-WORKSPACE", FAIL, "workspace", f"{path} not found", f"mkdir {path}", lambda: claim_root(path))
    if not (path / WORKSPACE_MARKER).exists():
        return Check(
            "D-WORKSPACE", FAIL, "workspace", f"{path} is not a drone workspace: no {WORKSPACE_MARKER}", REGISTER
        )
    if not _writable(path):
        return Check("D-WORKSPACE", FAIL, "workspace", f"{path} is not writable", f"sudo chown -R $USER {path}")
    return Check("D-WORKSPACE", OK, "workspace", str(path))


def check_sandbox(kind: str, environ: Mapping[str, str], policy_path: Path, private: Sequence[Path] = ()) -> Check:
    """The sandbox for the model's commands, tested with a command; `private` places are hidden from them."""
    from drone.sandbox import choose

    rules = policy.Policy()
    with suppress(FleetError):  # a policy that cannot be read has a check of its own
        rules = policy.load(policy_path)
    try:
        sandbox = choose(kind, environ, image=rules.image, private=private)
        rules.check_sandbox(sandbox.kind)
        tried = _trial(sandbox)
    except FleetError as error:
        found = ": ".join(filter(None, (error.what, error.why)))
        fix = _allowed_fix(rules, environ) if error.code == "E-POLICY-SANDBOX" else error.next
        return Check("D-SANDBOX", FAIL, "sandbox", found, fix)
    if tried:
        return Check("D-SANDBOX", FAIL, "sandbox", f"{sandbox.kind}: {tried}", _sandbox_fix(environ))
    if sandbox.kind == "none":
        return Check("D-SANDBOX", WARN, "sandbox", f"none: {sandbox.warning}", _sandbox_fix(environ))
    account = "" if sandbox.user is None else f"; root runs this drone, user {sandbox.user} the commands"
    program = _container_program(sandbox) or bwrap_program(environ)
    hidden = f"; hidden from commands: {', '.join(map(str, sandbox.hidden))}" if sandbox.hidden else ""
    return Check("D-SANDBOX", OK, "sandbox", f"{sandbox.kind}, tested ({program}){account}{hidden}")


def _allowed_fix(rules: policy.Policy, environ: Mapping[str, str]) -> str:
    """How to get a sandbox that the policy allows, or what keeps each of them from working here."""
    missing = []
    # Those that confine commands first.
    for kind in sorted(rules.sandboxes or (), key=lambda kind: kind == "none"):
        if not (why := _why_not(kind, environ, rules.image)):
            return REGISTER.replace("register", f"register --sandbox {kind}", 1)
        missing.append(why)
    return "; ".join(missing)


def _why_not(kind: str, environ: Mapping[str, str], image: str) -> str:
    """Why this kind of sandbox does not work here, and what to do; empty if it works."""
    from drone.sandbox import choose

    try:
        choose(kind, environ, image=image)
    except FleetError as error:
        return f"{kind}: {error.why}; {error.next}"
    return ""


def _container_program(sandbox: Sandbox) -> str:
    """The engine and the image; empty for another sandbox."""
    from drone.sandbox.container import ContainerSandbox

    if not isinstance(sandbox, ContainerSandbox):
        return ""
    return f"{sandbox.containers.engine.program}, image {sandbox.containers.engine.image}"


def _sandbox_fix(environ: Mapping[str, str]) -> str:
    program = bwrap_program(environ)
    return f"{program} --unshare-pid --ro-bind / / true        shows what fails" if program else INSTALL_SANDBOX


def check_network(policy_path: Path, sandbox: Check, kind: str, environ: Mapping[str, str]) -> list[Check]:
    """Whether the owner's limits on the network can be enforced; nothing about a policy that cannot be read."""
    from drone.sandbox.choice import explain_unenforced

    with suppress(FleetError):
        access = policy.load(policy_path).network
        found = f"{access.kind}{'; also ' if access.hosts else ''}{', '.join(access.hosts)}"
        if sandbox.state is not OK and access.kind != "host":
            fix = sandbox.fix or INSTALL_SANDBOX
            return [Check("D-NETWORK", FAIL if access.chosen else WARN, "network", f"{found}: needs a sandbox", fix)]
        if kind != "docker" and (why := explain_unenforced(access, environ)):
            if access.is_replaceable:
                found = f"{found}, but commands use the machine's own network"
            fix = f'in {policy_path}, under [network]: access = "host", which allows everything'
            return [Check("D-NETWORK", FAIL if access.chosen else WARN, "network", f"{found}: {why}", fix)]
        return [Check("D-NETWORK", OK, "network", found)]
    return []


def _trial(sandbox: Sandbox) -> str:
    """Run a small command in the sandbox and return its failure; empty if it succeeded."""
    from drone.sandbox import CommandSpec
    from drone.sandbox.opened import close_all

    with tempfile.TemporaryDirectory() as directory:
        result = sandbox.run(CommandSpec("echo tried > file && cat file", workspace=Path(directory), timeout=20))
    close_all()
    if result.return_code == 0 and result.output.strip() == "tried":
        return ""
    return f"a test command ended with exit code {result.return_code}: {result.output.strip()[:200]}"


def _writable(directory: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def check_limits(
    home: DroneHome, policy_path: Path, kind: str, environ: Mapping[str, str], sandbox: Check
) -> list[Check]:
    """How the limits on commands are enforced; nothing about a policy that cannot be read."""
    from drone.sandbox.account import is_root
    from drone.sandbox.resources.limit_values import readable

    with suppress(FleetError):
        found_policy = policy.load(policy_path)
        limits = found_policy.limits
        kernel = _held_by_kernel(home, kind, environ, found_policy.image)
        memory = "no limit" if limits.memory is None else readable(limits.memory)
        processes = "no limit" if limits.processes is None else f"{limits.processes:,}"
        found = f"memory {memory}, processes {processes} for the commands of a run"
        fix = _LIMITS_FIX[kind == "docker"]
        if limits.cpus is not None and "cpus" not in kernel:
            return [Check("D-LIMITS", FAIL, "limits", f"cpus = {limits.cpus:g} in {policy_path} needs a cgroup", fix)]
        if {"memory", "processes"} <= kernel:
            return [Check("D-LIMITS", OK, "limits", f"{found}, by cgroup")]
        # In a sandbox, the commands of root's drone have an account of their own, which the kernel holds to a number.
        if is_root() and sandbox.state is not OK:
            return [Check("D-LIMITS", WARN, "limits", f"{found}, only looked at twice a second", fix)]
        return [Check("D-LIMITS", OK, "limits", f"{found}; the memory is looked at twice a second")]
    return []


def _held_by_kernel(home: DroneHome, kind: str, environ: Mapping[str, str], image: str) -> set[Bound]:
    """What a cgroup bounds: the drone's own, or that of a container. Raises FleetFault without an engine."""
    from drone.sandbox.container import find_engine, holds_by_cgroup
    from drone.sandbox.resources import available

    if kind != "docker":
        return available(home.holder())
    return {"memory", "processes", "cpus"} if holds_by_cgroup(find_engine(environ, image)) else set()
