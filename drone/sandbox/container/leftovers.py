"""What killed runs leave of their containers: found by the process that made them, and removed at the next start."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import tempfile
from pathlib import Path

from drone.processes.tree import start_time, this_machine_boot
from drone.sandbox.container.engine import Engine

LABEL = "dronefleet.maker"
PREFIX = "drone-container-"
"""Of the directory that belongs to a container."""
_MAKER = "maker"


def make_directory() -> Path:
    """A new directory that `remove_leftovers` recognizes, of this user alone."""
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    (directory / _MAKER).write_text(this_maker())
    return directory


def this_maker() -> str:
    """This process, as the label of its containers names it: machine, boot, namespace, id and start time."""
    pid = os.getpid()
    return f"{platform.node()}/{this_machine_boot()}/{_namespace()}/{pid}/{start_time(pid)}"


def remove_leftovers(engine: Engine) -> None:
    """Remove containers and directories whose maker is gone: it was killed, or the machine was restarted.

    A container ends with its maker in any case; the engine may not have removed it.
    """
    form = f'{{{{.Id}}}} {{{{index .Config.Labels "{LABEL}"}}}}'
    # podman's `ps` cannot show the value of a label, and docker's has no other way.
    if found := engine.call("ps", "--all", "--quiet", "--filter", f"label={LABEL}").stdout.split():
        for line in engine.call("inspect", "--format", form, *found).stdout.splitlines():
            name, _, maker = line.partition(" ")
            if _is_gone(maker):
                engine.call("rm", "--force", name)
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's
            if _is_gone((directory / _MAKER).read_text()):
                shutil.rmtree(directory, ignore_errors=True)


def _is_gone(maker: str) -> bool:
    node, boot, namespace, pid, started = [*maker.split("/"), *[""] * 5][:5]
    if node != platform.node() or not boot:
        return False
    if boot != this_machine_boot():
        return True
    # The processes of another namespace, that of a drone in a container, have other ids.
    return namespace == str(_namespace()) and pid.isdigit() and str(start_time(int(pid))) != started


def _namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino
