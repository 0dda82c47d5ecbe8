"""A hostile repository and a hostile model on a real drone: nothing gets out, and the fleet works on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile import call_tries, git_tries, wall_tries
from tests.hostile.campaign import (
    AS_ROOT,
    AS_USER,
    IN_CONTAINERS,
    Campaign,
    break_outs,
    campaign,
    leaks,
    left_behind,
)
from tests.support.machines import needs_root
from tests.support.repositories import git
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.campaign, pytest.mark.hostile, pytest.mark.timeout(600)]


@pytest.fixture
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WholeFleet]:
    if request.node.callspec.params["hostile"].sandbox == "docker":
        request.getfixturevalue("container_image")
    made = WholeFleet(tmp_path / "fleet", drones=0)
    made.start()
    yield made
    made.close()


@pytest.fixture(
    params=[
        pytest.param(AS_ROOT, id="as root"),
        pytest.param(AS_USER, id="as a user", marks=pytest.mark.long),
        pytest.param(IN_CONTAINERS, id="in podman", marks=pytest.mark.long),
    ]
)
def hostile(request: pytest.FixtureRequest, fleet: WholeFleet, tmp_path: Path) -> Iterator[Campaign]:
    needs_root()
    with campaign(fleet, tmp_path, request.param) as made:
        yield made


def test_commands_and_calls_of_a_hostile_model_get_nothing(hostile: Campaign) -> None:
    problems = hostile.order("walls", list(wall_tries.tries(hostile.decoys)))[1]
    problems += hostile.order("calls", list(call_tries.tries(hostile.decoys)))[1]
    problems += hostile.keys() + hostile.texts()
    assert_held(hostile, problems)


@pytest.mark.long
def test_a_hostile_repository_and_what_uses_up_the_machine_get_nothing(hostile: Campaign) -> None:
    main = git(hostile.remotes / "traps.git", "rev-parse", "main")
    order, problems = hostile.order("git", list(git_tries.tries(hostile.decoys)))
    problems += break_outs(hostile.drone) + hostile.order("bombs", list(wall_tries.bombs(hostile.decoys)))[1]
    assert_held(hostile, problems)
    assert order["status"] == "succeeded", order["reason"]
    assert git(hostile.remotes / "traps.git", "rev-parse", "main") == main
    assert git(hostile.remotes / "foreign.git", "for-each-ref") == ""


def assert_held(hostile: Campaign, problems: list[str]) -> None:
    """Nothing got through, changed or leaked; the fleet does an honest order, and the drone leaves nothing behind."""
    assert "\n".join(problems) == ""
    assert hostile.changed() == []
    assert leaks(hostile) == {}
    last = hostile.works_on()
    assert (last["status"], len(last["runs"])) == ("succeeded", 1)
    assert hostile.drone.stop() == 0
    assert left_behind(hostile) == []
