"""Where a fleet is less safe than it could be, for `fleet doctor` and the inbox. Looks at settings and files only."""

from __future__ import annotations

from control_plane.core import Core
from control_plane.core.certificates import end_of
from shared.loopback import is_loopback
from shared.terminal.doctor import FAIL, OK, WARN, Check
from shared.tls import expires_soon


def weaknesses(core: Core) -> list[Check]:
    """The checks that found something."""
    checks = broker_encryption(core), broker_users(core), certificate(core)
    return [check for check in checks if check.state is not OK]


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


def broker_users(core: Core) -> Check:
    """Whether each drone has a user of its own on the broker."""
    if core.settings.shared_broker_login is None:
        return Check("D-BROKER-USERS", OK, "broker's users", "one for each drone")
    return Check(
        "D-BROKER-USERS",
        WARN,
        "broker's users",
        "all drones share one login (FLEET_SHARED_BROKER_LOGIN): each can delay, repeat and delete the messages of "
        "others, and a removed drone keeps it; contents are sealed",
        fix="use a broker on which the control plane may run ACL SETUSER, and unset it; then register the drones again",
    )


def certificate(core: Core) -> Check:
    """Whether the certificate of the HTTP interface, and of a broker that `fleet up` started, is valid for long."""
    files = core.settings.tls_files
    if files is None:
        return Check("D-TLS-CERT", OK, "certificate", "this server has none (FLEET_TLS_CERT_FILE)")
    fix = f"replace {files[0]} and {files[1]}; a restart is not needed"
    try:
        end = end_of(files[0])
    except (OSError, ValueError) as error:
        return Check("D-TLS-CERT", FAIL, "certificate", f"{files[0]} cannot be read: {error}", fix)
    now = core.clock.now()
    if told := expires_soon(end, now):
        return Check("D-TLS-CERT", FAIL if end <= now else WARN, "certificate", f"{files[0]} {told}", fix)
    return Check("D-TLS-CERT", OK, "certificate", f"{files[0]}, valid until {end:%Y-%m-%d}")
