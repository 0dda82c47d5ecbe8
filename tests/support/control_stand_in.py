"""A stand-in for the control plane that a test can inspect.

It publishes sealed orders, opens the drones' messages, and serves blobs over real HTTP. The behaviour of the real
control plane is tested elsewhere.
"""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from control_plane.broker.broker import Broker
from drone.installation.home import DroneConfig, DroneHome
from drone.installation.workspace_marker import claim_root
from drone.workspace import copy_owner_config
from shared import names
from shared.blobs import digest
from shared.control import ControlMessage
from shared.envelope import Binding, key_id, new_private_key, open_envelope, public_key, seal
from shared.events import Beat, Delta, Event, Hello, RunEnded
from shared.rates import UNLIMITED
from shared.registration import Credentials
from shared.work_order import WorkOrder
from tests.support import wait_until
from tests.support.broker import BrokerServer

HOST = "testhost"
API_TOKEN = "fd_0123456789abcdef0123456789abcdef"


class BlobServer:
    """Blobs and push grants over real HTTP, with the answers of the control plane's API."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.grants: dict[str, int] = {}
        """HTTP status of the answer to a run's request for a push grant; 200 by default."""
        self.removed = False
        """Whether drones that ask receive the answer that they were removed."""
        self.page: bytes | None = None
        """What a proxy answers, with status 200, in place of the control plane."""
        self.seen = 0
        """Requests so far."""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _exchange(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def start(self) -> BlobServer:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> BlobServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _posted(server: BlobServer, path: str) -> tuple[int, bytes]:
    """The answer to a request for a permit to call the model, or to push."""
    if path.endswith("/model-permit"):
        return 200, UNLIMITED.model_dump_json().encode()
    status = server.grants.get(path.split("/")[-2], 200)
    granted = {"granted": True, "expires_in": 60, "known": None}
    return status, json.dumps(granted if status == 200 else {"detail": "no", "code": "E-GRANT"}).encode()


def _exchange(server: BlobServer) -> type[BaseHTTPRequestHandler]:
    class Exchange(BaseHTTPRequestHandler):
        """One request."""

        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            name = urlsplit(self.path).path.rpartition("/")[2]
            right = self.headers["Authorization"] == f"Bearer {API_TOKEN}" and digest(content) == name
            if right:
                server.blobs[name] = content
            self._answer(204 if right else 403, b"")

        def do_GET(self) -> None:
            if self.path.endswith("/registrations/self"):
                problem = {"detail": "drone oka was removed", "code": "E-DRONE-TOKEN", "next": "drone register"}
                self._answer(*((401, json.dumps(problem).encode()) if server.removed else (200, b"{}")))
                return
            content = server.blobs.get(self.path.rpartition("/")[2])
            self._answer(404 if content is None else 200, content or b"")

        def do_POST(self) -> None:
            self._answer(*_posted(server, self.path))

        def _answer(self, status: int, content: bytes) -> None:
            server.seen += 1
            status, content = (status, content) if server.page is None else (200, server.page)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    return Exchange


@dataclass
class Dispatch:
    """One order as sent to a drone."""

    order: WorkOrder
    envelope: str

    @property
    def run_id(self) -> str:
        return self.order.run_id


class ControlPlaneStandIn:
    """The parts of a control plane that drones see: its keys, its broker, its blobs."""

    def __init__(self, server: BrokerServer) -> None:
        self.server = server
        self.broker = Broker(server.url)
        self.key = new_private_key()
        self._drone_keys: dict[str, bytes] = {}
        self._heard: list[tuple[str, dict[str, str]]] = []
        self._beats: list[tuple[str, str]] = []
        self._http = BlobServer().start()
        self.blobs, self.grants = self._http.blobs, self._http.grants
        self._stop = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def url(self) -> str:
        return self._http.url

    def remove(self, drone_id: str) -> None:
        """Revoke the drone's credentials, here and in the broker."""
        self._http.removed = True
        self.broker.remove_user(drone_id)

    def register(
        self, home: DroneHome, *, concurrency: int = 1, sandbox: str = "none", workspace: Path | None = None
    ) -> DroneConfig:
        """Write a home as `drone register` does, and create the drone's user in the broker."""
        drone_id, password = names.new_id(), "drone-password"
        key = home.make_private_key()
        self._drone_keys[drone_id] = public_key(key)
        self.broker.ensure_user(drone_id, sha256(password.encode()).hexdigest())
        workspace = workspace or home.default_workspace
        claim_root(workspace)
        config = DroneConfig(
            drone_id=drone_id,
            name=f"drone-{drone_id[:4]}",
            server_url=self.url,
            control_plane_public_key=base64.b64encode(public_key(self.key)).decode(),
            concurrency=concurrency,
            sandbox=sandbox,
            workspace=str(workspace),
            host=HOST,
            machine_id=home.machine_id(),
        )
        credentials = Credentials(broker_url=self.broker.drone_url(drone_id, password), api_token=API_TOKEN)
        home.save(config, credentials)
        copy_owner_config(home.git_config_file, os.environ)
        return config

    def dispatch(self, order: WorkOrder, *, envelope: str = "") -> Dispatch:
        """Offer a run and put its sealed order into the drone's queue."""
        sent = Dispatch(order, envelope or self.sealed(order))
        assert self.broker.offer_run(order.drone_id, order.run_id, order.generation)
        self.publish(sent)
        return sent

    def publish(self, sent: Dispatch) -> None:
        """Put the message into the queue; a test may do so repeatedly."""
        order = sent.order
        self.broker.publish_order(
            drone_id=order.drone_id,
            order_id=order.order_id,
            run_id=order.run_id,
            generation=order.generation,
            envelope=sent.envelope,
        )

    def sealed(self, order: WorkOrder, text: str = "") -> str:
        """The order, sealed for its drone; `text` replaces its JSON verbatim, as another version might write it."""
        binding = Binding(
            direction="order",
            drone=order.drone_id,
            order=order.order_id,
            run=order.run_id,
            generation=order.generation,
        )
        return self._seal(text or order.model_dump_json(), binding)

    def tell(self, drone_id: str, message: ControlMessage) -> None:
        """Put a control message into the drone's inbox, and publish it."""
        self.tell_text(drone_id, message.id, message.model_dump_json(), getattr(message.body, "run_id", ""))

    def tell_text(self, drone_id: str, message_id: str, text: str, run_id: str = "") -> None:
        """Like `tell`, with the message's text verbatim."""
        envelope = self._seal(text, Binding(direction="control", drone=drone_id, run=run_id))
        self.broker.redis.hset(names.inbox_key(drone_id), message_id, envelope)
        self.broker.redis.publish(names.control_channel(drone_id), envelope)

    def stream(self, drone_id: str) -> list[Event | Hello]:
        """Everything in the drone's stream, opened, in order."""
        entries = self.broker.redis.xrange(names.events_stream(drone_id))
        return [self._open(drone_id, fields) for _, fields in entries]

    def stream_after(self, drone_id: str, last: str) -> Iterator[tuple[str, Event | Hello]]:
        """Entries of the drone's stream after `last` (`(<id>`, initially `-`), each with its id."""
        for entry, fields in self.broker.redis.xrange(names.events_stream(drone_id), min=last):
            yield entry, self._open(drone_id, fields)

    def events(self, drone_id: str, run_id: str) -> list[Event]:
        """A run's events, each once, by number."""
        found = [each for each in self.stream(drone_id) if isinstance(each, Event) and each.run_id == run_id]
        return [event for _, event in sorted({event.seq: event for event in found}.items())]

    def hellos(self, drone_id: str) -> list[Hello]:
        return [each for each in self.stream(drone_id) if isinstance(each, Hello)]

    def ended(self, sent: Dispatch, *, seconds: float = 60) -> RunEnded:
        """Wait for a run's last event."""

        def last() -> RunEnded | None:
            events = self.events(sent.order.drone_id, sent.run_id)
            return events[-1].body if events and isinstance(events[-1].body, RunEnded) else None

        found = wait_until(last, seconds=seconds)
        assert found is not None
        return found

    def kinds(self, sent: Dispatch) -> list[str]:
        return [event.body.kind for event in self.events(sent.order.drone_id, sent.run_id)]

    def beats(self, drone_id: str) -> list[Beat]:
        """Heartbeats received so far."""
        return [
            Beat.model_validate_json(self._opened(drone_id, "beat", envelope))
            for drone, envelope in list(self._beats)
            if drone == drone_id
        ]

    def deltas(self, drone_id: str) -> list[Delta]:
        """Text in flight received so far."""
        return [
            Delta.model_validate_json(self._opened(drone_id, "live", fields["e"]))
            for drone, fields in list(self._heard)
            if drone == drone_id and fields["t"] == "delta"
        ]

    def live_kinds(self, drone_id: str) -> list[str]:
        """The kinds of the messages on the live channel, in order."""
        return [fields["t"] for drone, fields in list(self._heard) if drone == drone_id]

    def restart_broker(self) -> None:
        """Restart the broker, and replace our own connections, which broke with it."""
        self.server.restart()
        self.broker.close()
        self.broker = Broker(self.server.url)

    def close(self) -> None:
        self._stop.set()
        self._listener.join(60)
        self._http.stop()
        self.broker.close()

    def _open(self, drone_id: str, fields: dict[str, str]) -> Event | Hello:
        if fields["t"] == "hello":
            return Hello.model_validate_json(self._opened(drone_id, "hello", fields["e"]))
        return Event.model_validate_json(self._opened(drone_id, "event", fields["e"]))

    def _opened(self, drone_id: str, direction: Any, envelope: str) -> str:
        return open_envelope(
            envelope,
            recipients={key_id(public_key(self.key)): self.key},
            sender=self._drone_keys[drone_id],
            expect=Binding(direction=direction, drone=drone_id),
        ).body

    def _seal(self, body: str, binding: Binding) -> str:
        recipient = self._drone_keys[binding.drone]
        return seal(body, binding, sender=self.key, recipient=recipient, issued_at=datetime.now(UTC))

    def _listen(self) -> None:
        while not self._stop.is_set():
            with suppress(Exception), self.server.redis.pubsub(ignore_subscribe_messages=True) as heard:
                heard.psubscribe(names.LIVE_PATTERN, names.BEAT_PATTERN)
                while not self._stop.is_set():
                    message = heard.get_message(timeout=0.2)
                    if message:
                        self._hear(message["channel"], message["data"])
            self._stop.wait(0.1)

    def _hear(self, channel: str, data: str) -> None:
        drone = names.drone_of(channel)
        if channel.endswith(":beat"):
            self._beats.append((drone, data))
        else:
            self._heard.append((drone, json.loads(data)))


@contextmanager
def window(fleet: ControlPlaneStandIn) -> Iterator[Any]:
    """Celery's own state of workers and tasks, assembled from their events: what Flower shows."""
    app = fleet.broker.celery
    state = app.events.State()
    with app.connection_for_read() as connection:
        receiver = app.events.Receiver(connection, handlers={"*": state.event})
        # A single subscription: events sent between two subscriptions would be lost.
        thread = threading.Thread(target=receiver.capture, kwargs={"limit": None, "wakeup": False}, daemon=True)
        thread.start()
        try:
            wait_until(lambda: state.workers)
            yield state
        finally:
            receiver.should_stop = True
            thread.join(60)
