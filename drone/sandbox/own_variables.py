"""Variables that one command brings along: they reach it, and not the programs that build the sandbox around it.

bwrap and the keeper start outside, with the environment of the line: an LD_PRELOAD that is meant for the command would
be loaded by them, and so lead out of the sandbox. On the command line the values would be for everybody to read. So
they travel under names that mean nothing, and a shell inside gives them their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drone.processes.tree import MARK

_CARRIER = "DRONEFLEET_CARRIED_"


def carried(command: Sequence[str], variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Give the command that unpacks the variables and becomes `command`, and the environment that carries them."""
    wanted = [f"{name}={value}" for name, value in variables.items() if name != MARK]
    carriers = {f"{_CARRIER}{number}": pair for number, pair in enumerate(wanted)}
    if not carriers:
        return list(command), {}
    unpacked = " ".join(f'"${name}"' for name in carriers)
    script = f'export {unpacked}; unset {" ".join(carriers)}; exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *command], carriers
