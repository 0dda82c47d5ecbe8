"""Which sandbox a drone uses: bubblewrap if a trial run works, else none; or exactly the requested one."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from drone.sandbox import account, network
from drone.sandbox.bubblewrap import Bubblewrap, hidden_places
from drone.sandbox.bwrap_program import bwrap_program
from drone.sandbox.container import Containers, ContainerSandbox, find_engine, remove_leftovers
from drone.sandbox.direct import Direct, warning_of
from drone.sandbox.network import Gateway, Network, NetworkAccess
from drone.sandbox.protocol import CommandSpec, Sandbox
from drone.sandbox.resources import ResourceLimits, Resources
from shared.errors import FleetFault, Precondition

SandboxKind = Literal["auto", "bwrap", "docker", "none"]
KINDS: tuple[SandboxKind, ...] = ("auto", "bwrap", "docker", "none")
NOT_INSTALLED = "bwrap is not installed"
DEFAULT_ACCESS = NetworkAccess()
_INSTALL = "sudo apt install bubblewrap   (Fedora: dnf install bubblewrap, Arch: pacman -S bubblewrap)"


def choose(  # noqa: PLR0913 - one for each who decides
    kind: str,
    environ: Mapping[str, str],
    access: NetworkAccess = DEFAULT_ACCESS,
    limits: ResourceLimits | None = None,
    *,
    owner: str = "",
    trial: bool = True,
    image: str = "",
    private: Sequence[Path] = (),
) -> Sandbox:
    """Return the sandbox of that kind. `owner`, for example a boot id, begins every command's mark (`end_marked`).

    `access` says what the run may reach; commands without a sandbox reach everything. `limits` are those on the
    machine's memory, processors and disk. Call `close_all` after the last command.

    `image` is that of containers; empty: the default one. `private` places are hidden from commands also where they are
    among the system's directories.

    Without `trial`, only whether it is installed is checked: for a drone that tried it when it started.
    `environ` is the drone's own environment; commands get the few variables of it that `environment.py` lists.

    Raises Precondition if the requested kind does not work here, which `auto` never does, if a private place is one of
    those directories itself, and if bubblewrap works but cannot keep commands from a network that they may not have.
    """
    resources, gateway = Resources(limits or ResourceLimits()), Gateway(access, environ)
    if kind == "none":
        return Direct(environ, gateway, resources, owner=owner)
    if kind in {"auto", "bwrap"}:
        reason = explain_missing(environ, trial=trial)
        if not reason:
            if trial:
                require_enforceable(access, environ)
            hidden, user = hidden_places(private), account.of_commands()
            return Bubblewrap(environ, Network(gateway), resources, owner=owner, user=user, hidden=hidden)
        if kind == "auto":
            warning = warning_of(reason if reason != NOT_INSTALLED else "")
            return Direct(environ, gateway, resources, owner=owner, warning=warning)
        raise _missing(kind, reason, _INSTALL)
    if kind == "docker":
        containers = Containers(partial(find_engine, environ, image), gateway, limits or ResourceLimits())
        sandbox = ContainerSandbox(environ, containers, owner=owner)
        return _tried(sandbox) if trial else sandbox
    raise Precondition(
        f'unknown sandbox "{kind}"',
        code="E-SANDBOX",
        why=f"expected one of {', '.join(KINDS)}",
        next="use --sandbox auto",
    )


def _tried(sandbox: ContainerSandbox) -> ContainerSandbox:
    """The sandbox after a trial run; what killed drones left is removed. Raises Precondition if it does not work."""
    try:
        engine = sandbox.containers.engine
        remove_leftovers(engine)
        with tempfile.TemporaryDirectory(prefix="drone-") as directory:
            tried = sandbox.run(CommandSpec(["touch", "tried"], workspace=Path(directory), timeout=60))
    except FleetFault as fault:
        raise _missing(sandbox.kind, fault.why, fault.next) from fault
    if tried.return_code != 0:
        why = f"a trial run in {engine.image} failed: {tried.output.strip()[:300] or 'it did not complete'}"
        raise _missing(sandbox.kind, why, f"{engine.program} run --rm {engine.image} true        shows what fails")
    return sandbox


def explain_missing(environ: Mapping[str, str], *, trial: bool = True) -> str:
    """Why bubblewrap cannot be used here, in a few words; empty if it can: a `trial` run worked."""
    if sys.platform != "linux":
        return "bubblewrap runs on Linux only"
    program = bwrap_program(environ)
    if program is None:
        return NOT_INSTALLED
    if account.is_root() and account.switch_program() is None:
        return "setpriv, of util-linux, is not installed; a drone that root runs needs it"
    return _failure(environ) if trial else ""


def require_enforceable(access: NetworkAccess, environ: Mapping[str, str]) -> None:
    """Raise Precondition if commands in bubblewrap would reach what the owner does not allow, or nothing at all."""
    if not access.is_replaceable and (why := explain_unenforced(access, environ)):
        raise Precondition(
            "commands cannot be kept from the network on this machine",
            code="E-SANDBOX",
            why=why,
            next=f'drone policy        access = "{access.kind}" needs network namespaces; or use --sandbox docker',
        )


def explain_unenforced(access: NetworkAccess, environ: Mapping[str, str]) -> str:
    """Why bubblewrap cannot hold commands to what they may reach here, in a few words; empty if it can."""
    if access.kind == "none":
        return _failure(environ, Network(Gateway(NetworkAccess("none"), environ)))
    return network.explain_missing() if access.is_routed else ""


def _failure(environ: Mapping[str, str], own: Network | None = None) -> str:
    """Why a trial run in bubblewrap failed; empty if it succeeded."""
    program = bwrap_program(environ)
    with tempfile.TemporaryDirectory(prefix="drone-") as directory:
        sandbox = Bubblewrap(environ, own, user=account.of_commands())
        tried = sandbox.run(CommandSpec(["true"], workspace=Path(directory), timeout=10))
    if tried.return_code == 0:
        return ""
    return f"{program} does not work here: {tried.output.strip()[:300] or 'its trial run did not complete'}"


def _missing(kind: str, why: str, fix: str) -> Precondition:
    return Precondition(f'sandbox "{kind}" is unavailable', code="E-SANDBOX", why=why, next=fix)
