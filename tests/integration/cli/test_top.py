"""`fleet top` at a real server: what its screens show, and what its keys send."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import select
from textual.notifications import Notification
from textual.pilot import Pilot
from textual.widgets import DataTable, RichLog

from control_plane.cli import board
from control_plane.cli.board import Board, read_board
from control_plane.cli.main import app as program
from control_plane.cli.top_screen import FleetTop, InputScreen, OrderScreen, WaitScreen
from control_plane.contract.declarations.orders import CANCEL, SHOW
from control_plane.db.orders import Order
from control_plane.db.waits import Wait
from control_plane.orders.plan_waits import SEND_BACK
from shared.errors import Unreachable
from shared.events import ApprovalStep, DecisionStep, ToolCallStep, ToolResultStep
from shared.plans import AgentPlan, PlanPoint
from shared.states import OrderStatus
from tests.support import wait_until
from tests.support.command_lines import CommandLine
from tests.support.fleet import Api, PlayedRun

Doc = dict[str, Any]
Act = Callable[[FleetTop, Pilot[None]], Awaitable[None]]


@pytest.fixture
def run(api: Api) -> PlayedRun:
    """A run of a submitted order."""
    api.add_work()
    return api.add_drone().take(api.submit())


def on_screen(api: Api, act: Act, read: Callable[[], Board] | None = None, client: Any = None) -> None:
    """Run the application without a terminal while `act` presses its keys."""

    async def run() -> None:
        def again() -> Board:
            return read_board(api.client, mine=False)

        app = FleetTop(client or api.client, again(), read or again)
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            await act(app, pilot)

    asyncio.run(run())


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, condition)
    await pilot.pause()


def rows(app: FleetTop, name: str) -> list[list[str]]:
    table = app.table(name)
    return [[str(cell) for cell in table.get_row_at(index)] for index in range(table.row_count)]


def log_of(app: FleetTop) -> str:
    return "\n".join(line.text for line in app.screen.query_one(RichLog).lines)


def order(api: Api, order_id: str) -> Doc:
    return dict(api.client.call(SHOW, order_id=order_id))


def test_without_a_terminal_it_is_refused_with_what_to_use_instead(
    api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEET_URL", api.url)
    done = CommandLine(program, capsys, monkeypatch)("top")
    assert (done.returncode, "[E-WATCH]" in done.stderr) == (2, True)


def test_what_waits_for_a_user_stands_first_and_the_cursor_stays_on_its_order(api: Api) -> None:
    api.add_work()
    drone = api.add_drone("mila", concurrency=3)
    ended, asks, running = (drone.take(api.submit(prompt)) for prompt in ("Ended work", "Asks first", "At work"))
    ended.ends(response="Done.")
    asks.asks("c1", "shell", "Deletes files", "rm -rf build")
    running.says("I begin.")
    queued = api.submit("Waits \x1b]0;evil\x07 its turn")["id"]

    async def act(app: FleetTop, pilot: Pilot[None]) -> None:
        assert [row[5] for row in rows(app, "orders")] == [asks.order_id, running.order_id, queued, ended.order_id]
        assert rows(app, "orders")[0][0] == "waits for you"
        assert [row[0] for row in rows(app, "drones")] == ["mila"]
        assert not [cell for row in rows(app, "orders") for cell in row if {"\x1b", "\x07"} & set(cell)]
        await pilot.press("j")
        asks.step(DecisionStep(call_id="c1", approved=True))
        asks.ends(response="Late.")
        await until(pilot, lambda: rows(app, "orders")[0][5] == running.order_id)
        chosen = app.chosen()
        assert chosen is not None
        assert chosen["id"] == running.order_id
        await pilot.press("slash", *"turn")
        assert [row[5] for row in rows(app, "orders")] == [queued]
        await pilot.press("escape")
        assert len(rows(app, "orders")) == 4

    on_screen(api, act)


def test_orders_that_have_not_begun_stand_as_they_will_start_and_are_not_hidden_by_newer_ended_ones(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "MOST_ENDED", 2)
    api.add_work()
    run = api.add_drone().take(api.submit())
    low, high = api.submit(priority=-5)["id"], api.submit(priority=5)["id"]
    for ended in [api.submit()["id"] for _ in range(3)]:
        api.client.call(CANCEL, order_id=ended)
    shown = [each["id"] for each in read_board(api.client, mine=False).orders]
    assert (shown[:3], len(shown)) == ([run.order_id, high, low], 5)


def test_a_decision_shows_the_whole_command_and_counts_for_exactly_this(api: Api, run: PlayedRun) -> None:
    run.asks("c1", "shell", "Deletes files", "rm -rf build\nrm -rf dist")
    with api.core.database.write() as db:
        db.get_one(Order, run.order_id).prompt = "Clean \x1b]52;c;ZXZpbA==\x1b\\ it"

    async def act(app: FleetTop, pilot: Pilot[None]) -> None:
        await pilot.press("a")
        assert isinstance(app.screen, WaitScreen)
        assert [each for each in ("Clean", "rm -rf build", "rm -rf dist") if each not in text_of(app)] == []
        assert "\x1b" not in text_of(app)
        # Enter decides nothing, nor do the key that opened it and the letters of a comment.
        await pilot.press("enter", "c", *"mad", "enter")
        assert answers(api) == [None]
        await pilot.press("a", "a", "n")
        await until(pilot, lambda: answers(api) == ["deny"])

    on_screen(api, act)
    (wait,) = waits(api)
    assert (wait.comment, wait.decided_by) == ("mad", "person")


def test_what_was_asked_again_meanwhile_is_not_decided(api: Api, run: PlayedRun) -> None:
    run.asks("c1", "shell", "Deletes files", "rm -rf build")

    async def act(app: FleetTop, pilot: Pilot[None]) -> None:
        await pilot.press("a")
        run.asks("c1", "shell", "Deletes files", "rm -rf /")
        await pilot.press("y")
        await until(pilot, lambda: [each.title for each in notes(app)] == ["E-WAIT-CHANGED"])
        assert answers(api) == [None]

    on_screen(api, act)


def test_questions_and_plans_are_answered_where_they_are_read(api: Api) -> None:
    api.add_work()
    drone = api.add_drone(concurrency=2)
    asks, plans = drone.take(api.submit()), drone.take(api.submit(plan_first=True))
    question = ApprovalStep(about="question", call_id="q1", tool="ask", why="Which database?", choices=("one", "two"))
    asks.step(question)
    plans.presents(AgentPlan(title="Notes", points=(PlanPoint(text="Write one.txt"),)))

    async def act(app: FleetTop, pilot: Pilot[None]) -> None:
        await pilot.press("a")
        assert "Write one.txt" in text_of(app)
        # A plan goes back only with what is to change.
        await pilot.press("n")
        assert isinstance(app.screen, WaitScreen)
        await pilot.press("c", *"shorter", "escape", "n")
        await until(pilot, lambda: SEND_BACK in answers(api))
        plans.decides_plan(None, comment="shorter")
        await until(pilot, lambda: app.board.orders[0]["id"] == asks.order_id)
        await pilot.press("k", "a", "2", "enter")
        await until(pilot, lambda: "two" in answers(api))

    on_screen(api, act)


def test_an_order_is_followed_with_its_calls_written_to_and_stopped_after_a_yes(api: Api, run: PlayedRun) -> None:
    run.says("I look around.")
    run.step(ToolCallStep(call_id="c1", tool="shell", arguments={"command": "ls"}))
    run.step(ToolResultStep(call_id="c1", output="calc.py", return_code=0, duration_ms=5))
    answers = threading.Event()

    class Slow:
        call = staticmethod(api.client.call)

        def follow(self, order_id: str) -> Iterator[Any]:
            answers.wait(60)
            yield from api.client.follow(order_id)

    async def act(app: FleetTop, pilot: Pilot[None]) -> None:
        # Before the first answer, too, the order is known.
        await pilot.press("enter", "e")
        assert isinstance(app.screen, InputScreen)
        await pilot.press("escape")
        assert isinstance(app.screen, OrderScreen)
        answers.set()
        await until(pilot, lambda: "✓ shell: ls" in log_of(app))
        assert "I look around." in log_of(app)
        await pilot.press("escape")
        # Keys of orders say nothing to the one that is marked beside the drones.
        app.table("drones").focus()
        await pilot.press("S", "e")
        assert len(app.screen_stack) == 1
        app.table("orders").focus()
        await pilot.press("enter", "e", *"faster", "enter")
        await until(pilot, lambda: [word["text"] for word in order(api, run.order_id)["unheard"]] == ["faster"])
        await pilot.press("S", "n", "enter")
        await pilot.press("S", "y", "enter")
        await until(pilot, lambda: order(api, run.order_id)["status"] == "canceling")
        run.ends(OrderStatus.CANCELED, reason="Stopped by a user.")
        await until(pilot, lambda: "✗ canceled" in log_of(app))
        await pilot.press("escape")
        assert isinstance(app.focused, DataTable)

    on_screen(api, act, client=Slow())


def test_a_server_that_is_away_is_told_and_the_board_stays(api: Api, run: PlayedRun) -> None:
    def away() -> Board:
        raise Unreachable("no control plane answers", code="E-SERVER-DOWN")

    async def act(app: FleetTop, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "E-SERVER-DOWN" in text_of(app))
        assert [row[5] for row in rows(app, "orders")] == [run.order_id]

    on_screen(api, act, away)


def text_of(app: FleetTop) -> str:
    return "\n".join(str(each.render()) for each in app.screen.query("Static"))


def notes(app: FleetTop) -> list[Notification]:
    return list(app._notifications)


def waits(api: Api) -> list[Wait]:
    with api.core.database.read() as db:
        return list(db.scalars(select(Wait).order_by(Wait.asked_at)))


def answers(api: Api) -> list[str | None]:
    return [wait.answer for wait in waits(api)]
