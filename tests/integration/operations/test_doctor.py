"""The server's checks: what is missing before an order can run is a warning with its fix."""

from __future__ import annotations

from control_plane.core import Caller, Core
from control_plane.operations import projects, providers
from control_plane.operations.doctor import doctor
from tests.support.made import make_project


def states(core: Core, admin: Caller) -> dict[str, tuple[str, str]]:
    return {check["code"]: (check["state"].upper(), check["fix"] or "") for check in doctor(core, admin)}


def test_what_is_missing_is_told_with_its_fix_until_it_is_added_and_once_it_is_removed(
    core: Core, admin: Caller
) -> None:
    found = states(core, admin)
    missing = {code: found[code] for code in ("D-PROVIDERS", "D-PROJECTS", "D-DRONES")}
    assert {state for state, _ in missing.values()} == {"WARN"}
    assert [fix.split(" ")[:2] for _, fix in missing.values()] == [
        ["fleet", "provider"],
        ["fleet", "project"],
        ["fleet", "token"],
    ]

    make_project(core, admin)
    found = states(core, admin)
    assert (found["D-PROVIDERS"][0], found["D-PROJECTS"][0]) == ("OK", "OK")

    projects.remove(core, admin, "web")
    for provider in providers.list_(core, admin):
        providers.remove(core, admin, provider.name)
    found = states(core, admin)
    assert (found["D-PROVIDERS"][0], found["D-PROJECTS"][0]) == ("WARN", "WARN")
