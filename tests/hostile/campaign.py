"""A fleet with a drone whose machine has canaries in all places that hostile work must not reach."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from control_plane.contract.declarations import projects, providers
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from drone.model.scripted.server import ScriptedServer
from drone.sandbox.account import give, give_tree
from shared.names import new_id
from tests.hostile import key_tries, text_tries
from tests.hostile.git_tries import hostile_remote
from tests.hostile.hostile_work import Try, problems_of, script
from tests.hostile.way_out import PUBLIC, WayOut, way_out
from tests.support import wait_until
from tests.support.canaries import Canaries, objects_of
from tests.support.git_servers import GitHttpServer, serving
from tests.support.machines import ORDINARY
from tests.support.repositories import calc_project, empty_remote, git
from tests.support.whole_fleet import WholeFleet, WorkstationDrone

KEY = "Hw5-Rq8Zn3Vt6Kx1Pc9Ld4Sb7Jy2Gm0_Fu"
CANARY = f"canary{new_id()}"
"""In the files of the drone's owner."""
OTHERS = f"others{new_id()}"
"""In the work of another session."""
PROCESSES = 3000
"""The drone and all below it have a bound of the kernel: no account has more processes than this."""
LIMITS = '[limits]\nmemory = "300 MiB"\nprocesses = 300\nfile_size = "50 MB"\ndisk = "100 MB"\n'


@dataclass(frozen=True)
class Kind:
    """What a campaign is fought against."""

    sandbox: str
    user: int | None = None
    """The drone's user; None: root."""


AS_ROOT, AS_USER, IN_CONTAINERS = Kind("bwrap"), Kind("bwrap", ORDINARY), Kind("docker")


@dataclass
class Campaign:
    """The fleet, and the hostile drone's owner."""

    fleet: WholeFleet
    drone: WorkstationDrone
    way_out: WayOut
    model: ScriptedServer
    scripts: dict[str, Any]
    decoys: dict[str, Any]
    remotes: Path

    def order(self, name: str, tries: list[Try]) -> tuple[dict[str, Any], list[str]]:
        """Have the model make these calls; return the order when it has ended, and what got through."""
        return self._judged(self._begin(name, tries), tries)

    def keys(self) -> list[str]:
        """Orders that look for the provider's key and tell it in every spelling; return what got through."""
        spelled = Canaries(KEY).spelled
        tries, leak = list(key_tries.tries(self.decoys, spelled)), list(key_tries.leak(KEY))
        order, problems = self._judged(self._begin("keys", tries, spelled), tries)
        asked = self._begin("leak", leak)
        wait_until(lambda: self.fleet.order(asked)["status"] == "awaiting_approval", seconds=60)
        self.fleet.json("deny", asked)
        denied, more = self._judged(asked, leak)
        told = Canaries(KEY).found_in_any((each["id"], json.dumps(each).encode()) for each in (order, denied))
        return [*problems, *more, *map(str, told.items())]

    def texts(self) -> list[str]:
        """An order that writes what acts on terminals and pages; return what did."""
        tries = list(text_tries.tries())
        begun = self._begin("texts", tries, text_tries.TEXT)
        live = text_tries.on_terminal(self.fleet, "follow", begun)
        order, problems = self._judged(begun, tries)
        return [*problems, *text_tries.problems_in(text_tries.shown(self.fleet, order, live))]

    def _begin(self, name: str, tries: list[Try], says: str = "I tried.") -> str:
        """Have the model begin to make these calls, and end with these words; return the order's id."""
        self.model.book = type(self.model.book).of({**self.scripts, name: script(tries, says)})
        return str(self.fleet.submit(f"Do it, script:{name}", "--max-iterations", "0", project="traps")["id"])

    def _judged(self, order_id: str, tries: list[Try]) -> tuple[dict[str, Any], list[str]]:
        order = self.fleet.ended(order_id, seconds=240)
        return order, list(problems_of(tries, order, [CANARY, OTHERS, KEY]))

    def works_on(self) -> dict[str, Any]:
        """An honest order, after everything."""
        return self.fleet.ended(self.fleet.submit("Note it, script:note")["id"])

    def changed(self) -> list[str]:
        """Canaries that are not as they were, markers that a command made outside, and wrong ways out."""
        marks = [str(path) for path in self.decoys["marker"].parent.iterdir()]
        marks += [f"led to {target}" for target in self.way_out.reached if not target.startswith(f"{PUBLIC}:")]
        return marks + [str(path) for path, content in self.decoys["files"].items() if path.read_bytes() != content]


@contextmanager
def campaign(fleet: WholeFleet, root: Path, kind: Kind) -> Iterator[Campaign]:
    """A fleet that is up gets a drone among canaries, a hostile repository, and an honest one."""
    with ExitStack() as stack:
        out = stack.enter_context(way_out())
        drone = _drone(fleet, kind, out, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="campaign-"))))
        home = Path(drone.environment["HOME"])
        remotes = root / "served"
        remotes.mkdir()
        served = stack.enter_context(serving(GitHttpServer(remotes)))
        decoys = stack.enter_context(_decoys(fleet, home, drone))
        decoys |= {"git": served.server_port, "site": out.site}
        policy = home / "policy.toml"
        policy.write_text(f'[network]\naccess = "public"\nhosts = ["127.0.0.1:{out.site}"]\n{LIMITS}# {CANARY}\n')
        drone.environment = {**drone.environment, "DRONE_POLICY": str(policy)}
        decoys["policy"], decoys["files"][policy] = policy, policy.read_bytes()
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
        give_tree(home, kind.user or 0)
        drone.start()
        fleet.online("crow", seconds=60)
        made = Campaign(fleet, drone, out, model, scripts, decoys, remotes)
        first = made.works_on()
        assert first["status"] == "succeeded", first["reason"]
        (other,) = (path.parent for path in home.glob("drone/workspace/sessions/*/work"))
        decoys |= {"other": other / "work", "other_git": other / "git", "sessions": other.parent}
        decoys["pid"] = drone.process.pid if drone.process else 0
        decoys["model"] = urlsplit(model.url).port
        yield made


def _drone(fleet: WholeFleet, kind: Kind, out: WayOut, place: Path) -> WorkstationDrone:
    """A drone of that kind, whose owner's files and decoys are in a place that its user could reach."""
    place.chmod(0o755)
    home, room = place / "home", place / "room"
    home.mkdir()
    room.mkdir()
    give(home, kind.user or 0)
    machine = out.machine(room, PROCESSES, kind.user)
    own = {"XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config"), **out.variables}
    return fleet.workstation("crow", "--sandbox", kind.sandbox, home=home, code=own, machine=machine)


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
    marks = home.parent / "marks"
    marks.mkdir()
    marks.chmod(0o777)
    up = json.loads((fleet.data / "up.json").read_text())
    with ExitStack() as stack:
        sockets = {name: home.parent / f"{name}.sock" for name in ("docker", "agent")}
        abstract = f"hostile-{new_id()}"
        for address in (*map(str, sockets.values()), f"\0{abstract}"):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        for path in sockets.values():
            path.chmod(0o666)
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
            "key": f"[{KEY[0]}]{KEY[1:12]}",
            "processes": PROCESSES,
        }


def break_outs(drone: WorkstationDrone) -> list[str]:
    """What gets out of the sandbox, according to `drone doctor --sandbox`."""
    checks = json.loads(drone.run("doctor", "--sandbox", "--json").stdout)["checks"]
    held = "refused", "not provable here"
    return [each["what"] for each in checks if "D-WALL" in each["code"] and not each["found"].startswith(held)]


def leaks(campaign: Campaign) -> dict[str, set[str]]:
    """Where the fleet's own data, its logs and the remotes hold the key or a canary of the owner."""
    secrets = Canaries(KEY, CANARY)
    stored = [path for path in (*campaign.fleet.data.rglob("*"), *campaign.remotes.rglob("*")) if path.is_file()]
    objects = [each for remote in campaign.remotes.glob("*.git") for each in objects_of(remote)]
    return secrets.found_in_any([*((str(path), path.read_bytes()) for path in stored), *objects])


def left_behind(campaign: Campaign) -> list[str]:
    """Processes, mounts and namespaces that still know the campaign's directory, once its drone has ended."""
    word = str(campaign.decoys["home"].parent)
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if word in line]
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if pid != os.getpid() and word in Path(f"/proc/{pid}/mountinfo").read_text():
                mounts.append(f"process {pid} has a mount: {psutil.Process(pid).cmdline()}")
    return mounts
