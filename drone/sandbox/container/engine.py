"""The container engine: podman or docker, called with the options that both have."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drone.sandbox.environment import PROXIES, STANDARD_PATH
from shared.errors import FleetFault

DEFAULT_IMAGE = "dronefleet-sandbox"
NAMES = ("podman", "docker")
"""The first one that has the image is used."""
SECONDS = 120.0
"""For one call: a machine under load takes long to start a container."""
INSTALL = "sudo apt install podman    (Fedora: dnf install podman, Arch: pacman -S podman)"
_MAKE_IMAGE = "tar -C / -c bin sbin lib lib64 usr etc/alternatives | {engine} import - {image}"
_PULL_IMAGE = "{engine} pull {image}"


@dataclass(frozen=True)
class Engine:
    """An engine and the image of its containers."""

    program: str
    image: str
    environ: Mapping[str, str] = field(repr=False, compare=False)
    """The drone's own environment: engines find their settings and their server by it."""

    @property
    def is_podman(self) -> bool:
        return Path(self.program).name == "podman"

    def call(self, *words: str, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of the engine to its end. Raises FleetFault if it cannot be started, or takes too long.

        `directory` is the current directory of what it starts; by default, the drone's own.
        """
        # podman would pass the owner's proxy, with its password, to the container.
        environment = {name: value for name, value in self.environ.items() if name not in PROXIES}
        try:
            return subprocess.run(
                [self.program, *words],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=SECONDS,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise fault(f"{self.program} does not work here: {error}") from error

    def explain_missing(self) -> tuple[str, str]:
        """Why this engine cannot start containers of the image, and what to do; empty if it has the image."""
        if self.call("image", "inspect", "--format", "{{.Id}}", self.image).returncode == 0:
            return "", ""
        name = Path(self.program).name
        # `docker info` ends with 0 when its server does not answer.
        asked = self.call(*(["info"] if self.is_podman else ["version", "--format", "{{.Server.Version}}"]))
        if asked.returncode != 0:
            return f"{name} does not work here: {last_words(asked)}", f"{name} info        shows what fails"
        get = _MAKE_IMAGE if self.image == DEFAULT_IMAGE else _PULL_IMAGE
        return f"{name} has no image {self.image}", get.format(engine=name, image=self.image)


def find_engine(environ: Mapping[str, str], image: str = "") -> Engine:
    """The first engine that has the image. Raises FleetFault with the reason why each cannot be used."""
    if sys.platform != "linux":
        raise fault("containers as a sandbox need Linux")
    reasons: dict[str, str] = {}
    for program in filter(None, (_program(name, environ) for name in NAMES)):
        engine = Engine(program, image or DEFAULT_IMAGE, environ)
        why, fix = engine.explain_missing()
        if not why:
            return engine
        reasons[why] = fix
    if not reasons:
        raise fault("neither podman nor docker is installed", INSTALL)
    raise fault("; ".join(reasons), "    or: ".join(reasons.values()))


def fault(why: str, fix: str = "on the drone: drone doctor") -> FleetFault:
    return FleetFault("the container of this run could not be started", code="E-SANDBOX", why=why, next=fix)


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """The last line that the engine printed, which has its error."""
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return lines[-1][:300] if lines else f"it ended with exit code {done.returncode}"


def _program(name: str, environ: Mapping[str, str]) -> str | None:
    # Relative entries would find a program in the current directory, which may be a cloned repository.
    absolute = [part for part in environ.get("PATH", STANDARD_PATH).split(os.pathsep) if part.startswith("/")]
    return shutil.which(name, path=os.pathsep.join(absolute))
