"""Flower, as started for a fleet: behind a password, and with the queue of every registered drone.

Flower itself lists only the queues of workers that it has seen. An order that waits for a drone that is switched off
must also be visible, so the list of queues comes from the database.
"""

from __future__ import annotations

from collections.abc import Callable

from control_plane.core.flower_address import FLOWER_PATH, FLOWER_USER
from control_plane.core.settings import FleetSettings
from shared import names
from shared.sockets import celery_tls

PASSWORD_VARIABLE = "FLEET_FLOWER_PASSWORD"  # noqa: S105 - the variable's name
MAX_TASKS = 10_000
OFFLINE_SECONDS = 300
"""How long Flower lists a worker after its last sign of life."""
SEND_KEY = """
$.ajaxPrefilter(function (options, original, request) {
  if (options.crossDomain) return;
  var key = "";
  try { key = localStorage.getItem("fleet-browser-key") || ""; } catch (error) { /* blocked: reads only */ }
  request.setRequestHeader("X-Fleet-Browser-Key", key);
});
"""
"""Added to Flower's script: changes need the key of the browser that logged in, as on the fleet's own pages."""


def run(settings: FleetSettings, *, address: str, port: int, password: str) -> None:
    """Serve Flower until the process is ended. Blocks."""
    from celery import Celery
    from flower.app import Flower, rewrite_handler
    from flower.command import extract_settings, setup_logging
    from flower.options import options
    from flower.urls import settings as web_settings

    prefix = FLOWER_PATH if settings.flower_upstream else ""
    words = [f"--address={address}", f"--port={port}", f"--max_tasks={MAX_TASKS}", "--inspect_timeout=2000"]
    words += [f"--purge_offline_workers={OFFLINE_SECONDS}"]
    if prefix:
        # Only the control plane connects, on this machine; browsers use its certificate.
        words += [f"--url_prefix={prefix.strip('/')}"]
    elif settings.tls_files:
        # Tornado loads them for each connection, so that it has the newest ones.
        certificate, key = (file.absolute() for file in settings.tls_files)
        words += [f"--certfile={certificate}", f"--keyfile={key}"]
    options.parse_command_line(["flower", *words])
    options.basic_auth = [f"{FLOWER_USER}:{password}"]
    extract_settings()
    setup_logging()
    app = Celery("fleet", broker=settings.broker_url)
    app.conf.broker_use_ssl = celery_tls(settings.broker_url, str(settings.ca_file or ""))
    # Flower retries a broker that is unavailable, as the fleet does.
    app.conf.broker_connection_retry_on_startup = True
    flower = Flower(capp=app, options=options, **web_settings)
    pages = [_broker_page(registered_queues(settings)), _metrics_page(), _script()]
    flower.add_handlers(r".*", [rewrite_handler(page, prefix) if prefix else page for page in pages])
    flower.start_http_server()
    flower.start()


def registered_queues(settings: FleetSettings) -> Callable[[], set[str]]:
    """A function that returns the queue of every drone that is registered at the time of the call."""
    from sqlalchemy import select

    from control_plane.db.drones import Drone
    from control_plane.db.engine import Database

    database = Database(settings.database_url)

    def queues() -> set[str]:
        with database.read() as db:
            return {
                names.queue(drone_id) for drone_id in db.scalars(select(Drone.id).where(Drone.removed_at.is_(None)))
            }

    return queues


def _script() -> object:
    from pathlib import Path

    from flower.urls import settings as web_settings
    from flower.views import BaseHandler
    from tornado.web import url

    text = (Path(web_settings["static_path"]) / "js" / "flower.js").read_text() + SEND_KEY

    class KeyedScript(BaseHandler):  # type: ignore[misc]
        """Flower's script, which sends the browser's key with each request."""

        def get(self) -> None:
            self.set_header("Content-Type", "text/javascript; charset=utf-8")
            self.finish(text)

    return url(r"/static/js/flower\.js", KeyedScript)


def _metrics_page() -> object:
    from flower.views.monitor import Metrics
    from tornado.web import authenticated, url

    class ClosedMetrics(Metrics):  # type: ignore[misc]
        """Flower's metrics, which name all drones: Flower itself shows them without a password."""

        @authenticated
        async def get(self) -> None:
            await super().get()

    return url(r"/metrics", ClosedMetrics, name="metrics")


def _broker_page(queues: Callable[[], set[str]]) -> object:
    from flower.views.broker import BrokerView
    from tornado.web import url

    class DroneQueues(BrokerView):  # type: ignore[misc]
        """Flower's page of queues, with those of drones that are not connected."""

        def get_active_queue_names(self) -> list[str]:
            return sorted({name for name in super().get_active_queue_names() if name != "celery"} | queues())

    return url(r"/broker", DroneQueues, name="broker")
