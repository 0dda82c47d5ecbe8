"""The entry point of the `fleet` script."""

from shared.terminal.interrupts import quiet_interrupts


def main() -> None:
    """Run the command line and exit with its code."""
    with quiet_interrupts():
        from control_plane.cli import main as fleet
    fleet.main()
