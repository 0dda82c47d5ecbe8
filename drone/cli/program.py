"""The entry point of the `drone` script."""

from shared.terminal.interrupts import quiet_interrupts


def main() -> None:
    """Run the command line and exit with its code."""
    with quiet_interrupts():
        from drone.cli import main as drone
    drone.main()
