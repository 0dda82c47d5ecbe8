"""Questions of agents on a real fleet: answered at the terminal, by the clock, and after what asked was killed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from control_plane.client.fleet import FleetClient
from control_plane.declarations import orders
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.terminals import running
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import Doc, WholeFleet

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, model: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> WholeFleet:
    remote: Path = calc_project(tmp_path_factory.mktemp("remote") / "asked.git")
    provider = ("--model", "openai/scripted", "--api-base", model.url, "--no-key")
    shared_fleet.json("provider", "add", "asked", "--no-check", *provider)
    added = ("--no-check", "--git-url", f"file://{remote}", "--provider", "asked")
    shared_fleet.json("project", "add", "asked", *added)
    return shared_fleet


@pytest.fixture(scope="module")
def client(fleet: WholeFleet) -> Iterator[FleetClient]:
    """A client for frequent polling, for which the command line would be too slow."""
    with fleet.client() as made:
        yield made


def until_it_asks(client: FleetClient, order_id: str) -> Doc:
    """The order's document once its agent asks."""

    def waits() -> Any:
        order = client.call(orders.SHOW, order_id=order_id)
        return order["waiting_for"] and order

    return dict(wait_until(waits, seconds=120, every=0.3))


def asking(fleet: WholeFleet, client: FleetClient, *options: str) -> str:
    """An order whose agent asks which database to use."""
    order_id = str(fleet.submit("Choose, script:ask", *options, project="asked")["id"])
    until_it_asks(client, order_id)
    return order_id


def results(order: Doc) -> list[str]:
    """What the questions of the order's current path came to."""
    asked = {step["call_id"] for step in order["steps"] if step["kind"] == "tool_call" and step["tool"] == "ask"}
    ended = [step for step in order["steps"] if step["kind"] == "tool_result" and not step["undone"]]
    return [step["output"] for step in ended if step["call_id"] in asked]


def test_a_question_is_shown_and_answered_with_the_number_of_a_choice(fleet: WholeFleet, client: FleetClient) -> None:
    order_id = asking(fleet, client)
    shown = fleet.fleet("show", order_id).stdout
    assert "Which database?" in shown
    assert "  2  SQLite" in shown
    assert f"fleet answer {order_id}" in shown

    assert fleet.json("answer", order_id, "2")["id"] == order_id

    order = fleet.ended(order_id)
    assert results(order) == ["bootstrap chose: SQLite"]
    assert (order["status"], order["response"], order["waiting_for"]) == ("succeeded", "Thank you.", None)
    again = fleet.fleet("answer", order_id, "1")
    assert again.returncode == 4
    assert "already answered by bootstrap: 'SQLite'" in again.stderr


def test_at_a_terminal_the_question_is_shown_and_the_answer_typed(fleet: WholeFleet, client: FleetClient) -> None:
    order_id = asking(fleet, client)

    with running([*FLEET, "answer", order_id], fleet.environment) as (shown, process):
        wait_until(lambda: "Answer:" in shown.text)
        assert "1  PostgreSQL" in shown.text
        shown.types("Neither, use files.\n")
        assert process.wait(60) == 0

    assert results(fleet.ended(order_id)) == ["bootstrap answered: Neither, use files."]


def test_an_answer_is_read_from_stdin_and_missing_without_a_terminal(fleet: WholeFleet, client: FleetClient) -> None:
    order_id = asking(fleet, client)
    missing = fleet.fleet("answer", order_id, text="")
    assert (missing.returncode, "no answer was given" in missing.stderr) == (2, True)

    fleet.json("answer", order_id, "-", text="postgresql\n")

    assert results(fleet.ended(order_id)) == ["bootstrap chose: PostgreSQL"]


def test_whoever_follows_sees_the_question_and_after_the_deadline_the_default_counts(fleet: WholeFleet) -> None:
    done = fleet.fleet("submit", "Choose, script:ask_shortly", "--project", "asked", "--follow")

    assert done.returncode == 0
    assert "? the agent asks" in done.stdout
    assert "next  fleet answer " in done.stdout
    assert "no answer before the deadline; the default counts: shop" in done.stdout


def test_an_approval_is_not_answered_and_a_question_not_approved(fleet: WholeFleet, client: FleetClient) -> None:
    order_id = asking(fleet, client)
    refused = fleet.fleet("approve", order_id)
    assert (refused.returncode, f"fleet answer {order_id}" in refused.stderr) == (4, True)
    fleet.json("answer", order_id, "1")
    fleet.ended(order_id)

    risky = str(fleet.submit("Remove it, script:risky", "--approve", "risky", project="asked")["id"])
    until_it_asks(client, risky)
    refused = fleet.fleet("answer", risky, "yes")
    assert (refused.returncode, f"fleet approve {risky}" in refused.stderr) == (4, True)
    fleet.json("deny", risky)
    fleet.ended(risky)


@pytest.mark.parametrize("moves", [False, True], ids=["same drone", "another drone"])
def test_a_question_outlives_its_drone_and_its_control_plane(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path, moves: bool
) -> None:
    fleet = start_fleet(drones=0)
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    oka = fleet.workstation("oka")
    oka.start()
    fleet.online("oka")
    order_id = str(fleet.submit("Choose, script:ask")["id"])
    with fleet.client() as client:
        first = until_it_asks(client, order_id)
    fleet.stop(signal.SIGTERM)
    fleet.start()
    assert fleet.order(order_id)["waiting_for"]["text"] == "Which database?"

    killed(oka.process)
    other = fleet.workstation("ada") if moves else oka
    other.start()
    with fleet.client() as client:
        wait_until(lambda: fleet.order(order_id)["generation"] > first["generation"], seconds=120, every=0.5)
        until_it_asks(client, order_id)
    fleet.json("answer", order_id, "SQLite")

    order = fleet.ended(order_id)
    assert (order["status"], results(order)) == ("succeeded", ["bootstrap chose: SQLite"])
    assert order["drone"] == other.name


def killed(process: Any) -> None:
    """Kill all processes of a drone."""
    found = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for act in (psutil.Process.suspend, psutil.Process.kill):
        for each in found:
            # A command of the agent may have ended since.
            with suppress(psutil.NoSuchProcess):
                act(each)
    process.wait(60)


def test_what_waits_is_in_the_inbox_until_it_is_answered(fleet: WholeFleet, client: FleetClient) -> None:
    order_id = asking(fleet, client)
    listed = fleet.json("inbox", "--kind", "question")
    assert [(item["order"], item["choices"]) for item in listed] == [(order_id, ["PostgreSQL", "SQLite"])]
    assert f"next  fleet answer {order_id}" in fleet.fleet("inbox").stdout

    fleet.json("answer", order_id, "1")
    fleet.ended(order_id)

    assert fleet.json("inbox", "--kind", "question") == []


def test_an_order_that_closes_with_a_question_is_in_the_inbox_until_someone_replies(fleet: WholeFleet) -> None:
    done = fleet.fleet("submit", "Look, script:closing_question", "--project", "asked", "--follow")
    assert done.returncode == 0
    (item,) = fleet.json("inbox", "--kind", "reply")
    assert item["next"] == f"fleet submit 'TEXT' --session {item['session']}"
    assert f"reply    {item['next']}" in done.stdout
    assert fleet.order(item["order"])["asks"]

    fleet.ended(str(fleet.submit("Note it, script:note", "--session", item["session"], project="asked")["id"]))

    assert fleet.json("inbox", "--kind", "reply") == []


def test_a_session_is_called_by_the_title_that_a_model_wrote(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet(titles=True)
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    order = fleet.ended(str(fleet.submit("Which database is the best one?\n\nscript:titled")["id"]))
    assert order["title"] == "Which database is the best one?"

    def title() -> str:
        return str(fleet.json("session", "show", order["session"])["title"])

    wait_until(lambda: title() == "Choice of a database", seconds=60, every=0.5)
    assert [each["id"] for each in fleet.json("orders")] == [order["id"]]
    assert "Choice of a database" in fleet.fleet("session", "ls").stdout

    fleet.json("session", "rename", order["session"], "Mine")
    assert title() == "Mine"
