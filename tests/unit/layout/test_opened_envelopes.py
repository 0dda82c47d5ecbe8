"""Each side opens envelopes in one place, so that no new kind of message can do without the checks there."""

from __future__ import annotations

import ast
from typing import get_args

from control_plane.drones.reports import REPORTS
from shared.envelope import Direction
from tests.support.documents import INSTALLED, modules

TO_DRONES = {"order", "control", "credentials"}


def importers_of(name: str, package: str) -> set[str]:
    """The modules of a package that import or use this name."""
    found = set()
    for path, tree in modules().items():
        if not path.is_relative_to(INSTALLED / package):
            continue
        for node in ast.walk(tree):
            imported = isinstance(node, ast.ImportFrom) and any(each.name == name for each in node.names)
            if imported or (isinstance(node, ast.Attribute) and node.attr == name):
                found.add(str(path.relative_to(INSTALLED)))
    return found


def test_each_side_opens_envelopes_in_its_own_places_alone() -> None:
    assert importers_of("open_envelope", "control_plane") == {"control_plane/drones/reports.py"}
    assert importers_of("open_envelope", "drone") == {
        "drone/reporting/uplink.py",
        "drone/installation/registration.py",
    }
    users = {path for package in ("control_plane", "drone", "shared") for path in importers_of("Box", package)}
    assert users == {"shared/envelope.py"}


def test_every_direction_goes_to_drones_or_is_a_kind_of_report() -> None:
    assert set(get_args(Direction)) == TO_DRONES | set(REPORTS.values())
