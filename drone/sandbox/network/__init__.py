"""What commands in bubblewrap can reach: nothing, listed hosts, the public web, or all that the machine can."""

from drone.sandbox.network.access import MACHINES_OWN, AccessKind, NetworkAccess, Refusal
from drone.sandbox.network.namespace import Network, explain_missing

__all__ = ["MACHINES_OWN", "AccessKind", "Network", "NetworkAccess", "Refusal", "explain_missing"]
