"""The entry point of `drone`: its commands and their headings."""

from __future__ import annotations

import sys

from drone.cli import clean, inspection, local_run, replay, setup, start
from shared.terminal.command_line import application, examples, run

SET_UP = "Setup"
WORK = "Work"
LOOK = "Inspect"

ENVIRONMENT = {
    "DRONE_HOME": "the drone's home directory; default $XDG_DATA_HOME/dronefleet/drone",
    "DRONE_TOKEN": "the join token, as with `--token` of `drone register` and `drone start --ephemeral`",
    "DRONE_POLICY": "the owner's policy file; default $XDG_CONFIG_HOME/dronefleet/policy.toml",
    "DRONE_HIDDEN": "more files and directories that no command may see, with colons between them",
    "DRONE_ALLOW_HTTP": "1: allow plain http to another machine at registration",
    "DRONE_METRICS_PORT": "the port for Prometheus, as with `drone start --metrics-port`",
    "DRONE_LOG_LEVEL": "debug, info, warning or error; default info",
}

app = application(
    "drone",
    "Lend this machine to a fleet: a drone takes work orders, runs a coding agent on each and reports back.",
    environment=ENVIRONMENT,
)
for name, heading, command, shown in (
    ("register", SET_UP, setup.register_drone, setup.REGISTER_EXAMPLES),
    ("install-service", SET_UP, setup.install_service, setup.INSTALL_SERVICE_EXAMPLES),
    ("unregister", SET_UP, setup.unregister_drone, setup.UNREGISTER_EXAMPLES),
    ("start", WORK, start.command, start.EXAMPLES),
    ("run", WORK, local_run.command, local_run.EXAMPLES),
    ("replay", WORK, replay.command, replay.EXAMPLES),
    ("status", LOOK, inspection.show_status, inspection.STATUS_EXAMPLES),
    ("doctor", LOOK, inspection.check_drone, inspection.DOCTOR_EXAMPLES),
    ("policy", LOOK, inspection.show_policy, inspection.POLICY_EXAMPLES),
    ("clean", WORK, clean.command, clean.EXAMPLES),
):
    app.command(name, rich_help_panel=heading, epilog=examples(*shown))(command)


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(app))


if __name__ == "__main__":
    main()
