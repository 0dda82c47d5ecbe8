"""Profiles: named sets of defaults, which fill what an order does not set (O-107)."""

from __future__ import annotations

import pytest

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.declarations.profiles import ProfileEdit, ProfileRequest
from control_plane.declarations.projects import ProjectEdit
from control_plane.declarations.providers import ProviderRequest
from control_plane.declarations.races import RaceRequest
from control_plane.operations import profiles, projects, providers, races
from shared.errors import Conflict, FleetError, Invalid, NotFound
from shared.events import ABILITIES
from tests.support.made import make_drone, make_project, submit


@pytest.fixture
def careful(core: Core, admin: Caller) -> ProfileRequest:
    """A profile that sets everything."""
    make_project(core, admin)
    for name in ("cheap", "strong"):
        providers.add(core, admin, ProviderRequest(name=name, model=f"openai/{name}", no_key=True))
    request = ProfileRequest(
        name="careful",
        provider="strong",
        reviewer="cheap",
        mode="test",
        thinking="high",
        approve="risky",
        max_iterations=7,
        cost_limit=0,
        max_run_seconds=90,
        on_limit="ask",
        verify_attempts=1,
        labels={"sandbox": "docker"},
    )
    profiles.add(core, admin, request)
    return request


def limits(core: Core, order_id: str) -> tuple[object, ...]:
    with core.database.read() as db:
        row = db.get_one(Order, order_id)
        names = ("max_iterations", "cost_limit", "max_run_seconds", "verify_attempts")
        return (*(row.limits[name] for name in names), row.on_limit)


def test_a_profile_fills_what_the_order_does_not_set(core: Core, admin: Caller, careful: ProfileRequest) -> None:
    order = submit(core, admin, profile="careful")
    assert (order.profile, order.provider, order.reviewer, order.mode) == ("careful", "strong", "cheap", "test")
    assert (order.thinking, order.approve, order.labels) == ("high", "risky", careful.labels)
    assert limits(core, order.id) == (7, 0, 90, 1, "ask")


def test_what_the_order_sets_counts_before_its_profile(core: Core, admin: Caller, careful: ProfileRequest) -> None:
    make_drone(core, admin)
    own = {"mode": "plan", "thinking": "off", "reviewer": "none", "max_iterations": 0, "drone": "anna"}
    order = submit(core, admin, profile="careful", provider="cheap", cost_limit=2, on_limit="stop", **own)
    assert (order.provider, order.mode, order.thinking, order.reviewer) == ("cheap", "plan", "off", None)
    assert limits(core, order.id) == (0, 2, 90, 1, "stop")
    assert (order.approve, order.labels) == ("risky", {})


def test_a_profile_counts_before_the_session_and_the_project(
    core: Core, admin: Caller, careful: ProfileRequest
) -> None:
    projects.edit(core, admin, "web", ProjectEdit(provider="cheap", reviewer="strong"))
    first = submit(core, admin, thinking="low", approve="all", mode="plan")
    assert (first.provider, first.reviewer) == ("cheap", "strong")
    second = submit(core, admin, session=first.session, profile="careful")
    assert (second.provider, second.reviewer, second.mode) == ("strong", "cheap", "test")
    assert (second.thinking, second.approve) == ("high", "risky")


def test_an_order_keeps_what_its_profile_was_when_it_was_submitted(
    core: Core, admin: Caller, careful: ProfileRequest
) -> None:
    order = submit(core, admin, profile="careful")
    changed = profiles.edit(core, admin, "careful", ProfileEdit(mode=None, thinking="low", labels=None))
    assert (changed.mode, changed.thinking, changed.labels, changed.approve) == (None, "low", None, "risky")
    later = submit(core, admin, profile="careful")
    profiles.remove(core, admin, "careful")
    assert [(each.mode, each.thinking, each.labels) for each in (order, later)] == [
        ("test", "high", careful.labels),
        ("build", "low", {}),
    ]
    with pytest.raises(NotFound, match="profile 'careful' not found"):
        submit(core, admin, profile="careful")


def test_a_profile_that_could_not_work_is_refused(core: Core, admin: Caller, careful: ProfileRequest) -> None:
    refused: tuple[tuple[dict[str, object], type[FleetError]], ...] = (
        ({"name": "careful"}, Conflict),
        ({"name": "Not a name"}, Invalid),
        ({"name": "x", "provider": "nobody"}, NotFound),
        ({"name": "x", "reviewer": "nobody"}, NotFound),
        ({"name": "x", "labels": {"no label!": "x"}}, Invalid),
    )
    for fields, error in refused:
        with pytest.raises(error):
            profiles.add(core, admin, ProfileRequest.model_validate(fields))
    assert [each.name for each in profiles.list_(core, admin)] == ["careful"]


def test_a_race_has_the_profile_with_the_providers_that_it_names(
    core: Core, admin: Caller, careful: ProfileRequest
) -> None:
    projects.edit(core, admin, "web", ProjectEdit(verify=["true"]))
    beat = {"abilities": list(ABILITIES)}
    make_drone(core, admin, labels=careful.labels, concurrency=4, beat=beat)
    request = RaceRequest(prompt="x", project="web", models=["local", "cheap"], profile="careful")
    made = races.submit(core, admin, request)
    assert [(each.provider, each.mode) for each in made.orders] == [("local", "test"), ("cheap", "test")]
