"""A refusal by the drone's owner names the line of the policy, and a drone with an unreadable policy takes nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from drone.installation.doctor import check_network
from drone.installation.home import DroneHome
from drone.installation.settings import DroneSettings
from drone.installation.spending import DaySpending
from drone.tools.toolbox import READ_ONLY
from drone.worker.identity import begin_boot
from drone.worker.live_policy import LivePolicy
from shared.budgets import ModelPrice, Money
from shared.clock import SystemClock
from shared.errors import Precondition
from shared.events import ApprovalStep, ErrorStep, ToolResultStep
from shared.names import new_id
from shared.terminal.doctor import FAIL, OK, WARN, Check
from tests.support import needs, wait_until
from tests.support.control_stand_in import ControlPlaneStandIn, Dispatch
from tests.support.drones import DroneUnderTest
from tests.support.runs import order_for, shell
from tests.support.scripted import ScriptedFactory

T = TypeVar("T")
DONE = {"text": "Done."}
POLICY = """[orders]
modes = ["build"]
tools = ["shell"]

[commands]
refuse = ["git push*"]
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    return file


@pytest.fixture
def drone(make_drone: Callable[..., DroneUnderTest], policy: Path, monkeypatch: pytest.MonkeyPatch) -> DroneUnderTest:
    monkeypatch.setenv("DRONE_POLICY", str(policy))
    made = make_drone()
    made.start_worker()
    return made


def recorded(stand_in: ControlPlaneStandIn, sent: Dispatch, kind: type[T]) -> list[T]:
    """What a run recorded of this kind."""
    events = stand_in.events(sent.order.drone_id, sent.run_id)
    return [event.body for event in events if isinstance(event.body, kind)]


def test_the_owner_decides_on_modes_tools_commands_and_spending_also_while_the_drone_runs(
    stand_in: ControlPlaneStandIn, drone: DroneUnderTest, policy: Path, repository: Path, scripted: ScriptedFactory
) -> None:
    model = scripted([shell("cd . && git  push origin"), DONE])
    # No user is asked about a command that the owner refuses in any case.
    sent = stand_in.dispatch(order_for(drone.id, repository, model.url, approve="all"))
    assert stand_in.ended(sent, seconds=180).status == "success"
    assert recorded(stand_in, sent, ApprovalStep) == []
    (result,) = recorded(stand_in, sent, ToolResultStep)
    assert result.is_error
    assert f"commands.refuse in {policy}, line 6" in result.output
    assert {tool["function"]["name"] for tool in model.requests[0]["tools"]} == {"shell", "submit"}

    planned = order_for(drone.id, repository, model.url)
    mode = next(iter(READ_ONLY))
    session = planned.session.model_copy(update={"mode": mode})
    refused = stand_in.dispatch(planned.model_copy(update={"session": session}))
    end = stand_in.ended(refused)
    assert (end.exit_status, end.order_at_fault) == ("refused", False)
    assert end.reason.endswith(f"orders.modes in {policy}, line 2")
    assert [each.code for each in recorded(stand_in, refused, ErrorStep)] == ["E-POLICY-ORDER"]

    # From now on, what models cost in a day is limited.
    policy.write_text("[spend]\nusd_per_day = 0.002\n")
    unknown = scripted([DONE])
    end = stand_in.ended(stand_in.dispatch(order_for(drone.id, repository, unknown.url)))
    assert (end.exit_status, end.order_at_fault, unknown.requests) == ("refused", False, [])
    assert end.reason.startswith("the price of openai/scripted is unknown, and this drone's policy limits")

    model = scripted([{**shell("echo kept > kept.txt"), "usage": {"input_tokens": 1000, "output_tokens": 1000}}, DONE])
    priced = order_for(drone.id, repository, model.url)
    provider = priced.provider.model_copy(update={"model": "openai/gpt-4o"})
    # The organization's prices do not count for the owner's limit.
    free = Money(prices=(ModelPrice(model="openai/gpt-4o", discount=100),))
    priced = priced.model_copy(update={"provider": provider, "money": free})
    spent = stand_in.dispatch(priced)
    end = stand_in.ended(spent)
    assert (end.exit_status, end.order_at_fault, len(model.requests)) == ("refused", False, 1)
    assert end.reason.endswith(f"as much as its policy allows: spend.usd_per_day in {policy}, line 2")
    assert [each.code for each in recorded(stand_in, spent, ErrorStep)] == ["E-POLICY-SPEND"]
    withheld = wait_until(lambda: stand_in.beats(drone.id)[-1].withheld)
    assert withheld.endswith(f"of 0.00 USD spent today (spend.usd_per_day in {policy}, line 2)")

    policy.write_text('[spend]\nusd_per_day = 5\n[when]\nhours = ["0:00-24:00"]\n')
    wait_until(lambda: (stand_in.beats(drone.id)[-1].hours_left_s or 0) >= 7 * 24 * 3600)
    again = priced.model_copy(update={"order_id": new_id(), "run_id": new_id()})
    assert stand_in.ended(stand_in.dispatch(again)).status == "success"


def test_a_drone_with_an_unreadable_policy_does_not_start_and_loses_nothing(
    stand_in: ControlPlaneStandIn, policy: Path, tmp_path: Path
) -> None:
    home = DroneHome(tmp_path / "drone")
    stand_in.register(home)
    policy.write_text("[orders]\nmodes = build\n")
    with pytest.raises(Precondition, match=f"the policy file {policy}") as refused:
        begin_boot(DroneSettings(home, policy, "info", os.environ))
    assert "line 2" in f"{refused.value} {refused.value.why}"
    assert home.config_file.exists()


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

    assert [each.is_error for each in recorded(stand_in, sent, ToolResultStep)] == [True]
    assert end.status == "failed"
    assert "the network policy of this drone cannot be enforced" in end.reason


def test_a_drone_without_networks_says_that_its_default_gives_way_and_takes_no_orders_under_a_chosen_one(
    stand_in: ControlPlaneStandIn,
    make_drone: Callable[..., DroneUnderTest],
    no_more_networks: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    no_more_networks.touch()
    policy = tmp_path / "policy.toml"
    monkeypatch.setenv("DRONE_POLICY", str(policy))
    drone = make_drone(sandbox="bwrap")
    drone.start_worker()
    wait_until(lambda: stand_in.beats(drone.id))
    first = stand_in.beats(drone.id)[-1]
    assert ("no more namespaces" in first.open_network, first.network) == (True, "host")

    def said() -> tuple[bool, bool, bool, str]:
        """Whether its network is open, whether its policy is broken, whether it takes orders, and what they reach."""
        beat = stand_in.beats(drone.id)[-1]
        return bool(beat.open_network), beat.policy_broken, not beat.withheld, beat.network

    steps = (
        ('[network]\naccess = "none"\n', (True, True, False, "host")),
        ('[network]\naccess = "host"\n', (False, False, True, "host")),
    )
    for text, wanted in steps:
        policy.write_text(text)
        wait_until(lambda wanted=wanted: said() == wanted)


def test_a_drone_does_not_start_under_a_network_policy_that_its_owner_chose_and_that_cannot_be_enforced(
    stand_in: ControlPlaneStandIn, no_more_networks: Path, tmp_path: Path
) -> None:
    no_more_networks.touch()
    home, policy = DroneHome(tmp_path / "drone"), tmp_path / "policy.toml"
    stand_in.register(home, sandbox="bwrap")
    settings = DroneSettings(home, policy, "info", os.environ)
    identity, clock = begin_boot(settings), SystemClock()
    assert (identity.network_works, "no more namespaces" in identity.no_network) == (False, True)
    live = LivePolicy(identity.policy, identity.check, clock, (tmp_path,), DaySpending(tmp_path / "spent", clock))
    sandbox = Check("D-SANDBOX", OK, "sandbox", "bwrap")
    (default,) = check_network(policy, sandbox, "bwrap", os.environ)
    assert (default.state, "but commands use the machine's own network: " in default.found) == (WARN, True)
    works = {
        "": True,
        "[limits]\nprocesses = 99\n": True,
        '[network]\naccess = "host"\n': True,
        '[network]\naccess = "none"\n': False,
        '[network]\naccess = "public"\n': False,
        '[network]\nhosts = ["10.0.0.7"]\n': False,
        '[network]\naccess = "hosts"\n': False,
    }
    starts: dict[str, bool] = {}
    goes_on: dict[str, bool] = {}
    for text in works:
        policy.write_text(text)
        goes_on[text] = live.withheld() == ""
        assert goes_on[text] or "no more namespaces" in live.withheld()
        (checked,) = check_network(policy, sandbox, "bwrap", os.environ)
        assert (checked.state is FAIL) != goes_on[text], text
        try:
            starts[text] = bool(begin_boot(settings))
        except Precondition as refused:
            starts[text] = (refused.code, "no more namespaces" in refused.why) != ("E-SANDBOX", True)
    assert (starts, goes_on) == (works, works)
