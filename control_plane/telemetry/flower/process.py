"""Flower, as started for a fleet: behind a password, and with the queue of every registered drone.

Flower itself lists only the queues of workers that it has seen. An order that waits for a drone that is switched off
must also be visible, so the list of queues comes from the database.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from control_plane.broker.address import BrokerAddress
from control_plane.core.flower_address import FLOWER_PATH, FLOWER_USER
from control_plane.core.settings import FleetSettings
from shared import names
from shared.clock import SystemClock

if TYPE_CHECKING:
    from control_plane.telemetry.flower.task_events import TaskEvents

PASSWORD_VARIABLE = "FLEET_FLOWER_PASSWORD"  # noqa: S105 - the variable's name
MAX_TASKS = 10_000
OFFLINE_SECONDS = 300
"""How long Flower lists a worker after its last sign of life."""
COLUMNS = "args,kwargs,state,uuid,received,started,runtime,worker"
"""Of Flower's list of tasks: all tasks have one name, and an order's id says which one it is."""
SEND_KEY = """
$.ajaxPrefilter(function (options, original, request) {
  if (options.crossDomain) return;
  var key = "";
  try { key = localStorage.getItem("fleet-browser-key") || ""; } catch (error) { /* blocked: reads only */ }
  request.setRequestHeader("X-Fleet-Browser-Key", key);
});
"""
"""Added to Flower's script: changes need the key of the browser that logged in, as on the fleet's own pages."""

LINK_ORDER = """
(function () {
  var task = document.getElementById("task-page");
  var found = task && /order=([0-9a-f]{12})\\b/.exec(task.textContent);
  if (!found) return;
  var link = document.createElement("a");
  var organization = /organization=([a-z0-9_]+)/.exec(task.textContent);
  link.href = PAGES + "/orders/" + found[1] + (organization ? "?org=" + organization[1] : "");
  link.textContent = "Order " + found[1];
  var line = document.createElement("p");
  line.appendChild(link);
  task.insertBefore(line, task.firstChild);
})();
"""
"""Added as well: the page of a task links to the page of its order."""


def run(settings: FleetSettings, *, address: str, port: int, password: str) -> None:
    """Serve Flower until the process is ended. Blocks."""
    from celery import Celery
    from flower.app import Flower, rewrite_handler
    from flower.command import extract_settings, setup_logging
    from flower.options import options
    from flower.urls import settings as web_settings

    from control_plane.telemetry.flower.recorded_tasks import task_reader

    prefix = FLOWER_PATH if settings.flower_upstream else ""
    words = [f"--address={address}", f"--port={port}", f"--max_tasks={MAX_TASKS}", "--inspect_timeout=2000"]
    words += [f"--purge_offline_workers={OFFLINE_SECONDS}", f"--tasks_columns={COLUMNS}"]
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
    app = Celery("fleet")
    broker = BrokerAddress.parse(settings.broker_url, str(settings.ca_file or ""))
    app.conf.update(**broker.celery_settings())
    # Flower retries a broker that is unavailable, as the fleet does.
    app.conf.broker_connection_retry_on_startup = True
    events = _task_events(app, options)
    options.format_task = _with_organization(events)
    flower = Flower(capp=app, options=options, events=events, **web_settings)
    pages = [_broker_page(registered_queues(settings)), _metrics_page(), _script(settings)]
    flower.add_handlers(r".*", [rewrite_handler(page, prefix) if prefix else page for page in pages])
    flower.start_http_server()
    events.follow(task_reader(settings, MAX_TASKS))
    flower.start()


def _task_events(app: Any, options: Any) -> TaskEvents:
    from tornado.ioloop import IOLoop

    from control_plane.telemetry.flower.task_events import TaskEvents

    return TaskEvents(
        app,
        SystemClock(),
        limit=MAX_TASKS,
        io_loop=IOLoop.current(),
        enable_events=options.enable_events,
        max_workers_in_memory=options.max_workers,
    )


def _with_organization(events: TaskEvents) -> Callable[[Any], Any]:
    """Shows the organization of a task's order among its arguments, on Flower's pages alone."""

    def shown(task: Any) -> Any:
        if organization := events.organization_of(task.uuid):
            task.kwargs = f"organization={organization}"
        return task

    return shown


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


def _script(settings: FleetSettings) -> object:
    from pathlib import Path

    from flower.urls import settings as web_settings
    from flower.views import BaseHandler
    from tornado.web import url

    text = (Path(web_settings["static_path"]) / "js" / "flower.js").read_text()
    # Behind our log-in, the pages have the same origin.
    pages = "" if settings.flower_upstream else settings.url
    text += SEND_KEY + LINK_ORDER.replace("PAGES", json.dumps(pages))

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
