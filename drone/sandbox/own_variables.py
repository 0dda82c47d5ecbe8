"""Variables of one command: they reach the command, but not the programs that build the sandbox around it.

bwrap and the keeper start outside, with the environment of the line: they would load an LD_PRELOAD that is meant for
the command, and it would escape the sandbox. On the command line every user could read the values. The variables are
therefore passed under meaningless names, and a shell inside gives them their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drone.processes.tree import MARK

_CARRIER = "DRONEFLEET_CARRIED_"


def carried(command: Sequence[str], variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command that unpacks the variables and becomes `command`, and the environment that carries them."""
    wanted = [f"{name}={value}" for name, value in variables.items() if name != MARK]
    carriers = {f"{_CARRIER}{number}": pair for number, pair in enumerate(wanted)}
    if not carriers:
        return list(command), {}
    unpacked = " ".join(f'"${name}"' for name in carriers)
    script = f'export {unpacked}; unset {" ".join(carriers)}; exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *command], carriers
