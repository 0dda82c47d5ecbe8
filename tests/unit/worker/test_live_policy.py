"""A policy file that changes while the drone runs."""

from __future__ import annotations

from pathlib import Path

from drone.installation import policy
from drone.worker.live_policy import LivePolicy
from shared.clock import SystemClock


def live(file: Path) -> LivePolicy:
    return LivePolicy(policy.load(file), "bwrap", SystemClock(), (file.parent,))


def test_a_policy_that_becomes_unreadable_keeps_the_drone_from_taking_orders(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[commands]\nrefuse = ["sudo *"]\n')
    found = live(file)
    assert found.withheld() == ""

    file.write_text('[commands]\n\nrefuse = "sudo"\n')
    assert found.withheld().startswith(f"the policy file {file}, line 3, cannot be loaded: commands.refuse is invalid")
    assert found.current.orders.commands == ("sudo *",)

    file.write_text('[commands]\nrefuse = ["curl *"]\n')
    assert found.withheld() == ""
    assert found.current.orders.commands == ("curl *",)


def test_a_policy_that_is_written_later_applies_and_the_drone_says_since_when(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    found = live(file)
    before = found.age_s

    file.write_text('[when]\nfree_memory = "1000 TiB"\n')

    assert "of memory free (when.free_memory in " in found.withheld()
    assert found.withheld().endswith(f"{file}, line 2)")
    assert before <= found.age_s < 5


def test_a_policy_that_forbids_the_sandbox_in_use_keeps_the_drone_from_taking_orders(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    found = live(file)

    file.write_text('[sandbox]\nallow = ["none"]\n')

    assert "does not allow the sandbox bwrap" in found.withheld()
