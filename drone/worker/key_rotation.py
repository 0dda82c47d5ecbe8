"""Replacing the drone's keys: new ones are fetched and saved, and put into use by a new boot when all runs have ended.

Until then everything works with the old ones, which the control plane accepts until it hears of the new key. A run
never sees two sets of keys.
"""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Callable

from drone.installation.client import ControlPlane
from drone.reporting.uplink import Sealer
from drone.worker.identity import DroneIdentity
from shared.envelope import CannotOpen, new_private_key, public_key
from shared.errors import Conflict, FleetError
from shared.registration import Credentials, NewKey

log = logging.getLogger(__name__)

RETRY_SECONDS = 10.0


class KeyRotation:
    """Fetches new keys in a thread of its own. The demand is kept in a file, so it survives a restart of the drone."""

    def __init__(self, identity: DroneIdentity, sealer: Sealer, stopping: threading.Event) -> None:
        self._me = identity
        self._sealer = sealer
        self.on_saved: Callable[[], None] = lambda: None
        """Called once new keys are saved: it ends this boot when its runs have ended, and the next one uses them."""
        self._stopping = stopping
        self._started = threading.Event()

    def ask(self) -> None:
        """Replace the keys. Returns at once; a repeated call changes nothing."""
        self._me.home.rotation_file.touch(mode=0o600)
        self.resume()

    def resume(self) -> None:
        """Continue with what an earlier boot was asked, if anything."""
        if self._me.home.rotation_file.exists() and not self._started.is_set():
            self._started.set()
            threading.Thread(target=self._run, name="keys", daemon=True).start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._fetch()
            except Conflict as error:
                log.warning("the keys are not replaced: %s", error.what)
                self._me.home.rotation_file.unlink(missing_ok=True)
                self._started.clear()
                return
            except (FleetError, CannotOpen, OSError, ValueError) as error:
                log.warning("the keys cannot be replaced yet: %s; retrying in %.0f s", error, RETRY_SECONDS)
                self._stopping.wait(RETRY_SECONDS)
            else:
                log.info("new keys are saved; they are used as soon as the current runs have ended")
                self.on_saved()
                return

    def _fetch(self) -> None:
        """Save a new key and credentials to it. Raises Conflict if nobody asked for them."""
        config, key = self._me.config, new_private_key()
        request = NewKey(drone_id=config.drone_id, public_key=base64.b64encode(public_key(key)).decode())
        envelope = self._sealer.seal("key", request.model_dump_json())
        with ControlPlane(
            config.server_url, api_token=self._me.credentials.api_token, ca_file=config.ca_file
        ) as server:
            answer = server.renew_keys(envelope)
        recipient = Sealer(config.drone_id, key, config.control_plane_key, self._sealer.clock)
        opened = recipient.open(answer.credentials, "credentials")
        self._me.home.save_next_keys(key, Credentials.model_validate_json(opened.body))
