"""The drone's identity in this boot: read once, when the worker starts."""

from __future__ import annotations

import os
from dataclasses import dataclass

from drone.installation import policy
from drone.installation.home import DroneConfig, DroneHome
from drone.installation.policy import Policy
from drone.installation.settings import DroneSettings
from drone.sandbox import choose, network
from drone.sandbox.choice import require_enforceable
from shared.registration import Credentials


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
