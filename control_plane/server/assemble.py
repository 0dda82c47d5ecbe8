"""Assembles the control plane: for `fleet serve`, for commands that run next to it, and for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from control_plane.attention import events as attention
from control_plane.automation import notices
from control_plane.core import Core, Subscribers
from control_plane.core.blob_store import BlobStore, DirectoryStore
from control_plane.core.master_key import master_keys
from control_plane.core.push_keys import ensure_push_key
from control_plane.core.settings import FleetSettings
from control_plane.core.vault import Vault
from control_plane.db.engine import Database
from control_plane.db.upgrade import require_current
from control_plane.orders import races, stacks
from control_plane.services import checks, describing, judging, pull_requests, stored_work, titles
from control_plane.teams import hand_off
from control_plane.telemetry.flower.events import announce_ended_runs
from control_plane.telemetry.tracing import events as tracing
from shared.clock import Clock, SystemClock

if TYPE_CHECKING:
    from control_plane.broker.broker import Broker


SUBSCRIBERS = Subscribers(
    order_ended=(
        describing.order_ended,
        checks.order_ended,
        titles.order_ended,
        pull_requests.service_ended,
        stored_work.service_ended,
        # Who won comes before what follows from it.
        races.order_ended,
        stacks.order_ended,
        judging.judgment_given,
        # The notice about an order precedes the notices about what its end causes.
        notices.order_ended,
        hand_off.order_ended,
        pull_requests.order_ended,
        attention.order_ended,
        tracing.order_ended,
    ),
    order_waits_for_person=(notices.order_waits_for_person,),
    wait_opened=(attention.wait_opened,),
    runs_ended=(announce_ended_runs,),
)


def open_core(settings: FleetSettings, *, broker: Broker | None = None, clock: Clock | None = None) -> Core:
    """The parts, ready for use; creates the control plane's key pair if there is none.

    Without `broker`, one is created from the settings; it connects on first use.

    Raises Precondition if the database lacks a migration or there is no master key, Unreachable if the database does
    not respond.
    """
    core = core_on(Database(settings.database_url), settings, broker=broker, clock=clock)
    try:
        require_current(core.database)
        with core.database.write() as db:
            core.vault.ensure_box_keys(db, core.clock)
            ensure_push_key(db, core.vault, core.clock)
    except BaseException:
        core.database.dispose()
        raise
    return core


def core_on(
    database: Database, settings: FleetSettings, *, broker: Broker | None = None, clock: Clock | None = None
) -> Core:
    """The parts on this database, which may lack tables or keys. Raises Precondition if there is no master key."""
    return Core(
        settings=settings,
        database=database,
        vault=Vault(master_keys(settings)),
        broker=broker or open_broker(settings),
        blobs=open_blobs(settings),
        clock=clock or SystemClock(),
        subscribers=SUBSCRIBERS,
    )


def open_blobs(settings: FleetSettings) -> BlobStore:
    """The blob store that the settings name; it connects on first use."""
    if settings.blob_store is None:
        return DirectoryStore(settings.blob_dir)
    from control_plane.core.s3_store import S3Store

    return S3Store(settings)


def open_broker(settings: FleetSettings) -> Broker:
    """The broker that the settings name; it connects on first use."""
    from control_plane.broker.broker import Broker

    return Broker(settings.broker_url, settings.public_broker_url, str(settings.ca_file or ""), settings.drones_login)
