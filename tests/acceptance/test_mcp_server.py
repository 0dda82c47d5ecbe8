"""A client that knows only the answer to `tools/list` gets a task done on a whole fleet, over HTTP and over stdio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp_types import Tool

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.fleet_tools import WAYS, Connected, answer, over_http, over_stdio
from tests.support.repositories import calc_project
from tests.support.team_scripts import TeamBook, turn
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)

Doc = dict[str, Any]
STORY = {"write": turn("echo hello > hello.txt", hand_over="hello.txt is written, and says hello. @user")}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeFleet]:
    """A fleet with one embedded drone, a project, and a scripted model (a stand-in) that plays agents."""
    root = tmp_path_factory.mktemp("tools")
    remote = calc_project(root / "calc.git")
    whole = WholeFleet(root / "fleet")
    with ScriptedServer(TeamBook(STORY)) as model:
        try:
            whole.start()
            whole.add_work(model.url, f"file://{remote}")
            yield whole
            assert whole.transcript_problems() == []
        finally:
            whole.close()


@dataclass
class Newcomer:
    """A client that is new to the fleet: it fills in arguments by name, from `wishes` and from earlier answers."""

    client: Connected
    tools: Mapping[str, Tool]
    known: Doc = field(default_factory=dict)

    def does(self, verb: str, thing: str, **wishes: Any) -> Doc:
        """Call the tool `VERB_THING`, and remember the id in its answer."""
        name = self.tools[f"{verb}_{thing}"].name
        schema = self.tools[name].input_schema
        arguments = {key: value for key, value in {**self.known, **wishes}.items() if key in schema["properties"]}
        Draft202012Validator(schema).validate(arguments)
        result = self.client.call(name, **arguments)
        assert not result.is_error, result.structured_content
        document: Doc = result.structured_content or {}
        Draft202012Validator(self.tools[name].output_schema or {}).validate(document)
        if "id" in document:
            self.known[f"{thing}_id"] = document["id"]
        return document


def connected(fleet: WholeFleet, way: str) -> Any:
    if way == "stdio":
        return over_stdio(fleet.environment)
    return over_http(fleet.url, fleet.json("api-token", "create", "--role", "admin")["token"])


@pytest.mark.parametrize("way", WAYS)
def test_a_client_that_knows_only_the_schemas_gets_a_task_done(fleet: WholeFleet, way: str) -> None:
    with connected(fleet, way) as client:
        newcomer = Newcomer(client, {tool.name: tool for tool in client.list()})
        project = newcomer.does("list", "projects")["result"][0]["slug"]
        agent = newcomer.does("create", "agent", name=f"writer_{way}", instructions="You write files.", boss=None)
        task = newcomer.does(
            *("create", "task"),
            title="Say hello",
            description="Write hello.txt. script:write",
            project=project,
            assignee=agent["name"],
        )
        assert task["assignee"] == agent["name"]

        task = wait_until(lambda: (t := newcomer.does("get", "task"))["assignee"] == "user" and t, seconds=120)

        assert [each["kind"] for each in task["timeline"]].count("run") == 1
        assert task["timeline"][-1]["comment"]["text"].startswith("hello.txt is written")
        done = newcomer.does("complete", "task")
        assert (done["status"], done["branch"] is not None) == ("done", True)
        run = newcomer.does("list", "runs")["result"][0]
        assert run["agent"] == agent["name"]
        patch = answer(client.call("get_patch", order_id=run["order"]))["patch"]
        assert "+hello" in patch
        assert newcomer.does("get", "task") == fleet.json("task", "show", task["id"])
