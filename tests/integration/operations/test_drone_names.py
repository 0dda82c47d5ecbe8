"""Renaming drones."""

from __future__ import annotations

import pytest

from control_plane.core import Caller, Core
from control_plane.declarations.drones import DroneEdit
from control_plane.operations.drones import managing
from shared.errors import Conflict, Invalid, NotFound
from tests.support.made import make_drone


def test_a_renamed_drone_is_found_by_its_new_name_alone(core: Core, admin: Caller) -> None:
    anna = make_drone(core, admin, "anna")

    assert managing.edit_drone(core, admin, "anna", DroneEdit(new_name="west.7")).name == "west.7"

    assert managing.show_drone(core, admin, "west.7").id == anna.drone_id
    with pytest.raises(NotFound):
        managing.show_drone(core, admin, "anna")


def test_a_name_that_another_drone_has_is_refused(core: Core, admin: Caller) -> None:
    make_drone(core, admin, "anna"), make_drone(core, admin, "mila")

    with pytest.raises(Conflict) as refused:
        managing.edit_drone(core, admin, "anna", DroneEdit(new_name="mila"))

    assert refused.value.code == "E-DRONE-NAME"
    assert managing.edit_drone(core, admin, "anna", DroneEdit(new_name="anna")).name == "anna"


@pytest.mark.parametrize("name", ["", "a b", "West", "a@b", "a*", "é", "-a", "%h", "a" * 65])
def test_a_name_that_celery_or_the_broker_could_misread_is_refused(core: Core, admin: Caller, name: str) -> None:
    make_drone(core, admin, "anna")

    with pytest.raises(Invalid) as refused:
        managing.edit_drone(core, admin, "anna", DroneEdit(new_name=name))

    assert refused.value.code == "E-NAME"
