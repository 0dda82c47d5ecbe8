"""Secrets that a model prints in every spelling, through every channel, turn up nowhere but in its own workspace.

A whole fleet with a key, a git token, Flower and a scripted model whose commands print both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from control_plane.contract.declarations import projects, providers
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from drone.model.scripted.server import ScriptedServer
from shared.redaction import MARK
from tests.acceptance.scripts import Reply, calls, shell
from tests.support import wait_until
from tests.support.canaries import Canaries, files_below, objects_of
from tests.support.git_servers import GitHttpServer, serving
from tests.support.repositories import calc_project
from tests.support.spellings import BYTES_AS_TEXT, SPELLINGS
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.campaign, pytest.mark.hostile, pytest.mark.timeout(300)]

KEY = "Qk7-Zx9Wv2Tp4Ls6Rm1Jd8Hf3Gb5Ny0Cu_Ea"
TOKEN = "Vt4Mq8Xz2Kc6Ws0Np5Jb9Rg3Yd7Hf1Lu"
CANARIES = Canaries(KEY, TOKEN)
SPELLED = CANARIES.spelled
AS_BYTES = f"""python3 - <<'END'
import sys
for secret in {(KEY, TOKEN)!r}:
    for encoding in ("utf-16-le", "utf-16-be"):
        sys.stdout.buffer.write(secret.encode(encoding) + b"\\n")
END
"""


def written(to: str = "") -> str:
    """A command that writes all spellings to its output, or to a file."""
    return f"cat {to and '> ' + to} <<'END'\n{SPELLED}\nEND\n"


TALK: list[Reply] = [
    # Waits until the test follows.
    {**shell(written()), "text": SPELLED, "thinking": SPELLED, "delay_s": 1.5},
    shell(f"mkdir build\n{written('build/canary.txt')}"),
    calls(
        ("file_read", {"mode": "view", "path": "build/canary.txt"}),
        ("grep", {"pattern": "as ", "path": "build"}),
        ("file_read", {"mode": "view", "path": f"build/{KEY}"}),
        ("no_such_tool", {KEY: SPELLED}),
    ),
    shell(AS_BYTES),
    shell("seq 1 9000; cat build/canary.txt; seq 1 9000"),
    shell("cat build/canary.txt >&2; exit 3"),
    shell("rm -r build; echo harmless > notes.txt"),
    calls(("submit", {"summary": SPELLED})),
]
IN_THE_WORK: dict[str, list[Reply]] = {
    "file": [shell(written("leak.txt")), {"text": "Done."}],
    "message": [
        shell(f"echo x > x; git add x; git commit -qm 'use {SPELLINGS['base64 at 1'](KEY)}'"),
        {"text": "Done."},
    ],
    "name": [shell(f"echo x > {KEY}.txt"), {"text": "Done."}],
}
PROMPT, CODE, ANSWER = "wobbegong_in_the_prompt", "numbat_in_the_code", "quokka_in_the_answer"
WORK: list[Reply] = [
    shell(f"echo 'def {CODE}(): pass' > numbat.py; cat numbat.py"),
    calls(("submit", {"summary": ANSWER})),
]
BRANCH = [shell(f"git checkout -qb {TOKEN}; echo x > x; git add x; git commit -qm x"), {"text": "Done."}]
SCRIPTS = {
    **IN_THE_WORK,
    **{"talk": TALK, "branch": BRANCH, "error": [{"status": 400, "error": SPELLED}]},
    PROMPT: WORK,
}


@dataclass
class Told:
    """A fleet in which secrets were printed, and what it said of it."""

    fleet: WholeFleet
    remote: Path
    orders: dict[str, dict[str, Any]]
    """By the name of the script."""
    followed: str
    """The live stream of the first order."""

    def shown(self) -> Iterator[tuple[str, bytes]]:
        """What the interface, the pages, Flower and the command lines show."""
        with httpx.Client(base_url=self.fleet.url, headers={"Authorization": f"Bearer {self.fleet.token}"}) as http:
            for path in self._addresses():
                yield path, http.get(path).content
        with httpx.Client(base_url=self.fleet.url, follow_redirects=True) as browser:
            browser.post("/login", data={"token": self.fleet.token, "browser_key": "k" * 64})
            for path in ("/", *(f"/orders/{order['id']}" for order in self.orders.values())):
                page = browser.get(path, headers={"Accept": "text/html"})
                assert "<html" in page.text
                yield f"page {path}", page.content
        yield from shown_by_flower(self.fleet, self.orders["talk"])
        for order in self.orders.values():
            for words in (("show",), ("follow", "--outputs"), ("patch",), ("trajectory",)):
                done = self.fleet.fleet(words[0], order["id"], *words[1:])
                yield f"fleet {words[0]} {order['id']}", f"{done.stdout}{done.stderr}".encode()

    def _addresses(self) -> Iterator[str]:
        yield from ("/api/v1/orders", "/api/v1/status", "/api/v1/organizations/default/export")
        for order in self.orders.values():
            base = f"/api/v1/orders/{order['id']}"
            yield from (base, f"{base}/steps", f"{base}/patch", f"{base}/trajectory")
            yield from (f"{base}/log/{step['seq']}" for step in order["steps"] if step["kind"] == "tool_result")
            yield f"/api/v1/sessions/{order['session']}"


def shown_by_flower(fleet: WholeFleet, order: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Flower's pages, and what its interface says of the order's first run."""
    known = json.loads((fleet.data / "up.json").read_text())
    url, auth = f"http://127.0.0.1:{known['flower_port']}/flower", ("fleet", known["flower_password"])
    run = order["runs"][0]["id"]
    for path in ("/api/tasks", f"/api/task/info/{run}", "/api/workers", "/workers", "/tasks", f"/task/{run}"):
        answer = httpx.get(f"{url}{path}", auth=auth, timeout=60).raise_for_status()
        yield f"Flower {path}", answer.content


@contextmanager
def working_fleet(directory: Path, scripts: dict[str, list[Reply]]) -> Iterator[tuple[WholeFleet, Path]]:
    """A fleet with Flower, a drone, a model that plays the scripts, and a project; and the project's remote."""
    remote = calc_project(directory / "served" / "calc.git")
    server, fleet = (
        GitHttpServer(directory / "served", f"{TOKEN}:"),
        WholeFleet(directory / "fleet", drones=0, options=("--flower-port", "0")),
    )
    with ScriptedServer(scripts, api_key=KEY, chunk_delay_s=0.002) as model, serving(server), closing(fleet):
        fleet.start()
        fleet.workstation("mila").start()
        fleet.online("mila")
        provider = ProviderRequest(name="scripted", model="openai/scripted", api_base=model.url, api_key=KEY)
        project = ProjectRequest(slug="demo", git_url=server.url("calc.git", TOKEN), provider="scripted")
        with fleet.client() as client:
            client.call(providers.ADD, provider)
            client.call(projects.ADD, project)
        yield fleet, remote
        assert fleet.transcript_problems() == []


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    with working_fleet(tmp_path_factory.mktemp("canaries"), SCRIPTS) as (fleet, remote):
        first = fleet.submit("Do it, script:talk")["id"]
        followed = follow(fleet, first)
        others = {name: fleet.submit(f"Do it, script:{name}")["id"] for name in SCRIPTS if name != "talk"}
        for name in IN_THE_WORK:
            wait_until(lambda order=others[name]: fleet.order(order)["status"] == "awaiting_approval", seconds=90)
            fleet.json("deny", others[name])
        orders = {name: fleet.ended(order) for name, order in {"talk": first, **others}.items()}
        yield Told(fleet, remote, orders, followed)


def follow(fleet: WholeFleet, order_id: str) -> str:
    """The order's live stream, to its end."""
    headers = {"Authorization": f"Bearer {fleet.token}"}
    return httpx.get(f"{fleet.url}/api/v1/orders/{order_id}/events", headers=headers, timeout=90).text


def texts_in_flight(followed: str) -> dict[str, str]:
    """The deltas of each kind, joined as a page joins them."""
    deltas = [json.loads(data) for data in re.findall(r"event: delta\ndata: (.*)", followed)]
    return {
        kind: "".join(each["text"] for each in deltas if each["kind"] == kind) for kind in {d["kind"] for d in deltas}
    }


def test_secrets_in_every_spelling_and_channel_are_found_nowhere(told: Told) -> None:
    fleet, talk = told.fleet, told.orders["talk"]
    in_flight = texts_in_flight(told.followed)
    assert (talk["status"], talk["response"].count(MARK) >= len(SPELLINGS)) == ("succeeded", True), talk["reason"]
    assert {kind for kind, text in in_flight.items() if MARK in text} >= {"text", "thinking", "output"}
    assert sum(MARK in json.dumps(step) for step in talk["steps"]) >= 16
    assert MARK in told.orders["error"]["reason"]
    assert {name for name, order in told.orders.items() if "the work contains a secret" in order["reason"]} == {
        *IN_THE_WORK
    }

    assert (
        CANARIES.found_in_any((kind, text.encode()) for kind, text in {"live": told.followed, **in_flight}.items())
        == {}
    )
    assert CANARIES.found_in_any(told.shown()) == {}
    assert CANARIES.found_in_any(files_below(fleet.root, without="*/drone/workspace/sessions")) == {}
    bundles = [
        path for path in (fleet.data / "blobs").rglob("*") if path.is_file() and path.read_bytes()[:8] == b"# v2 git"
    ]
    assert CANARIES.found_in_any(objects_of(told.remote, *bundles)) == {}
    # The same search finds them where the model wrote them.
    kept = files_below(fleet.root / "workstation mila" / "drone" / "workspace" / "sessions", without="nothing")
    assert {*SPELLINGS} - BYTES_AS_TEXT <= set().union(*CANARIES.found_in_any(kept).values())


def test_prompt_code_and_answer_of_an_order_are_neither_in_the_brokers_files_nor_in_flower(told: Told) -> None:
    fleet, order = told.fleet, told.orders[PROMPT]
    assert (order["status"], PROMPT in order["prompt"], ANSWER in order["response"]) == ("succeeded", True, True)
    assert CODE in fleet.fleet("patch", order["id"]).stdout
    words, files = Canaries(PROMPT, CODE, ANSWER), list(files_below(fleet.data / "valkey", without="nothing"))
    assert words.found_in_any(files) == {}
    assert words.found_in_any(shown_by_flower(fleet, order)) == {}
    # The same files and pages name the run.
    run = Canaries(order["runs"][0]["id"])
    assert run.found_in_any(files)
    assert run.found_in_any(shown_by_flower(fleet, order))
