"""`drone install-service`: start the drone with this machine."""

from __future__ import annotations

import shutil

from shared.terminal.command_line import JsonFlag, print_json, put, say

EXAMPLES = ("drone install-service",)

_NEXT = (
    "systemctl --user daemon-reload",
    "systemctl --user enable --now dronefleet-drone",
    "loginctl enable-linger    # keep running while you are logged out",
)


def command(as_json: JsonFlag = False) -> None:
    """Write a systemd user unit for this drone and show the next commands; without systemd, print the unit."""
    from drone.installation import settings
    from drone.installation.service import unit_text, write_unit

    chosen = settings.load()
    chosen.home.config()  # fails if not registered: the service could not start
    path = write_unit(chosen) if shutil.which("systemctl") else None
    if as_json:
        print_json({"path": str(path) if path else None, "unit": unit_text(chosen), "next": list(_NEXT)})
    elif path is None:
        put(unit_text(chosen))
        say("systemd not found: copy this unit to where it is needed, or run `drone start` yourself")
    else:
        put(f"wrote {path}\n\nnext\n" + "".join(f"  {line}\n" for line in _NEXT))
