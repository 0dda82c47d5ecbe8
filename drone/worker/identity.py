"""The drone's identity in this boot, read once when the worker starts, and its new keys for the next boot."""

from __future__ import annotations

import base64
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from drone.installation import policy
from drone.installation.client import ControlPlane
from drone.installation.home import DroneConfig, DroneHome
from drone.installation.policy import Policy
from drone.installation.settings import DroneSettings
from drone.reporting.uplink import Sealer
from drone.sandbox import choose, network
from drone.sandbox.choice import require_enforceable
from shared.envelope import CannotOpen, new_private_key, public_key
from shared.errors import Conflict, FleetError
from shared.registration import Credentials, NewKey

log = logging.getLogger(__name__)

_RETRY_SECONDS = 10.0


@dataclass(frozen=True)
class DroneIdentity:
    """The drone's registration, its secrets, and the id of this boot."""

    home: DroneHome
    config: DroneConfig
    credentials: Credentials
    private_key: bytes
    policy: Policy
    sandbox: str
    """The kind in use, even if `auto` was requested."""
    no_network: str
    """Why commands in bubblewrap cannot have a network of their own here; '' if they can, or for another sandbox."""
    machine_id: str
    """Of the current machine, even if the home was registered on another."""
    boot_id: str
    previous_boot: str
    """The previous boot on this machine; empty if there was none, or if the home came from another machine."""

    @property
    def network_works(self) -> bool:
        """Whether commands have a network of their own here: `NetworkAccess.works`."""
        return self.sandbox == "bwrap" and not self.no_network

    def check(self, changed: Policy) -> None:
        """Allow a policy that replaces the one of the start. Raises Precondition if it cannot be enforced here."""
        changed.check_sandbox(self.sandbox)
        if self.sandbox == "bwrap":
            require_enforceable(changed.network, os.environ)


def begin_boot(settings: DroneSettings) -> DroneIdentity:
    """Read the drone's identity, and begin a new boot. Raises Precondition if something required is missing."""
    home = settings.home
    config = home.config()
    home.take_next_keys()
    previous = home.boot_file.read_text().strip() if home.boot_file.exists() else ""
    machine = home.machine_id()
    found = policy.load(settings.policy_file)
    sandbox = choose(config.sandbox, settings.environ, found.network, image=found.image).kind
    found.check_sandbox(sandbox)
    return DroneIdentity(
        home=home,
        config=config,
        credentials=home.credentials(),
        private_key=home.private_key(),
        policy=found,
        sandbox=sandbox,
        no_network=network.explain_missing() if sandbox == "bwrap" else "",
        machine_id=machine,
        boot_id=home.new_boot(),
        previous_boot=previous if machine == config.machine_id else "",
    )


class KeyRotation:
    """Fetches new keys in a thread of its own. The demand is kept in a file, so it survives a restart of the drone.

    They are put into use by a new boot when all runs have ended: a run never sees two sets of keys. Until then
    everything works with the old ones, which the control plane accepts until it hears of the new key.
    """

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
                log.warning("the keys cannot be replaced yet: %s; retrying in %.0f s", error, _RETRY_SECONDS)
                self._stopping.wait(_RETRY_SECONDS)
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
