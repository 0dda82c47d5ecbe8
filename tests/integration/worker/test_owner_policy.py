"""A refusal by the drone's owner names the line of the policy, and a drone with an unreadable policy takes nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from drone.tools.toolbox import READ_ONLY
from shared.events import ErrorStep, ToolResultStep
from shared.names import new_id
from tests.support import needs, wait_until
from tests.support.control_stand_in import ControlPlaneStandIn
from tests.support.drones import DroneUnderTest
from tests.support.runs import order_for, shell
from tests.support.scripted import ScriptedFactory

DONE = {"text": "Done."}
POLICY = """[orders]
modes = ["build"]
tools = ["shell"]

[commands]
refuse = ["git push*"]
"""


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    monkeypatch.setenv("DRONE_POLICY", str(file))
    return file


@pytest.fixture
def drone(make_drone: Callable[..., DroneUnderTest], policy: Path) -> DroneUnderTest:
    made = make_drone()
    made.start_worker()
    return made


def test_the_owner_decides_on_modes_tools_and_commands(
    stand_in: ControlPlaneStandIn, drone: DroneUnderTest, policy: Path, repository: Path, scripted: ScriptedFactory
) -> None:
    model = scripted([shell("cd . && git  push origin"), {"text": "Done."}])
    order = order_for(drone.id, repository, model.url)
    sent = stand_in.dispatch(order)
    end = stand_in.ended(sent, seconds=180)

    assert end.status == "success"
    results = [e.body for e in stand_in.events(drone.id, sent.run_id) if isinstance(e.body, ToolResultStep)]
    assert results[0].is_error
    assert f"commands.refuse in {policy}, line 6" in results[0].output
    offered = {tool["function"]["name"] for tool in model.requests[0]["tools"]}
    assert offered == {"shell", "submit"}

    planned = order_for(drone.id, repository, model.url)
    mode = next(iter(READ_ONLY))
    planned = planned.model_copy(update={"session": planned.session.model_copy(update={"mode": mode})})
    refused = stand_in.dispatch(planned)
    end = stand_in.ended(refused, seconds=60)
    assert (end.exit_status, end.order_at_fault) == ("refused", False)
    assert end.reason.endswith(f"orders.modes in {policy}, line 2")
    errors = [e.body for e in stand_in.events(drone.id, refused.run_id) if isinstance(e.body, ErrorStep)]
    assert [error.code for error in errors] == ["E-POLICY-ORDER"]


def test_a_drone_with_an_unreadable_policy_does_not_start_and_loses_nothing(
    make_drone: Callable[..., DroneUnderTest], policy: Path
) -> None:
    policy.write_text("[orders]\nmodes = build\n")
    made = make_drone()
    made.start()

    assert made.wait(seconds=60) == 2
    assert f"the policy file {policy} cannot be loaded" in made.stderr()
    assert "line 2" in made.stderr()
    assert made.home.registered


def test_what_models_may_cost_in_a_day_bounds_each_call_and_refuses_unknown_prices(
    stand_in: ControlPlaneStandIn, drone: DroneUnderTest, policy: Path, repository: Path, scripted: ScriptedFactory
) -> None:
    policy.write_text("[spend]\nusd_per_day = 0.002\n")
    unknown = scripted([{"text": "Done."}])
    refused = stand_in.ended(stand_in.dispatch(order_for(drone.id, repository, unknown.url)), seconds=180)
    assert (refused.exit_status, refused.order_at_fault, unknown.requests) == ("refused", False, [])
    assert refused.reason.startswith("the price of openai/scripted is unknown, and this drone's policy limits")

    model = scripted([{**shell("echo kept > kept.txt"), "usage": {"input_tokens": 1000, "output_tokens": 1000}}, DONE])
    priced = order_for(drone.id, repository, model.url)
    priced = priced.model_copy(update={"provider": priced.provider.model_copy(update={"model": "openai/gpt-4o"})})
    sent = stand_in.dispatch(priced)
    end = stand_in.ended(sent, seconds=60)

    assert (end.exit_status, end.order_at_fault, len(model.requests)) == ("refused", False, 1)
    assert end.reason.endswith(f"as much as its policy allows: spend.usd_per_day in {policy}, line 2")
    errors = [e.body for e in stand_in.events(drone.id, sent.run_id) if isinstance(e.body, ErrorStep)]
    assert [error.code for error in errors] == ["E-POLICY-SPEND"]
    withheld = wait_until(lambda: stand_in.beats(drone.id)[-1].withheld)
    assert withheld.endswith(f"of 0.00 USD spent today (spend.usd_per_day in {policy}, line 2)")

    policy.write_text('[spend]\nusd_per_day = 5\n[when]\nhours = ["0:00-24:00"]\n')
    wait_until(lambda: (stand_in.beats(drone.id)[-1].hours_left_s or 0) >= 7 * 24 * 3600)
    again = priced.model_copy(update={"order_id": new_id(), "run_id": new_id()})
    assert stand_in.ended(stand_in.dispatch(again), seconds=60).status == "success"


FAILING_LATER = """#!/bin/sh
case " $* " in *" --unshare-net "*)
    if [ -e {flag} ]; then echo "no more namespaces" >&2; exit 1; fi ;;
esac
exec {bwrap} "$@"
"""


@pytest.fixture
def no_more_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file: as soon as it is there, the drone's bubblewrap makes no network namespace."""
    needs("bwrap")
    flag, program = tmp_path / "flag", tmp_path / "programs" / "bwrap"
    program.parent.mkdir()
    program.write_text(FAILING_LATER.format(flag=flag, bwrap=shutil.which("bwrap")))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return flag


def test_a_network_that_cannot_be_made_any_more_does_not_open_the_machines_own(
    stand_in: ControlPlaneStandIn,
    make_drone: Callable[..., DroneUnderTest],
    no_more_networks: Path,
    repository: Path,
    scripted: ScriptedFactory,
) -> None:
    drone = make_drone(sandbox="bwrap")
    drone.start_worker()
    drone.wait_consuming(seconds=60)
    no_more_networks.touch()

    model = scripted([shell("echo reached > out.txt"), DONE])
    sent = stand_in.dispatch(order_for(drone.id, repository, model.url))
    end = stand_in.ended(sent, seconds=180)

    results = [e.body for e in stand_in.events(drone.id, sent.run_id) if isinstance(e.body, ToolResultStep)]
    assert [each.is_error for each in results] == [True]
    assert end.status == "failed"
    assert "the network policy of this drone cannot be enforced" in end.reason
