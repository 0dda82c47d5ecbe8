"""How busy this machine is."""

from __future__ import annotations

from pathlib import Path

import psutil

from drone.installation.disk import existing
from shared.events import MAX_COUNT, MachineUse

_MB = 1_000_000


class MachineMeter:
    """Measures between two calls of `read`, which only one thread makes."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        psutil.cpu_percent()

    def read(self) -> MachineUse:
        """The processors' use since the last call, and the memory and disk in use now."""
        disk = psutil.disk_usage(str(existing(self._workspace)))
        return MachineUse(
            cpu_percent=min(100.0, psutil.cpu_percent()),
            memory_percent=psutil.virtual_memory().percent,
            # File systems over a network may claim more bytes than a heartbeat has room for.
            disk_free_mb=min(MAX_COUNT, disk.free // _MB),
            disk_mb=min(MAX_COUNT, disk.total // _MB),
        )
