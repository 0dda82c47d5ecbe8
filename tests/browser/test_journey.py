"""From an empty fleet to a reviewed and merged branch in the browser; only a machine is added in its own terminal.

The model is the scripted one, and the code host a stand-in that speaks git and Gitea's API; everything else is real.
With `PICTURES=DIRECTORY` the pictures of the pages go there (`make pictures`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
import yaml
from playwright.sync_api import Browser, Locator, Page, expect

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import attention, tokens
from control_plane.contract.declarations.attention import AttentionEdit
from drone.model.scripted.script import Book
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import Reply, calls, shell
from tests.browser.conftest import first_of, watch
from tests.support import PATIENCE, wait_until
from tests.support.axe import scrolls_sideways
from tests.support.code_hosts import CodeHost
from tests.support.git_servers import serving
from tests.support.mail_servers import MailServerStandIn
from tests.support.repositories import CALC, bare_remote, commit_files, git
from tests.support.whole_fleet import Doc, WholeFleet, WorkstationDrone

_MOST_STEPS = 400
"""Of the Tab key, after which a target counts as unreachable."""
_UNFETCHED = re.compile(r"^Open (changes|checks|log|details)$")
_HAS_FOCUS = "element => element === document.activeElement"


@dataclass
class Mouse:
    """Clicks and types, and counts both."""

    page: Page
    count: int = 0

    def press(self, target: Locator) -> None:
        """Press a link, a button or what opens a menu."""
        target.click()
        self.count += 1

    def write(self, target: Locator, text: str) -> None:
        """Replace what a field contains."""
        target.fill(text)
        self.count += 1

    def choose(self, target: Locator, label: str) -> None:
        """Choose an option of a list by the beginning of its label."""
        value = target.locator("option", has_text=label).first.get_attribute("value")
        target.select_option(value)
        self.count += 1


class Keyboard(Mouse):
    """Goes from element to element with Tab, as a user without a mouse does."""

    def press(self, target: Locator) -> None:
        self._reach(target)
        self.page.keyboard.press("Enter")
        self.count += 1

    def write(self, target: Locator, text: str) -> None:
        self._reach(target)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)
        self.count += 1

    def choose(self, target: Locator, label: str) -> None:
        self._reach(target)
        self.page.keyboard.type(label)
        self.count += 1

    def _reach(self, target: Locator) -> None:
        target.wait_for()
        for _ in range(_MOST_STEPS):
            if target.evaluate(_HAS_FOCUS):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {target}")


pytestmark = pytest.mark.timeout(400)
MOST_INTERACTIONS = 12
"""From an empty fleet to a first order that has ended."""
LOGIN = "kim:hunter2"
SUM = {
    "command": "str_replace",
    "path": "calc.py",
    "old_str": "return a - b",
    "new_str": "return a + b",
}
READS: list[Reply] = [
    shell("ls && cat README.md", text="I read the project first."),
    {"text": "A small project for sums. Its only test fails: `add` subtracts."},
]
MENDS: list[Reply] = [
    shell("cat calc.py test_calc.py", text="I look at the code and its test.", thinking="The test names calc.add."),
    calls(("editor", SUM), ("shell", {"command": "python3 test_calc.py"}), text="The sign is wrong."),
    shell("rm -rf __pycache__", text="I remove what the test left behind."),
    calls(("ask", {"question": "Should add() refuse text?", "choices": ["Refuse it", "Leave it"]})),
    shell("until [ -e go.cache ]; do sleep 0.1; done; python3 test_calc.py", text="I run the long check."),
    calls(("submit", {"summary": "calc.add adds now, and its test passes."})),
]
PLAN = {
    "title": "Refuse text",
    "summary": "add() joins two texts today.",
    "points": [
        {"text": "Raise TypeError for anything but numbers", "files": ["calc.py"]},
        {"text": "Test it with text and with None", "files": ["test_calc.py"], "verify": "python3 test_calc.py"},
    ],
}
GRAPH = [
    {"name": "units", "prompt": "Add a column for the unit"},
    {"name": "page", "prompt": "Show the unit on the page", "after": ["units"]},
    {"name": "import", "prompt": "Read the unit from the import file", "after": ["units"]},
]
ROWS = ((1, "Say what add() does in its docstring"), (2, "Say in the README how to run the test"))
PICTURED = {
    "plan": "/orders/{plan}/plan",
    "answer": "{link}",
    "orders": "/orders",
    "sessions": "/sessions",
    "changes": "/orders/{order}/changes",
    "session": "/sessions/{session}",
    "checks": "/orders/{order}?panel=checks",
    "log": "/orders/{order}?panel=log",
    "details": "/orders/{order}?panel=details",
    "compare": "/compare?{compared}",
    "batches": "/batches",
    "batch": "/batches/{batch}",
    "batches-compared": "/batches/{batch}/compare?other={other}",
    "graphs": "/graphs",
    "graph": "/graphs/{graph}",
    "tasks": "/tasks",
    "task": "/tasks/{task}",
    "agents": "/agents",
    "agent": "/agents/lead",
    "fleet": "/fleet",
    "drone": "/fleet/mila",
    "projects": "/projects",
    "models": "/models",
    "automation": "/automation",
    "code-host": "/automation/hosts/shop",
    "webhook": "/automation/webhooks/chat",
    "cost": "/cost",
    "settings": "/settings",
    "access": "/settings/access",
    "health": "/settings/health",
    "audit": "/settings/audit",
    "notifications": "/settings/attention",
}
"""Addresses of the pages that are pictured after the journey, by the name of the picture."""
ON_THE_WAY = {"login": "/login", "inbox": "/", "new-order": "/orders/new", "finished": "/orders/{order}"}
NOTES: list[Reply] = [shell("echo noted >> notes.txt"), {"text": "Noted in notes.txt."}]


@dataclass
class Journey:
    """One user on the way, with a model, a code host and a machine at hand."""

    fleet: WholeFleet
    model: ScriptedServer
    host: CodeHost
    remote: Path
    root: Path
    page: Page
    hands: Mouse
    pictures: Path
    mail: MailServerStandIn
    machine: WorkstationDrone = field(init=False)

    def plays(self, *replies: Reply) -> None:
        """Let the model answer the next turns like this."""
        self.model.book = Book.of({"default": list(replies)})

    def button(self, name: str, within: str = "main") -> Locator:
        return self.page.locator(within).get_by_role("button", name=name, exact=True).first

    def link(self, name: str, within: str = "main") -> Locator:
        return self.page.locator(within).get_by_role("link", name=name).first

    def fill(self, name: str, text: str) -> None:
        """Fill a field of the dialog; one among the other options is revealed first."""
        target = self.page.locator(f"dialog [name={name}]")
        target.wait_for(state="attached")
        if not target.is_visible():
            self.hands.press(self.page.locator("dialog summary", has_text="More options"))
        self.hands.write(target, text)

    def confirm(self) -> None:
        self.hands.press(self.page.locator("dialog[open] button.primary"))

    def panel(self, name: str) -> None:
        """Open a panel of the order."""
        self.hands.press(self.page.locator(f"#tabs a[data-tab={name}]"))

    def picture(self, name: str) -> None:
        """Keep a picture of the page as it is now, once it is live and its panels are there."""
        if self.page.locator("#live-mark").count():
            self.page.locator("#live-mark[data-state=live]").wait_for(state="attached")
        self.page.locator("[data-panel-name]:not([hidden]) a", has_text=_UNFETCHED).wait_for(state="detached")
        size = self.page.viewport_size
        assert size
        wide = "wide" if size["width"] > 900 else "narrow"
        self.page.screenshot(path=self.pictures / f"{name}-{wide}.png", animations="disabled", caret="hide")

    def order(self) -> str:
        """The order that the page shows."""
        return str(self.page.locator("#conversation").get_attribute("data-order"))

    def ends(self, words: str) -> Doc:
        """The order of the page, once the page shows a green outcome with this sentence."""
        green = re.compile("done|unchanged")
        expect(self.page.locator("#outcome-title")).to_contain_text(green, timeout=90_000 * PATIENCE)
        expect(self.page.locator("#outcome")).to_contain_text(words)
        return self.fleet.order(self.order())

    def replies(self, text: str, words: str) -> Doc:
        """Write the next turn's message, and return its order once it has ended."""
        before = self.order()
        if not self.page.get_by_label("Message", exact=True).is_visible():
            self.panel("talk")
        self.hands.write(self.page.get_by_label("Message", exact=True), text)
        self.hands.press(self.button("Reply"))
        wait_until(lambda: self.order() not in {before, ""})
        # The outcome of the turn before has the same words.
        self.fleet.ended(self.order())
        return self.ends(words)


@dataclass(frozen=True)
class Device:
    """How the user looks and acts."""

    hands: type[Mouse]
    width: int
    scheme: Literal["light", "dark"]


DEVICES = (
    *(Device(Mouse, width, scheme) for width in (1280, 375) for scheme in ("light", "dark")),
    Device(Keyboard, 1280, "light"),
)


@pytest.fixture(
    params=first_of(*DEVICES),
    ids=lambda device: f"{device.hands.__name__}-{device.width}-{device.scheme}",
)
def way(
    request: pytest.FixtureRequest, chromium: Browser, mail_server: MailServerStandIn, tmp_path: Path
) -> Iterator[Journey]:
    """An empty fleet, and a user who has opened the link that `fleet up` prints."""
    device: Device = request.param
    pictures = Path(os.environ.get("PICTURES") or tmp_path / "pictures")
    pictures.mkdir(parents=True, exist_ok=True)
    remote = bare_remote(tmp_path / "hosted" / "shop" / "calc.git", CALC)
    sends = {"FLEET_SMTP_URL": mail_server.url, "FLEET_MAIL_FROM": "Dronefleet <fleet@example.org>"}
    fleet = WholeFleet(tmp_path / "fleet", drones=0, settings=sends)
    context = chromium.new_context(viewport={"width": device.width, "height": 860}, color_scheme=device.scheme)
    try:
        with ScriptedServer(READS) as model, serving(CodeHost(tmp_path / "hosted", login=LOGIN)) as host:
            fleet.start()
            page, errors = context.new_page(), []
            page.set_default_timeout(60_000 * PATIENCE)
            watch(page, errors, fleet.url)
            page.goto(fleet.json("login-link")["url"])
            way = Journey(fleet, model, host, remote, tmp_path, page, device.hands(page), pictures, mail_server)
            way.picture("login")
            page.get_by_role("button", name="Log in").click()
            page.wait_for_url(f"{fleet.url}/")
            yield way
            assert errors == []
    finally:
        context.close()
        fleet.close()


def test_a_user_comes_from_an_empty_fleet_to_a_merged_branch(way: Journey) -> None:
    set_up(way)
    first = approve_answer_and_steer(way)
    reviewed = review(way, first)
    taken = take_over(way, reviewed)
    fork_and_switch(way, taken)
    merge(way, taken)
    look_around(way, reviewed)


def set_up(way: Journey) -> None:
    page, hands = way.page, way.hands
    way.picture("first-use")
    hands.press(way.link("Add model"))
    way.fill("model", "openai/scripted")
    way.fill("api_base", way.model.url)
    way.confirm()
    ticked(page, 1)

    hands.press(way.link("Add project"))
    way.fill("slug", "calc")
    way.fill("git_url", way.host.url("shop/calc.git", LOGIN))
    way.confirm()
    ticked(page, 2)

    hands.press(way.button("Create join token"))
    way.machine = add_machine(way, token_in(page))
    hands.press(page.locator("#dialog [data-close]").first)
    ticked(page, 3)

    hands.press(way.button("Submit order"))
    ticked(page, 4)
    page.locator("#first-4 .state.ok").wait_for(timeout=90_000 * PATIENCE)
    assert hands.count <= MOST_INTERACTIONS
    assert [each["status"] for each in way.fleet.json("orders")] == ["succeeded"]
    assert page.locator("#first-1 .state.ok").inner_text() == "works"
    way.picture("first-use-done")
    # So that the pages after this have costs.
    way.fleet.json("price", "set", "openai/scripted", "--input", "3", "--output", "15")


def approve_answer_and_steer(way: Journey) -> Doc:
    """An order that asks for leave and for an answer, and hears a message while it works."""
    page, hands = way.page, way.hands
    way.plays(*MENDS)
    hands.press(page.locator("a[href='/orders/new']:visible").first)
    hands.write(page.get_by_label("What should be done?"), "Make the failing test pass")
    hands.choose(page.get_by_label("Approvals", exact=True), "Risky")
    way.picture("new-order")
    hands.press(page.locator("form.new-order button.primary"))
    page.get_by_role("heading", name="Approve this command?").wait_for(timeout=60_000 * PATIENCE)
    order = way.order()

    hands.press(page.locator("nav.side a[href='/']"))
    row = page.locator("[data-row]", has_text="Approve this command?")
    row.wait_for()
    way.picture("inbox")
    hands.press(row.get_by_role("button", name="Approve"))
    row.wait_for(state="detached")

    open_order(way, "Make the failing test pass")
    page.get_by_role("heading", name="The agent asks").wait_for(timeout=60_000 * PATIENCE)
    way.picture("question")
    hands.press(way.button("Refuse it"))
    page.locator("#blocks").get_by_text("I run the long check.").wait_for(timeout=60_000 * PATIENCE)
    hands.write(page.get_by_label("Message", exact=True), "Keep the name of add")
    hands.press(way.button("Send"))
    page.locator(".queued").get_by_text("Keep the name of add").wait_for()
    way.picture("running")
    go_on(way)
    ended = way.ends("calc.add adds now")
    way.picture("finished")
    assert ended["id"] == order
    last = str(way.model.requests[-1]["messages"])
    assert "Keep the name of add" in last
    assert "Refuse it" in last
    return ended


def review(way: Journey, order: Doc) -> Doc:
    """A comment on a line, which the agent settles in a turn of its own."""
    page, hands = way.page, way.hands
    way.panel("changes")
    hands.press(page.locator("a.n[aria-label='Comment on new line 5']"))
    hands.write(page.get_by_label("Comment", exact=True), "Use sum(), please")
    hands.press(way.button("Add comment"))
    expect(page.locator(".comment")).to_contain_text("will be sent with your review")
    (comment,) = way.fleet.json("review", "ls", order["id"])
    way.plays(
        shell("sed -i 's/a + b/sum((a, b))/' calc.py", text="sum() reads better, indeed."),
        calls(("answer_review", {"comment": comment["id"][:6], "verdict": "done", "text": "sum() it is."})),
        {"text": "The comment is settled."},
    )
    hands.press(page.locator(".send > summary"))
    hands.press(way.button("Send 1 comment"))
    expect(page.locator(".comment.answer")).to_contain_text("done in", timeout=90_000 * PATIENCE)
    way.picture("review")
    ended = way.ends("The comment is settled.")
    assert (ended["session"], ended["base_commit"]) == (order["session"], order["head_commit"])
    return ended


def take_over(way: Journey, order: Doc) -> Doc:
    """A commit of the user's own, from which the next turn continues."""
    mine = way.root / "mine"
    git(way.root, "clone", "-q", "--branch", order["branch"], str(way.remote), str(mine))
    commit = commit_files(mine, {"docs.md": "Written by hand.\n"}, "Write the docs by hand")
    git(mine, "push", "-q", "origin", order["branch"])
    way.plays(*NOTES)
    ended = way.replies("Note what I changed", "Noted in notes.txt.")
    assert ended["base_commit"] == commit
    return ended


def fork_and_switch(way: Journey, order: Doc) -> None:
    page, hands = way.page, way.hands
    menu(way, "Fork from this turn…")
    way.confirm()
    page.wait_for_url(re.compile(r"/sessions/(?!" + order["session"] + ")"))
    forked = way.replies("Note it in the fork", "Noted in notes.txt.")
    assert forked["session"] != order["session"]
    assert forked["base_commit"] == order["head_commit"]

    open_order(way, "Make the failing test pass")
    first = way.fleet.order(way.order())
    menu(way, "Continue from this turn…")
    way.confirm()
    page.locator("dialog[open]").wait_for(state="hidden")
    switched = way.replies("Note it from the first turn", "Noted in notes.txt.")
    assert (switched["session"], switched["base_commit"]) == (order["session"], first["head_commit"])
    hands.press(page.locator("#turn-map > summary"))
    expect(page.locator("#turn-map > summary")).to_contain_text("4 turns")
    expect(page.locator("#turn-map li", has_text="next turn continues here")).to_contain_text(
        "Note it from the first turn"
    )
    way.picture("turns")


def merge(way: Journey, order: Doc) -> None:
    """A pull request from the page; the code host's own button merges it."""
    page = way.page
    open_order(way, "Note what I changed")
    way.hands.press(way.link("Open pull request"))
    way.confirm()
    page.get_by_role("link", name="Pull request #1").first.wait_for(timeout=90_000 * PATIENCE)
    (pull,) = way.host.pulls
    assert (pull["base"], pull["head"]["ref"]) == ("main", order["branch"])
    press_merge(way, pull)
    merged = [git(way.remote, "show", f"main:{name}") for name in ("calc.py", "docs.md", "notes.txt")]
    assert "return sum((a, b))" in merged[0]
    assert merged[1:] == ["Written by hand.", "noted"]


def look_around(way: Journey, order: Doc) -> None:
    """A picture of every other page, none of which is wider than its window."""
    names = {**fill_up(way), **plan_and_link(way)}
    done = [each["id"] for each in way.fleet.json("orders") if each["status"] == "succeeded"]
    names |= {"order": order["id"], "session": order["session"], "compared": f"order={done[0]}&order={done[1]}"}
    for name, address in PICTURED.items():
        if name == "notifications":
            log_in(way.page, names["login"])
        way.page.goto(way.fleet.url + address.format(**names))
        way.picture(name)
        assert not scrolls_sideways(way.page), name


def fill_up(way: Journey) -> dict[str, str]:
    """One of each thing that the journey did not make; ids and names by what is pictured."""
    fleet = way.fleet
    way.plays(*NOTES)
    lead, graph, rows = (way.root / name for name in ("lead.md", "release.yaml", "issues.jsonl"))
    lead.write_text("You lead the work on calc.")
    fleet.json("agent", "add", "lead", "--instructions", str(lead))
    task = fleet.json("task", "create", "Refunds round half a cent the wrong way")["id"]
    graph.write_text(yaml.safe_dump({"project": "calc", "orders": GRAPH}))
    rows.write_text("".join(json.dumps({"id": f"calc-{number}", "prompt": text}) + "\n" for number, text in ROWS))
    fleet.fleet("graph", "run", str(graph), "--follow")
    for name in ("before", "after"):
        fleet.fleet("batch", "run", str(rows), "--project", "calc", "--name", name)
    batches = fleet.json("batch", "ls")
    wait_until(lambda: all(each["ended_at"] for each in fleet.json("orders")))
    fleet.json("hosts", "add", "shop", "--kind", "gitea", "--project", "calc", "--repository", "shop/calc")
    fleet.json("webhook", "add", "chat", "--url", "https://chat.example.org/fleet", "--event", "task.waiting")
    return {
        "task": task,
        "graph": fleet.json("graph", "ls")[0]["id"],
        "batch": batches[0]["id"],
        "other": batches[1]["id"],
    }


def plan_and_link(way: Journey) -> dict[str, str]:
    """A plan that waits, and the link in the e-mail about it, by which a user without a log-in answers."""
    fleet, user = way.fleet, "ada@example.org"
    fleet.json("user", "add", user, "--name", "Ada", "--role", "operator")
    token = fleet.json("api-token", "create", "--role", "operator", "--name", "ada", "--user", user)["token"]
    with FleetClient(fleet.url, token, ca_file=fleet.ca_file) as ada:
        ada.call(attention.EDIT, AttentionEdit(email=True, about="all", kinds=["approvals", "questions"]))
        login = ada.call(tokens.CREATE_LOGIN_LINK)["url"]
    way.plays(calls(("present_plan", PLAN)))
    order = fleet.submit("Refuse text in add()", "--plan-first", project="calc")
    wait_until(lambda: len(way.mail.received) == 1)
    text = str(way.mail.received[0].get_body(("plain",)).get_content())  # type: ignore[union-attr]
    link = re.search(r"/answer/\S+", text)
    assert link is not None, text
    return {"plan": order["id"], "link": link[0], "login": login}


def log_in(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(re.compile(r":\d+/$"))


def open_order(way: Journey, title: str) -> None:
    """Open the oldest order whose row has this text: of a session's title, its first turn."""
    way.hands.press(way.page.locator("nav.side a[href='/orders']"))
    way.hands.press(way.page.locator("li.entry", has_text=title).last.get_by_role("link").first)
    way.page.locator("#conversation").wait_for()


def menu(way: Journey, entry: str) -> None:
    """Open an entry of the session's menu."""
    way.hands.press(way.page.locator("#session-menu > summary"))
    way.hands.press(way.page.locator("#session-menu").get_by_text(entry))


def go_on(way: Journey) -> None:
    """End the command that the agent waits for."""
    homes = Path(way.machine.environment["DRONE_HOME"]).glob("workspace/sessions/*/work")
    for work in homes:
        (work / "go.cache").touch()


def press_merge(way: Journey, pull: Doc) -> None:
    """What the button of a code host does."""
    host = way.root / "host"
    git(way.root, "clone", "-q", str(way.remote), str(host))
    git(host, "merge", "-q", "--no-ff", "-m", f"Merge #{pull['number']}", f"origin/{pull['head']['ref']}")
    git(host, "push", "-q", "origin", "main")


def ticked(page: Page, number: int) -> None:
    """Return once the step is done."""
    page.locator(f"#first-{number}.ticked").wait_for(timeout=60_000 * PATIENCE)


def token_in(page: Page) -> str:
    """The join token in the dialog that shows it once."""
    shown = page.locator("dialog code", has_text="fj_").first.inner_text()
    found = re.search(r"fj_\S+", shown)
    assert found, shown
    return found[0]


def add_machine(way: Journey, token: str) -> WorkstationDrone:
    """What the user types in a terminal of the new machine."""
    home = way.root / "machine"
    home.mkdir()
    environment = {**way.fleet.environment, "HOME": str(home), "DRONE_HOME": str(home / "drone")}
    drone = WorkstationDrone("mila", environment, way.root / "mila.log", token)
    done = drone.run("register", "--url", way.fleet.url, "--token", token, "--name", "mila")
    assert done.returncode == 0, done.stderr
    way.fleet.workstations.append(drone)
    drone.start()
    return drone
