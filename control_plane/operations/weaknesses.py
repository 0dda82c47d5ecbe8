"""Where a fleet is less safe than it could be, for `fleet doctor` and the board. Looks at settings and files only."""

from __future__ import annotations

from control_plane.core import Core
from shared.loopback import is_loopback
from shared.terminal.doctor import OK, WARN, Check


def weaknesses(core: Core) -> list[Check]:
    """The checks that found something."""
    return [check for check in (broker_encryption(core),) if check.state is not OK]


def broker_encryption(core: Core) -> Check:
    """Whether drones reach the broker over TLS."""
    url = core.settings.public_broker_url or core.settings.broker_url
    if url.startswith("rediss://"):
        return Check("D-BROKER-TLS", OK, "broker's TLS", "drones connect over TLS")
    if is_loopback(url):
        return Check("D-BROKER-TLS", OK, "broker's TLS", "not needed: only this machine connects")
    return Check(
        "D-BROKER-TLS",
        WARN,
        "broker's TLS",
        "drones connect without TLS: ids, times and sizes of messages and the drones' broker passwords can be read on "
        "the network; contents are sealed",
        fix="fleet up --tls-cert FILE --tls-key FILE; with a broker of your own: FLEET_PUBLIC_BROKER_URL=rediss://…",
    )
