"""Modes that an organization or a project defines: found by name, resolved when an order is submitted."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.modes import ModeRequest
from control_plane.contract.declarations.sessions import SessionEdit, SessionRequest
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.operations import modes
from control_plane.operations.agents import changing as agents
from control_plane.operations.sessions import changing as sessions
from control_plane.operations.tasks import acting
from shared.errors import Invalid, NotFound
from shared.work_order import ModeDefinition
from tests.support.made import make_drone, make_project, submit
from tests.support.turns import order_as_sent

DOCS = {"text": "Write documentation.", "tools": ["file_read", "editor"]}


def define(core: Core, admin: Caller, name: str = "docs", **fields: Any) -> None:
    modes.set_(core, admin, name, ModeRequest(**{**DOCS, **fields}))


def order_of_task(core: Core, admin: Caller, **agent: Any) -> Order:
    """The order of an agent's task in mode `docs`."""
    agents.create(core, admin, AgentRequest(name="lead", instructions="Lead.", **agent))
    task = acting.create(core, admin, TaskRequest(title="x", mode="docs"))
    with core.database.read() as db:
        return db.query(Order).filter_by(task_id=task.id).one()


def test_an_order_carries_its_modes_text_and_tools_to_the_drone(core: Core, admin: Caller) -> None:
    """As they were when it was submitted; its base says whether it may change files."""
    make_project(core, admin)
    make_drone(core, admin, concurrency=2)
    for name, read_only, base in (("docs", True, "plan"), ("write", False, "build")):
        define(core, admin, name, read_only=read_only)
        order = submit(core, admin, mode=name)
        assert (order.mode, order_as_sent(core, order.id).session.mode) == (name, base)
        define(core, admin, name, text="Another text.")
        modes.remove(core, admin, name)
        meant = ModeDefinition(name=name, text=DOCS["text"], tools=("file_read", "editor"))
        assert order_as_sent(core, order.id).mode == meant


def test_the_projects_commands_do_not_verify_an_order_that_changes_no_files(core: Core, admin: Caller) -> None:
    """Commands of its own do."""
    make_project(core, admin, verify=["pytest -q"])
    make_drone(core, admin, concurrency=4)
    define(core, admin, read_only=True)
    cases: tuple[tuple[dict[str, Any], tuple[str, ...]], ...] = (
        ({"mode": "plan"}, ()),
        ({"mode": "docs"}, ()),
        ({"mode": "build"}, ("pytest -q",)),
        ({"mode": "plan", "verify": ["test -e src"]}, ("test -e src",)),
    )
    for given, verify in cases:
        assert order_as_sent(core, submit(core, admin, **given).id).project.verify == verify


def test_a_projects_mode_goes_before_the_organizations_of_that_name(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_project(core, admin, "other")
    make_drone(core, admin)
    define(core, admin, text="For all.")
    define(core, admin, text="For web.", project="web")
    order = submit(core, admin, mode="docs")
    assert (order_as_sent(core, order.id).mode or ModeDefinition(name="", text="")).text == "For web."
    listed = [(each.name, each.project) for each in modes.list_(core, admin, "other") if not each.built_in]
    assert listed == [("docs", None)]


def test_orders_sessions_and_tasks_name_a_mode_that_exists(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    define(core, admin)
    chat = sessions.create(core, admin, SessionRequest(project="web", mode="docs"))
    assert submit(core, admin, session=chat.id).mode == "docs"
    assert (order_of_task(core, admin).mode_definition or {})["text"] == DOCS["text"]
    for act in (
        lambda: submit(core, admin, mode="dosc"),
        lambda: sessions.create(core, admin, SessionRequest(project="web", mode="dosc")),
        lambda: sessions.edit(core, admin, chat.id, SessionEdit(mode="dosc")),
        lambda: acting.create(core, admin, TaskRequest(title="x", mode="dosc")),
        lambda: modes.remove(core, admin, "dosc"),
    ):
        with pytest.raises(NotFound) as refusal:
            act()
        assert "docs" in f"{refusal.value.why} {refusal.value.next}"


def test_an_unknown_tool_is_refused_by_name(core: Core, admin: Caller) -> None:
    """So is a name of a mode with more than sixteen characters, or odd ones."""
    for tool in ("file_raed", "submit", "mcp_x", "extension:", "shell; rm"):
        with pytest.raises(Invalid, match=f"'{tool}'"):
            define(core, admin, tools=["file_read", tool])
    for name in ("Docs", "1st", "a" * 17, "", "two words"):
        with pytest.raises(Invalid):
            define(core, admin, name)
    define(core, admin, "a" * 16, tools=["mcp__git__log", "extension:clock"])
    assert modes.list_(core, admin)[-1].tools == ["mcp__git__log", "extension:clock"]


def test_a_modes_thinking_level_stands_between_agent_and_project(core: Core, admin: Caller) -> None:
    """It is all that can be set for a mode that is built in."""
    make_project(core, admin, thinking="low")
    define(core, admin, thinking="medium")
    modes.set_(core, admin, "plan", ModeRequest(thinking="xhigh"))
    with pytest.raises(Invalid):
        define(core, admin, "plan")
    given: tuple[dict[str, str], ...] = (
        {"mode": "docs"}, {"mode": "docs", "thinking": "off"}, {"mode": "plan"}, {"mode": "build"}
    )  # fmt: skip
    assert [submit(core, admin, **each).thinking for each in given] == ["medium", "off", "xhigh", "low"]
    assert order_of_task(core, admin, thinking="high").thinking == "high"
