"""Replacing the passwords of a `fleet up`: the one with which its control plane uses the broker, and Flower's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import redis

from control_plane.broker.valkey_config import CONTROL_USER
from control_plane.embedded.data_dir import DataDir
from control_plane.embedded.plan import Plan
from shared.sockets import redis_tls


def replace_passwords(plan: Plan, data: DataDir, restart: Callable[[Plan], None]) -> Plan:
    """A plan with new passwords, after `restart` has put them into use; the old one of the broker is valid until then.

    Flower knows one password: the old one ends with its process, which `restart` replaces. If this is interrupted, the
    next `fleet up` gives the user the remembered password alone.
    """
    new = replace(plan, chosen=data.remembered().with_new_passwords())
    with redis.Redis.from_url(plan.broker_url, **redis_tls(plan.broker_url, plan.options.ca_file)) as broker:
        _change(broker, f">{new.chosen.broker_password}")
        data.remember(new.chosen)
        restart(new)
        _change(broker, f"<{plan.chosen.broker_password}")
        # A connection does not end with its password. The control plane's own ones come back at once.
        broker.client_kill_filter(user=CONTROL_USER, skipme=True)
    return new


def _change(broker: redis.Redis, password: str) -> None:
    broker.execute_command("ACL SETUSER", CONTROL_USER, password)  # type: ignore[no-untyped-call]
    broker.acl_save()
