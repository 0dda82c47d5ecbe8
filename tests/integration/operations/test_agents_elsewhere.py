"""An agent whose instructions lie in another repository than the one that its task works on (S-010)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.core import Caller, Core
from control_plane.db.orders import Dispatch
from control_plane.declarations.projects import ProjectRequest
from control_plane.lookups.projects import find_project
from control_plane.operations import projects
from control_plane.supervisor.work_orders import work_order
from shared.errors import Forbidden
from shared.events import Delivered
from shared.work_order import Team
from tests.support import team_rows
from tests.support.made import make_drone, make_project
from tests.support.repositories import bare_remote
from tests.support.runs import Bench, shell, small_repository
from tests.support.scripted import ScriptedFactory, says

SECRET_URL = "https://me:hunter2@git.example/agents.git"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """The turn of an agent whose instructions lie in a repository of their own."""
    bench = Bench(tmp_path, small_repository(tmp_path / "remote.git"))
    elsewhere = bare_remote(tmp_path / "agents.git", {"backend.md": "You write the server.\n"})
    where = {"instructions_path": "backend.md", "instructions_url": f"file://{elsewhere}"}
    team = Team(organization="payments", agent="backend", task="PAYM-0001", comments=1, **where)
    bench.order = bench.order.model_copy(update={"agent": "backend", "task": "PAYM-0001", "team": team})
    return bench


@pytest.fixture
def work(core: Core, admin: Caller) -> Core:
    """With a drone, the project `web` and another that has the instructions."""
    make_project(core, admin)
    projects.add(core, admin, ProjectRequest(slug="agents", git_url=SECRET_URL))
    make_drone(core, admin)
    return core


def team_sent(core: Core, caller: Caller, name: str = "backend", **fields: Any) -> Team:
    """What goes to the drone with a turn of an agent with these fields, on a task of project `web`."""
    agent = team_rows.add_agent(core, caller, name, **fields)
    task = team_rows.add_task(core, caller, agent, project="web")
    order = team_rows.order_of(core, task)
    with core.database.read() as db:
        sent = work_order(db, core, db.scalars(select(Dispatch).where(Dispatch.order_id == order.id)).one())
    assert sent.team is not None
    return sent.team


def project_id(core: Core, caller: Caller, slug: str) -> str:
    with core.database.read() as db:
        return find_project(db, caller.organization_id, slug).id


def test_they_are_read_there_and_the_work_is_done_in_the_repository_of_the_task(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    server = scripted([shell("ls > seen.txt; test -f README && test ! -e backend.md"), says("done")])
    end = bench.run(server.url)

    assert end.status == "success", end.reason
    assert "You write the server." in server.requests[0]["messages"][0]["content"]
    assert bench.last(Delivered).files_changed == 1


def test_a_repository_that_the_owner_of_the_machine_refuses_ends_the_run(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    def refuse(doing: str) -> None:
        if doing.startswith("working"):
            bench.refuse_url = Forbidden("not this repository", code="E-POLICY")

    bench.on_doing = refuse
    end = bench.run(scripted([says("done")]).url)

    assert (end.status, end.reason) == ("failed", "not this repository")


def test_the_order_names_the_other_repository_with_its_password(work: Core, admin: Caller) -> None:
    agents = project_id(work, admin, "agents")
    team = team_sent(work, admin, instructions=None, instructions_path="backend.md", project_id=agents)

    assert team.instructions_url == SECRET_URL
    assert "hunter2" not in repr(team)


def test_the_order_names_none_where_it_is_the_tasks_own_or_the_instructions_were_uploaded(
    work: Core, admin: Caller
) -> None:
    own = project_id(work, admin, "web")
    in_file = {"instructions": None, "instructions_path": "backend.md"}
    sent = [
        team_sent(work, admin, name="own", **in_file, project_id=own),
        team_sent(work, admin, name="none", **in_file),
        team_sent(work, admin, name="uploaded", project_id=project_id(work, admin, "agents")),
    ]

    assert [team.instructions_url for team in sent] == [None, None, None]
