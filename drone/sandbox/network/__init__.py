"""What a run can reach: nothing, listed hosts, the public web, or all that the machine can."""

from drone.sandbox.network.access import MACHINES_OWN, AccessKind, NetworkAccess, Refusal, UnknownHost
from drone.sandbox.network.gateway import Gateway
from drone.sandbox.network.namespace import Network, explain_missing

__all__ = [
    "MACHINES_OWN",
    "AccessKind",
    "Gateway",
    "Network",
    "NetworkAccess",
    "Refusal",
    "UnknownHost",
    "explain_missing",
]
