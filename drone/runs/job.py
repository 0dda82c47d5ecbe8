"""The input of a run process."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from drone.installation.policy import Policy
from shared.registration import Credentials
from shared.work_order import WorkOrder


@dataclass(frozen=True)
class Job:
    """The whole input of a run process. It goes through a pipe and is never written to disk."""

    home: Path
    run_id: str
    order: WorkOrder = field(repr=False)
    boot_id: str
    sandbox: str
    server_url: str
    workspace: Path
    policy: Policy
    credentials: Credentials
    network_works: bool
    """`NetworkAccess.works`."""
    valid_until: float
    """The lease when the run was started, boot time."""
    ca_file: str = ""
    """Authorities that the control plane's certificate may come from, besides the machine's."""
