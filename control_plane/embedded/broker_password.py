"""Replacing the password with which the control plane of a `fleet up` uses its broker."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

import redis

from control_plane.broker.valkey_config import CONTROL_USER
from control_plane.embedded.data_dir import DataDir, Remembered
from control_plane.embedded.plan import Plan
from shared.sockets import redis_tls


def replace_password(plan: Plan, data: DataDir, restart: Callable[[Plan], None]) -> Plan:
    """A plan with a new password, after `restart` has put it into use; the old one is valid until then.

    If this is interrupted, the next `fleet up` gives the user the remembered password alone.
    """
    new = replace(plan, chosen=with_new_password(data))
    with redis.Redis.from_url(plan.broker_url, **redis_tls(plan.broker_url, plan.options.ca_file)) as broker:
        _change(broker, f">{new.chosen.broker_password}")
        data.remember(new.chosen)
        restart(new)
        _change(broker, f"<{plan.chosen.broker_password}")
        # A connection does not end with its password. The control plane's own ones come back at once.
        broker.client_kill_filter(user=CONTROL_USER, skipme=True)
    return new


def with_new_password(data: DataDir) -> Remembered:
    """The remembered values with a new password; not remembered yet."""
    return replace(data.remembered(), broker_password=secrets.token_hex(24))


def _change(broker: redis.Redis, password: str) -> None:
    broker.execute_command("ACL SETUSER", CONTROL_USER, password)  # type: ignore[no-untyped-call]
    broker.acl_save()
