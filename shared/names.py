"""Every name that appears in Redis, in git and on the disks of both sides, built in one place.

Ids have one fixed length, so that no name is a prefix of another.
"""

from __future__ import annotations

import secrets

ID_LENGTH = 12
MODE_NAME = r"^[a-z][a-z0-9_-]{0,15}$"
DRONE_NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
"""None of these characters has a meaning in a node name of Celery or in a pattern of the broker."""
RUN_TASK = "fleet.run"
"""Celery's name for "execute this work order"."""
EVENTS_GROUP = "collectors"
ORDER_CHANGED = "fleet:changed"
"""Channel on which the control plane notifies itself that an order's row or steps changed; the body is the order id."""
ORDER_ROW_CHANGED = "fleet:changed:row"
"""The same, before it, if more than steps changed: a list need not be read again for each step."""
LIVE_PATTERN = "fleet:*:live"
BEAT_PATTERN = "fleet:*:beat"


def new_id() -> str:
    """A fresh id: 12 hexadecimal characters (48 random bits; the database's unique constraint catches the rest)."""
    return secrets.token_hex(ID_LENGTH // 2)


def queue(drone_id: str) -> str:
    return f"drone.{drone_id}"


def run_key(drone_id: str, run_id: str) -> str:
    """Holds `dispatched:<generation>`, `claimed:<generation>:<boot>` or `revoked:<generation>`; kept for 7 days."""
    return f"fleet:{drone_id}:run:{run_id}"


def lease_key(drone_id: str) -> str:
    """Set with each beat, with an expiry, so that liveness does not depend on pub/sub alone."""
    return f"fleet:{drone_id}:lease"


def boot_key(drone_id: str) -> str:
    """Holds the boot that sent the drone's last hello."""
    return f"fleet:{drone_id}:boot"


def events_stream(drone_id: str) -> str:
    return f"fleet:{drone_id}:events"


def live_channel(drone_id: str) -> str:
    return f"fleet:{drone_id}:live"


def beat_channel(drone_id: str) -> str:
    return f"fleet:{drone_id}:beat"


def control_channel(drone_id: str) -> str:
    return f"fleet:{drone_id}:control"


def inbox_key(drone_id: str) -> str:
    """A hash: control message id to sealed message. The drone reads it on start and at every beat."""
    return f"fleet:{drone_id}:inbox"


def drone_of(key: str) -> str:
    """The drone's id in the name of one of its keys, streams or channels."""
    return key.split(":")[1]


def worker(drone_id: str, host: str, name: str) -> str:
    """Celery's node name of a drone, as Flower shows it. `name` is empty before it reported one."""
    return f"{name}.{drone_id}@{host}" if name else f"{drone_id}@{host}"


def mailbox(worker: str) -> str:
    """Celery's queue for remote control of a worker."""
    return f"{worker}.celery.pidbox"


def shown_arguments(order_id: str, generation: int) -> str:
    """The arguments of a run as Flower and logs show them: ids only, although the rest is sealed anyway."""
    return f"order={order_id} generation={generation}"


def branch(order_id: str) -> str:
    return f"fleet/{order_id}"


def late_branch(order_id: str, attempt: int) -> str:
    """Where the work of a late run is kept; git refuses a ref below `fleet/<order>`."""
    return f"fleet-late/{order_id}/{attempt}"


def dispatched(generation: int) -> str:
    return f"dispatched:{generation}"


def claimed(generation: int, boot_id: str) -> str:
    return f"claimed:{generation}:{boot_id}"


def revoked(generation: int) -> str:
    return f"revoked:{generation}"
