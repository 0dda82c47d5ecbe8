"""docs/licenses.md lists what runs with Dronefleet, and nothing comes in without a license that is known."""

from __future__ import annotations

from tests.support.licenses import PAGE, licenses


def test_every_installed_package_is_listed_with_a_license_that_is_known() -> None:
    """Other platforms and versions of Python install a few others, so the page may list more."""
    listed = set(PAGE.read_text().splitlines())
    found = licenses()

    assert {f"| {name} | {license} | {part} |" for name, (license, part) in found.items()} <= listed, "make licenses"
    assert len(found) > 50
    assert [name for name, (license, _) in found.items() if license == "unknown"] == []
