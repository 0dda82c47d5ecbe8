"""The entry point of `drone`: its commands and their headings."""

from __future__ import annotations

import sys

from drone.cli import clean, doctor, install_service, local_run, policy, register, replay, start, status, unregister
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
for module, name, heading in (
    (register, "register", SET_UP),
    (install_service, "install-service", SET_UP),
    (unregister, "unregister", SET_UP),
    (start, "start", WORK),
    (local_run, "run", WORK),
    (replay, "replay", WORK),
    (status, "status", LOOK),
    (doctor, "doctor", LOOK),
    (policy, "policy", LOOK),
    (clean, "clean", WORK),
):
    app.command(name, rich_help_panel=heading, epilog=examples(*module.EXAMPLES))(module.command)


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(app))


if __name__ == "__main__":
    main()
