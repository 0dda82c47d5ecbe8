"""The container sandbox: podman or docker, with one container for all commands of a session."""

from drone.sandbox.container.engine import DEFAULT_IMAGE, Engine, find_engine
from drone.sandbox.container.leftovers import remove_leftovers
from drone.sandbox.container.options import holds_by_cgroup
from drone.sandbox.container.sandbox import Containers, ContainerSandbox

__all__ = [
    "DEFAULT_IMAGE",
    "ContainerSandbox",
    "Containers",
    "Engine",
    "find_engine",
    "holds_by_cgroup",
    "remove_leftovers",
]
