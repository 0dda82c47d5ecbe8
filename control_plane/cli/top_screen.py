"""The screens of `fleet top`: the board, one order as it runs, and what is asked of the user."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import StringIO
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import ModalScreen, Screen
from textual.widgets import DataTable, Footer, Input, RichLog, Static

from control_plane.cli.answers import cost, for_people, outcome_word
from control_plane.cli.board import Board
from control_plane.cli.drones import drone_text, labels
from control_plane.cli.order_follow import OrderEvents, StatusLine
from control_plane.cli.rendering import mark_of, outcome_text, wait_lines
from control_plane.cli.status import counts
from control_plane.cli.step_lines import StepLines
from control_plane.contract.declarations import orders, plans, steering
from shared.errors import FleetError
from shared.terminal.output import printable
from shared.terminal.run_screen import RunScreen
from shared.titles import title

Doc = dict[str, Any]
EVERY_SECONDS = 2.0
TITLE_CHARACTERS = 44
TAIL_LINES = 3
"""Lines of what the model is writing, or of the running call's output."""
_DRONES = ("DRONE", "STATUS", "RUNNING", "QUEUED", "LABELS", "DOING")
_ORDERS = ("STATUS", "TITLE", "DRONE", "TIME", "COST", "ORDER", "REASON")
_STATUS_STYLES = {"awaiting_approval": "bold yellow", "running": "cyan", "canceling": "yellow"}
_DRONE_STYLES = {"online": "green", "busy": "cyan", "offline": "red", "unresponsive": "red", "draining": "yellow"}


@dataclass
class NewBoard(Message):
    """The board was read again, or could not be."""

    board: Board | None
    trouble: str = ""


@dataclass
class Told(Message):
    """A sentence for the user."""

    text: str
    code: str = ""
    """Of an error."""


@dataclass
class OrderNews(Message):
    """An event of the order that is followed."""

    event: str
    data: Doc


class FleetTop(App[None]):
    """Drones above, orders below."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: auto; padding: 0 1; }
    #drones { height: auto; max-height: 40%; margin-bottom: 1; }
    #orders { height: 1fr; }
    #search { dock: bottom; display: none; }
    ModalScreen { align: center middle; }
    #box { width: 90%; max-width: 110; height: auto; max-height: 80%; padding: 0 1; }
    #box { border: round $primary; background: $surface; }
    #now, #state { height: auto; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "move(1)", "Next", show=False),
        Binding("k", "move(-1)", "Previous", show=False),
        Binding("a,d", "decide", "Decide"),
        Binding("e", "write", "Message"),
        Binding("S", "stop", "Stop"),
        Binding("slash", "search", "Search"),
        Binding("q,ctrl+c", "quit", "Quit"),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False),
    ]

    def __init__(self, fleet: Any, board: Board, read: Callable[[], Board]) -> None:
        """`read` reads the board again; it is called in a thread, every two seconds."""
        super().__init__()
        self.fleet = fleet
        self.board = board
        self._read = read
        self._over = threading.Event()
        self._sought = ""
        self._trouble = ""

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield DataTable(id="drones", cursor_type="row", zebra_stripes=False)
        yield DataTable(id="orders", cursor_type="row", zebra_stripes=False)
        yield Input(id="search", placeholder="words of a title, an order, a drone or a project")
        yield Footer()

    def on_mount(self) -> None:
        self.table("drones").add_columns(*_DRONES)
        self.table("orders").add_columns(*_ORDERS)
        self.table("orders").focus()
        self._show()
        threading.Thread(target=self._read_regularly, name="board", daemon=True).start()

    def on_unmount(self) -> None:
        self._over.set()

    def table(self, name: str) -> DataTable[Text]:
        """One of the two tables of the board."""
        return self.screen_stack[0].query_one(f"#{name}", DataTable)

    def send(self, done: str, call: Callable[[], Any]) -> None:
        """Make a request beside the screen, and tell `done` or the refusal."""

        def calling() -> None:
            try:
                call()
            except FleetError as error:
                self.post_message(Told("; ".join(filter(None, (error.what, error.why))), error.code))
            else:
                self.post_message(Told(done))

        threading.Thread(target=calling, name="request", daemon=True).start()

    # --- the board ---------------------------------------------------------------------------------

    def _read_regularly(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            try:
                news = NewBoard(self._read())
            except FleetError as error:
                news = NewBoard(None, f"{error.what}   [{error.code}]; trying again")
            self.post_message(news)

    def on_new_board(self, news: NewBoard) -> None:
        self.board, self._trouble = news.board or self.board, news.trouble
        self._show()

    def on_told(self, told: Told) -> None:
        severity: SeverityLevel = "error" if told.code else "information"
        self.notify(printable(told.text), title=told.code, severity=severity, markup=False)

    def _show(self) -> None:
        text, style = (printable(self._trouble), "bold red") if self._trouble else (_head(self.board.status), "")
        head = Text(text, style=style, no_wrap=True, overflow="ellipsis")
        self.screen_stack[0].query_one("#head", Static).update(head)
        _fill(self.table("drones"), ((drone["id"], _drone_row(drone)) for drone in self.board.drones))
        shown = [order for order in self.board.orders if self._sought in _searchable(order)]
        _fill(self.table("orders"), ((order["id"], _order_row(order)) for order in shown))

    def chosen(self) -> Doc | None:
        """The order that is shown, or on whose row the cursor is; none while the drones have the focus."""
        if isinstance(self.screen, OrderScreen):
            return self.screen.order
        if self.focused is self.table("drones"):
            return None
        key = _key_at_cursor(self.table("orders"))
        return next((order for order in self.board.orders if order["id"] == key), None)

    def on_data_table_row_selected(self, selected: DataTable.RowSelected) -> None:
        of_orders = selected.data_table.id == "orders"
        rows = self.board.orders if of_orders else self.board.drones
        row = next((each for each in rows if each["id"] == selected.row_key.value), None)
        if row is not None:
            self.push_screen(OrderScreen(self.fleet, row) if of_orders else TextScreen(drone_text(for_people(row))))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """The board alone is searched."""
        return action != "search" or len(self.screen_stack) == 1

    # --- keys ----------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        if isinstance(table := self.focused, DataTable):
            table.move_cursor(row=table.cursor_row + by)

    def action_decide(self) -> None:
        order = self.chosen()
        if order is None or not order["waiting_for"]:
            self.notify("Nothing waits for you here.")
        else:
            self.push_screen(WaitScreen(order))

    def action_write(self) -> None:
        if (order := self.chosen()) is None:
            return

        def send(text: str | None) -> None:
            if text and text.strip():
                request = steering.SayRequest(text=text)
                self.send("The agent reads it after its current step.", self._calling(steering.SAY, request, order))

        self.push_screen(InputScreen(f"To the agent of {title(order['prompt'])}"), send)

    def action_stop(self) -> None:
        if (order := self.chosen()) is None:
            return

        def send(text: str | None) -> None:
            if text == "y":
                self.send("Stopping; its changes so far are kept.", self._calling(orders.CANCEL, None, order))

        self.push_screen(InputScreen(f"Stop {title(order['prompt'])}? Type y and Enter."), send)

    def _calling(self, operation: Any, request: Any, order: Doc) -> Callable[[], Any]:
        return lambda: self.fleet.call(operation, request, order_id=order["id"])

    def action_search(self) -> None:
        self.query_one("#search").display = True
        self.query_one("#search").focus()

    def on_input_changed(self, changed: Input.Changed) -> None:
        if changed.input.id == "search":
            self._sought = changed.value.strip().casefold()
            self._show()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        if submitted.input.id == "search":
            self._end_search()

    def key_escape(self) -> None:
        if self.query("#search:focus"):
            self.query_one("#search", Input).value = ""
            self._end_search()

    def _end_search(self) -> None:
        self.query_one("#search").display = bool(self._sought)
        self.table("orders").focus()


def _head(status: Doc) -> str:
    parts = (
        printable(f"{status['organization']} at {status['server'].partition('://')[2]}"),
        f"drones: {counts(status['drones'], 'none')}",
        f"orders: {counts(status['orders'], 'none active')}",
        cost(status["totals"]["cost_usd"]),
        *(["paused"] if status["paused"] else []),
    )
    return "  ·  ".join(parts)


def _fill(table: DataTable[Text], rows: Iterable[tuple[str, list[Text]]]) -> None:
    """Show these rows, with the cursor on the row that it was on."""
    before, place = _key_at_cursor(table), table.cursor_row
    table.clear()
    for key, cells in rows:
        table.add_row(*cells, key=key)
    if before in table.rows:
        place = table.get_row_index(before)
    table.move_cursor(row=place, animate=False)


def _key_at_cursor(table: DataTable[Text]) -> str:
    if not table.is_valid_row_index(table.cursor_row):
        return ""
    return str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value)


def _drone_row(drone: Doc) -> list[Text]:
    doing = [run.get("in_words") or run.get("doing", "") for run in drone["doing"]]
    return [
        _cell(drone["name"]),
        _cell(drone["status"], _DRONE_STYLES.get(drone["status"], "")),
        _cell(f"{drone['running']}/{drone['concurrency']}"),
        _cell(drone["queued"]),
        _cell(labels(drone["labels"])),
        _cell("; ".join(filter(None, doing)) or drone.get("note", "")),
    ]


def _order_row(order: Doc) -> list[Text]:
    ended = order["ended_at"] is not None
    style = mark_of(order)[1] if ended else _STATUS_STYLES.get(order["status"], "dim")
    word = "waits for you" if order["status"] == "awaiting_approval" else outcome_word(order).replace("_", " ")
    return [
        _cell(word, style),
        _cell(_cut(title(order["prompt"]))),
        _cell(order["drone"] or "-"),
        _cell(order["stats"]["duration_label"] if order["attempt"] else "-"),
        _cell(cost(order["stats"]["cost_usd"]) if order["attempt"] else "-"),
        _cell(order["id"]),
        _cell(order.get("doing") or order["reason"]),
    ]


def _cell(value: object, style: str = "") -> Text:
    return Text(printable(str(value)).replace("\n", " "), style=style, no_wrap=True)


def _cut(text: str) -> str:
    return text if len(text) <= TITLE_CHARACTERS else f"{text[: TITLE_CHARACTERS - 1]}…"


def _searchable(order: Doc) -> str:
    return " ".join(str(order[name] or "") for name in ("id", "prompt", "drone", "project")).casefold()


# --- one order -------------------------------------------------------------------------------------


class _LogStream(StringIO):
    """Passes colored lines on to a widget."""

    def __init__(self, log: RichLog) -> None:
        super().__init__()
        self._log = log

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._log.write(Text.from_ansi(text.removesuffix("\n")))
        return len(text)


class _LogScreen(RunScreen):
    """A run's lines in a widget, and what is said about the connection."""

    def note(self, text: str) -> None:
        self.lines([(printable(text), "yellow")])


class OrderScreen(Screen[None]):
    """An order from its first step on, as it runs."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "app.pop_screen", "Back")]

    def __init__(self, fleet: Any, order: Doc) -> None:
        super().__init__()
        self.order = order
        self._fleet = fleet
        self._left = threading.Event()
        self._status = StatusLine()
        self._steps = StepLines(order_id=order["id"])
        self._events: OrderEvents | None = None
        self._tail = ""

    def compose(self) -> ComposeResult:
        yield RichLog(id="log", wrap=True, markup=False, highlight=False)
        yield Static(id="now", markup=False)
        yield Static(id="state", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        log = self.query_one(RichLog)
        log.focus()
        screen = _LogScreen(_LogStream(log), self._status.text)
        self._events = OrderEvents(screen, self._status, self._steps)
        self.set_interval(1.0, self._show_state)
        threading.Thread(target=self._follow, name="follow", daemon=True).start()

    def on_unmount(self) -> None:
        self._left.set()

    def _follow(self) -> None:
        try:
            for event, data in self._fleet.follow(self.order["id"]):
                if self._left.is_set():
                    return
                self.post_message(OrderNews(event, data))
        except FleetError as error:
            self.app.post_message(Told(error.what, error.code))

    def on_order_news(self, news: OrderNews) -> None:
        if self._events is None:
            return
        data = news.data if news.event == "delta" else for_people(news.data)
        if news.event in {"order", "end"}:
            self.order = news.data
        if news.event == "end":
            self._events.end()
            _LogStream(self.query_one(RichLog)).write(outcome_text(data))
        else:
            self._events.show(news.event, data)
        self._tail = self._tail + data["text"] if news.event == "delta" else ""
        call = self._steps.running()
        tail = printable(self._tail[-2000:]).strip().split("\n")[-TAIL_LINES:]
        now = Text(f"● {call}\n" if call else "", style="cyan", no_wrap=True)
        self.query_one("#now", Static).update(now.append("\n".join(tail), style="dim"))
        self._show_state()

    def _show_state(self) -> None:
        self.query_one("#state", Static).update(Text(self._status.text(), style="bold", no_wrap=True))


# --- what is asked of the user ---------------------------------------------------------------------


class TextScreen(ModalScreen[None]):
    """A text to read."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "app.pop_screen", "Back")]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box"):
            yield Static(Text(self._text))
        yield Footer()


class InputScreen(ModalScreen[str]):
    """A line to type; Escape leaves it without one."""

    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", "Back")]

    def __init__(self, label: str) -> None:
        super().__init__()
        self._label = label

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box"):
            yield Static(Text(printable(self._label)))
            yield Input()
        yield Footer()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        self.dismiss(submitted.value)


class WaitScreen(ModalScreen[None]):
    """All of what an order waits for; what is decided counts for exactly this.

    Neither Enter nor the key that opened it decides: both may be pressed for too long.
    """

    app: FleetTop
    AUTO_FOCUS = "#box"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "approve", "Approve"),
        Binding("n", "deny", "Deny"),
        Binding("c", "comment", "Comment"),
        Binding("escape", "leave", "Back"),
    ]

    def __init__(self, order: Doc) -> None:
        super().__init__()
        self._order = order
        self._wait: Doc = order["waiting_for"]

    @property
    def is_question(self) -> bool:
        """Whether it is answered with a text."""
        return bool(self._wait["kind"] == "question")

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box"):
            yield Static(
                Text("\n".join((printable(title(self._order["prompt"])), "", *wait_lines(for_people(self._wait)))))
            )
            yield Input(
                placeholder="answer, or the number of a choice" if self.is_question else "comment for the agent"
            )
        yield Footer()

    def on_mount(self) -> None:
        if self.is_question:
            self.query_one(Input).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        return not (self.is_question and action in {"approve", "deny", "comment"})

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        if not self.is_question:
            self.query_one("#box").focus()
            return
        if text := submitted.value.strip() or self._wait["default"] or "":
            request = steering.AnswerRequest(text=text, call=self._wait["call_id"], digest=self._wait["digest"])
            self._send("Answered.", steering.ANSWER, request)

    def action_comment(self) -> None:
        self.query_one(Input).focus()

    def action_leave(self) -> None:
        if not self.is_question and isinstance(self.focused, Input):
            self.query_one("#box").focus()
        else:
            self.app.pop_screen()

    def action_approve(self) -> None:
        comment, plan = self.query_one(Input).value, self._wait.get("plan")
        if plan:
            self._send("Plan approved.", plans.APPROVE, plans.ApprovePlanRequest(comment=comment, **_as_read(plan)))
        else:
            self._send("Approved.", steering.APPROVE, steering.ApproveRequest(**self._decided(comment)))

    def action_deny(self) -> None:
        comment, plan = self.query_one(Input).value, self._wait.get("plan")
        if plan and not comment.strip():
            self.notify("Write with c what is to change in the plan.")
        elif plan:
            self._send("Plan sent back.", plans.SEND_BACK, plans.SendBackPlanRequest(text=comment, **_as_read(plan)))
        else:
            self._send("Denied.", steering.DENY, steering.DenyRequest(**self._decided(comment)))

    def _decided(self, comment: str) -> Doc:
        return {"call": self._wait["call_id"], "digest": self._wait["digest"], "comment": comment}

    def _send(self, done: str, operation: Any, request: Any) -> None:
        fleet, order_id = self.app.fleet, self._order["id"]
        self.app.send(done, lambda: fleet.call(operation, request, order_id=order_id))
        self.app.pop_screen()


def _as_read(plan: Doc) -> Doc:
    """What a decision about a plan counts for."""
    return {"revision": plan["revision"], "round": plan["round"]}
