"""A fleet with a drone whose machine has canaries in all places that hostile work must not reach."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from control_plane.declarations import projects, providers
from control_plane.declarations.projects import ProjectRequest
from control_plane.declarations.providers import ProviderRequest
from drone.model.scripted.server import ScriptedServer
from shared.names import new_id
from tests.hostile.git_tries import hostile_remote
from tests.hostile.hostile_work import Row, Try, judged, script
from tests.support.canaries import Canaries
from tests.support.git_servers import GitHttpServer, serving
from tests.support.repositories import calc_project, empty_remote, git
from tests.support.whole_fleet import WholeFleet, WorkstationDrone

KEY = "Hw5-Rq8Zn3Vt6Kx1Pc9Ld4Sb7Jy2Gm0_Fu"
CANARY = f"canary{new_id()}"
"""In the files of the drone's owner."""
OTHERS = f"others{new_id()}"
"""In the work of another session."""
PROCESSES = 3000
LIMITS = '[limits]\nmemory = "300 MiB"\nprocesses = 300\nfile_size = "50 MB"\ndisk = "100 MB"\n'


class _Redirects(BaseHTTPRequestHandler):
    """A server that the owner allows, and that leads elsewhere."""

    def do_GET(self) -> None:
        targets = {"/to-loopback": "http://127.0.0.1:80/", "/to-metadata": "http://169.254.169.254/latest/"}
        self.send_response(302)
        self.send_header("Location", targets.get(self.path, "/"))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@dataclass
class Campaign:
    """The fleet, the hostile drone's owner, and the table."""

    fleet: WholeFleet
    drone: WorkstationDrone
    model: ScriptedServer
    scripts: dict[str, Any]
    decoys: dict[str, Any]
    remotes: Path
    table: list[Row] = field(default_factory=list)

    def order(self, name: str, tries: list[Try]) -> tuple[dict[str, Any], list[str]]:
        """Have the model make these calls; return the order when it has ended, and what got through."""
        self.model.book = type(self.model.book).of({**self.scripts, name: script(tries)})
        begun = self.fleet.submit(f"Do it, script:{name}", "--max-iterations", "0", project="traps")
        order = self.fleet.ended(begun["id"], seconds=120)
        rows, problems = judged(tries, order, [CANARY, OTHERS, KEY])
        self.table += rows
        return order, problems

    def works_on(self) -> dict[str, Any]:
        """An honest order, after everything."""
        return self.fleet.ended(self.fleet.submit("Note it, script:note")["id"])

    def changed(self) -> list[str]:
        """Canaries that are not as they were, and markers that a command made outside."""
        marks = [str(path) for path in self.decoys["marker"].parent.iterdir()]
        return marks + [str(path) for path, content in self.decoys["files"].items() if path.read_bytes() != content]


@contextmanager
def campaign(fleet: WholeFleet, root: Path, *options: str) -> Iterator[Campaign]:
    """A fleet that is up gets a drone among canaries, a hostile repository, and an honest one."""
    with ExitStack() as stack:
        drone = fleet.workstation("crow", *options)
        home = Path(drone.environment["HOME"])
        remotes = root / "served"
        remotes.mkdir()
        served = stack.enter_context(serving(GitHttpServer(remotes)))
        site = stack.enter_context(_site())
        decoys = stack.enter_context(_decoys(fleet, home, drone))
        decoys |= {"git": served.server_port, "site": site}
        _policy(drone, f'[network]\naccess = "public"\nhosts = ["127.0.0.1:{site}"]\n{LIMITS}', decoys)
        hostile_remote(remotes / "traps.git", decoys)
        git(empty_remote(remotes / "foreign.git"), "config", "http.receivepack", "true")
        git(calc_project(remotes / "calc.git"), "config", "http.receivepack", "true")
        scripts = {"note": script([Try("", "shell", {"command": f"echo {OTHERS} >> notes.txt"}, "")])}
        model = stack.enter_context(ScriptedServer(scripts, api_key=KEY))
        with fleet.client() as client:
            request = ProviderRequest(name="scripted", model="openai/scripted", api_base=model.url, api_key=KEY)
            client.call(providers.ADD, request)
            for slug, name in (("demo", "calc.git"), ("traps", "traps.git")):
                client.call(projects.ADD, ProjectRequest(slug=slug, git_url=served.url(name), provider="scripted"))
        drone.start()
        fleet.online("crow", seconds=60)
        made = Campaign(fleet, drone, model, scripts, decoys, remotes)
        first = made.works_on()
        assert first["status"] == "succeeded", first["reason"]
        (other,) = (path.parent for path in home.glob("drone/workspace/sessions/*/work"))
        decoys |= {"other": other / "work", "other_git": other / "git", "sessions": other.parent}
        decoys["pid"] = drone.process.pid if drone.process else 0
        yield made


def _policy(drone: WorkstationDrone, text: str, decoys: dict[str, Any]) -> None:
    file = Path(drone.environment["HOME"]) / "policy.toml"
    file.write_text(f"{text}# {CANARY}\n")
    drone.environment = {**drone.environment, "DRONE_POLICY": str(file)}
    decoys["policy"] = file
    decoys["files"][file] = file.read_bytes()


@contextmanager
def _decoys(fleet: WholeFleet, home: Path, drone: WorkstationDrone) -> Iterator[dict[str, Any]]:
    """Files, sockets and a process environment with the canary; what they were is in `files`."""
    places = [home / ".ssh" / "id_ed25519", home / ".netrc", home / ".bashrc", home / ".aws" / "credentials"]
    for path in places:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{CANARY}\n")
        path.chmod(0o644)
    kept = [*places, Path("/etc/shadow"), Path("/etc/passwd"), home / "drone" / "key", home / "drone" / "drone.json"]
    drone.environment = {**drone.environment, "OWNERS_KEY": CANARY}
    marks = fleet.root / "marks"
    marks.mkdir()
    up = json.loads((fleet.data / "up.json").read_text())
    with ExitStack() as stack:
        sockets = {name: fleet.root / f"{name}.sock" for name in ("docker", "agent")}
        abstract = f"hostile-{new_id()}"
        for address in (*map(str, sockets.values()), f"\0{abstract}"):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        yield {
            **sockets,
            "abstract": abstract,
            "home": home,
            "drone": home / "drone",
            "marker": marks / "made",
            "files": {path: path.read_bytes() for path in kept},
            "fleet": urlsplit(fleet.url).port,
            "broker": up["broker_port"],
            # Matches the canary, and not the command that looks for it.
            "pattern": f"[{CANARY[0]}]{CANARY[1:8]}",
            "processes": PROCESSES,
        }


@contextmanager
def _site() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Redirects)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def doctor_rows(drone: WorkstationDrone) -> tuple[list[Row], list[str]]:
    """The break-outs of `drone doctor --sandbox`, as rows; those that got out, as problems."""
    done = drone.run("doctor", "--sandbox", "--json")
    checks = json.loads(done.stdout)["checks"]
    rows = [Row(each["what"], each["found"], f"doctor, {each['code']}") for each in checks if "D-WALL" in each["code"]]
    return rows, [f"{row.what}: {row.seen}" for row in rows if row.seen != "refused"]


def leaks(campaign: Campaign) -> dict[str, set[str]]:
    """Where the fleet's own data, its logs and the remotes hold the key or a canary of the owner."""
    secrets = Canaries(KEY, CANARY)
    stored = [path for path in (*campaign.fleet.data.rglob("*"), *campaign.remotes.rglob("*")) if path.is_file()]
    return secrets.found_in_any((str(path), path.read_bytes()) for path in stored)


def left_behind(campaign: Campaign) -> list[str]:
    """Processes, mounts and namespaces that still know the campaign's directory, once its drone has ended."""
    word = str(campaign.fleet.root)
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if word in line]
    return mounts + [each for pid in psutil.pids() if pid != os.getpid() for each in _knows(pid, word)]


def _knows(pid: int, word: str) -> Iterator[str]:
    try:
        if word in Path(f"/proc/{pid}/mountinfo").read_text():
            yield f"process {pid} has a mount: {psutil.Process(pid).cmdline()}"
    except (OSError, psutil.Error):
        return


def bounded(drone: WorkstationDrone) -> None:
    """Give the drone's processes a bound of the kernel: no account below it has more processes than this."""
    assert drone.process is not None
    drone_process = psutil.Process(drone.process.pid)
    for process in (drone_process, *drone_process.children(recursive=True)):
        process.rlimit(psutil.RLIMIT_NPROC, (PROCESSES, PROCESSES))
