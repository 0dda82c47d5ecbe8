"""Each defense of docs/security.md, with the change that removes it; a test runs the row's test without it."""

from tests.hostile.removed_defenses import commands, drones, people, repositories, sealed, work

REMOVALS = (
    *drones.REMOVALS,
    *sealed.REMOVALS,
    *commands.REMOVALS,
    *repositories.REMOVALS,
    *people.REMOVALS,
    *work.REMOVALS,
)
