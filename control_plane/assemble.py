"""Assembles the control plane: for `fleet serve`, for commands that run next to it, and for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from control_plane.automation import order_notices
from control_plane.core import Core, Subscribers
from control_plane.core.blob_store import BlobStore
from control_plane.core.master_key import master_keys
from control_plane.core.settings import FleetSettings
from control_plane.core.vault import Vault
from control_plane.db.engine import Database
from control_plane.db.upgrade import require_current
from control_plane.flower.events import announce_ended_runs
from control_plane.services import checks, describing, pull_requests
from control_plane.teams import hand_off
from shared.clock import Clock, SystemClock

if TYPE_CHECKING:
    from control_plane.broker.broker import Broker


SUBSCRIBERS = Subscribers(
    order_ended=(
        describing.order_ended,
        checks.order_ended,
        pull_requests.service_ended,
        # The notice about an order precedes the notices about what its end causes.
        order_notices.order_ended,
        hand_off.order_ended,
        pull_requests.order_ended,
    ),
    order_waits_for_person=(order_notices.order_waits_for_person,),
    runs_ended=(announce_ended_runs,),
)


def open_core(settings: FleetSettings, *, broker: Broker | None = None, clock: Clock | None = None) -> Core:
    """The parts, ready for use; creates the control plane's key pair if there is none.

    Without `broker`, one is created from the settings; it connects on first use.

    Raises Precondition if the database lacks a migration or there is no master key, Unreachable if the database does
    not respond.
    """
    clock = clock or SystemClock()
    vault = Vault(master_keys(settings))
    database = Database(settings.database_url)
    try:
        require_current(database)
        with database.write() as db:
            vault.ensure_box_keys(db, clock)
    except BaseException:
        database.dispose()
        raise
    return Core(
        settings=settings,
        database=database,
        vault=vault,
        broker=broker or open_broker(settings),
        blobs=BlobStore(settings.blob_dir),
        clock=clock,
        subscribers=SUBSCRIBERS,
    )


def open_broker(settings: FleetSettings) -> Broker:
    """The broker that the settings name; it connects on first use."""
    from control_plane.broker.broker import Broker

    return Broker(settings.broker_url, settings.public_broker_url, str(settings.ca_file or ""), settings.drones_login)
