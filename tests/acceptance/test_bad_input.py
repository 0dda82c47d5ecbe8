"""Wrong use gets a one-sentence error, the right exit code and no traceback, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until, warm_processes
from tests.support.repositories import calc_project
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import WholeFleet, WorkstationDrone

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, model: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> WholeFleet:
    """The shared fleet with a project for this module."""
    remote = calc_project(tmp_path_factory.mktemp("bad") / "calc.git")
    shared_fleet.json(
        "provider", "add", "bad", "--no-check", "--model", "openai/scripted", "--api-base", model.url, "--no-key"
    )
    shared_fleet.json("project", "add", "bad", "--no-check", "--git-url", f"file://{remote}", "--provider", "bad")
    return shared_fleet


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("submit", "Do it", "--project", "nope"), 3, "nope"),
        (("submit", "Do it", "--project", "bad", "--drone", "nope"), 3, "nope"),
        (("submit", "Do it", "--project", "bad", "--provider", "nope"), 3, "nope"),
        (("submit", "Do it", "--project", "bad", "--session", "0123456789ab"), 3, "0123456789ab"),
        (("submit", "  ", "--project", "bad"), 2, "prompt"),
        (("submit", "Do it", "--project", "bad", "--label", "gpu"), 2, "label"),
        (("submit", "Do it", "--project", "bad", "--mode", "dream"), 3, "mode"),
        (("submit", "Do it", "--project", "bad", "--cost-limit", "-1"), 2, "cost_limit"),
        (("submit",), 2, "prompt"),
        (("show", "0123456789ab"), 3, "0123456789ab"),
        (("cancel", "0123456789ab"), 3, "0123456789ab"),
        (("follow", "0123456789ab"), 3, "0123456789ab"),
        (("patch", "0123456789ab"), 3, "0123456789ab"),
        (("drone", "show", "nope"), 3, "nope"),
        (("drone", "drain", "nope"), 3, "nope"),
        (("orders", "--status", "dreaming"), 2, "dreaming"),
        (("token", "create", "--expires", "soon"), 2, "soon"),
        (("api-token", "create", "--role", "king"), 2, "king"),
        (("provider", "add", "bad", "--model", "openai/x", "--no-key"), 4, "bad"),
        (("provider", "add", "x" * 10_000, "--model", "openai/x", "--no-key"), 2, "name"),
        (("provider", "show", "nope"), 3, "nope"),
        (("project", "add", "bad", "--git-url", "https://example.org/x.git"), 4, "bad"),
        (("project", "add", "Bad Name", "--git-url", "https://example.org/x.git"), 2, "Bad Name"),
        (("project", "add", "ext", "--git-url", "ext::sh -c whoami"), 2, "git"),
        (("project", "add", "opt", "--git-url", "--upload-pack=evil"), 2, "git"),
        (("project", "show", "nope"), 3, "nope"),
        (("pool", "show", "nope"), 3, "nope"),
        (("pool", "rm", "nope", "--yes"), 3, "nope"),
        (("pool", "rotate", "nope"), 3, "nope"),
        (("pool", "add", "Bad Name"), 2, "Bad Name"),
        (("pool", "add", "zero", "--max-drones", "0"), 2, "max_drones"),
        (("pool", "add", "negative", "--max-drones", "-1"), 2, "max_drones"),
        (("pool", "add", "soon", "--expires", "soon"), 2, "soon"),
        (("pool", "add", "unlabelled", "--label", "gpu"), 2, "label"),
        (("--org", "nope", "orders"), 2, "--org"),
        (("orders", "--org", "nope"), 3, "nope"),
    ],
)
def test_wrong_use_is_one_clear_refusal(fleet: WholeFleet, arguments: tuple[str, ...], code: int, word: str) -> None:
    done = fleet.fleet(*arguments)

    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.startswith("error: ")
    assert word.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert len(done.stderr) < 2000


def test_a_prompt_of_a_megabyte_is_refused_with_the_limit(fleet: WholeFleet) -> None:
    done = fleet.fleet("submit", "-", "--project", "bad", text="x" * 1_000_000)

    assert done.returncode == 2
    assert "prompt" in done.stderr
    assert len(done.stderr) < 1000


def test_a_label_that_no_drone_has_keeps_the_order_waiting_and_says_so(fleet: WholeFleet) -> None:
    order = fleet.submit("Do it", "--label", "gpu=yes", project="bad")

    assert order["status"] == "queued"
    assert "gpu=yes" in order["reason"]
    assert fleet.json("cancel", order["id"])["status"] == "canceled"


def test_a_password_in_a_url_is_never_shown_again(fleet: WholeFleet) -> None:
    url = "https://me:hunter2@example.org/x.git"

    added = fleet.fleet("project", "add", "secret", "--no-check", "--git-url", url, "--json")

    shown = fleet.fleet("project", "ls").stdout + fleet.fleet("project", "show", "secret", "--json").stdout
    assert added.returncode == 0
    assert "hunter2" not in added.stdout + added.stderr + shown
    assert "example.org" in shown


@pytest.mark.parametrize(
    ("slug", "url", "options", "word"),
    [
        ("gone", "file:///nowhere/at/all.git", (), "/nowhere/at/all.git"),
        ("closed", "http://127.0.0.1:9/x.git", (), "127.0.0.1"),
    ],
)
def test_a_repository_that_cannot_be_reached_ends_or_holds_the_order_truthfully(
    fleet: WholeFleet, slug: str, url: str, options: tuple[str, ...], word: str
) -> None:
    fleet.json("project", "add", slug, "--no-check", "--git-url", url, "--provider", "bad", *options)

    order = fleet.ended(fleet.submit("Note it, script:note", project=slug)["id"], seconds=90)

    assert order["status"] == "failed"
    assert word in order["reason"]
    assert "Traceback" not in order["reason"]


def test_a_branch_that_does_not_exist_is_named(fleet: WholeFleet, tmp_path: Path) -> None:
    remote = calc_project(tmp_path / "calc.git")
    git_url = f"file://{remote}"
    fleet.json(
        "project", "add", "no-branch", "--no-check", "--git-url", git_url, "--branch", "gone", "--provider", "bad"
    )

    order = fleet.ended(fleet.submit("Note it, script:note", project="no-branch")["id"])

    assert order["status"] == "failed"
    assert "gone" in order["reason"]


def test_a_model_that_answers_garbage_fails_the_order_and_says_what_it_was(fleet: WholeFleet) -> None:
    order = fleet.ended(fleet.submit("Go on, script:garbage", project="bad")["id"], seconds=90)

    assert (order["status"], order["exit_status"]) == ("failed", "model_error")
    assert [step["kind"] for step in order["steps"]].count("retry") == 3


def test_a_model_endpoint_that_refuses_the_connection_fails_the_order(fleet: WholeFleet) -> None:
    api_base = "http://127.0.0.1:9/v1"
    fleet.json(
        "provider", "add", "closed", "--no-check", "--model", "openai/scripted", "--api-base", api_base, "--no-key"
    )

    order = fleet.ended(fleet.submit("Go on", "--provider", "closed", project="bad")["id"], seconds=90)

    assert (order["status"], order["exit_status"]) == ("failed", "model_error")
    assert "127.0.0.1:9" in order["reason"]


@pytest.fixture
def visitor(fleet: WholeFleet, tmp_path: Path) -> Callable[[str], WorkstationDrone]:
    """A function that returns a workstation whose drone is not registered yet."""

    def visit(name: str) -> WorkstationDrone:
        home = tmp_path / name
        home.mkdir()
        environment = {**fleet.environment, "HOME": str(home), "DRONE_HOME": str(home / "drone")}
        return WorkstationDrone(name, environment, tmp_path / f"{name}.log")

    return visit


@pytest.mark.parametrize(
    ("token", "code"),
    [("nonsense", 2), ("fj_0000000000000000000000000000000000000000000000000000000000000000_0123456789abcdef", 6)],
)
def test_a_malformed_or_forged_join_token_is_refused(
    fleet: WholeFleet, visitor: Callable[[str], WorkstationDrone], token: str, code: int
) -> None:
    done = visitor("forger").run("register", "--url", fleet.url, "--token", token)

    assert done.returncode == code
    assert "token" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_join_token_works_once_and_a_name_belongs_to_one_drone(
    fleet: WholeFleet, visitor: Callable[[str], WorkstationDrone]
) -> None:
    token, second = (fleet.fleet("token", "create").stdout.strip() for _ in range(2))
    first = visitor("first").run("register", "--url", fleet.url, "--token", token, "--name", "taken")

    used = visitor("second").run("register", "--url", fleet.url, "--token", token, "--name", "other")
    taken = visitor("third").run("register", "--url", fleet.url, "--token", second, "--name", "taken")

    assert first.returncode == 0, first.stderr
    assert (used.returncode, taken.returncode) == (6, 4)
    assert "used" in used.stderr
    assert "taken" in taken.stderr


def test_an_expired_join_token_says_that_it_expired(
    fleet: WholeFleet, visitor: Callable[[str], WorkstationDrone]
) -> None:
    token = fleet.fleet("token", "create", "--expires", "1s").stdout.strip()
    drone = visitor("late")

    done = wait_until(lambda: _refused(drone, fleet.url, token), every=1.2)

    assert done == 6


def _refused(drone: WorkstationDrone, url: str, token: str) -> int:
    done = drone.run("register", "--url", url, "--token", token)
    return done.returncode if "expired" in done.stderr else 0


FORGED = "fj_0000000000000000000000000000000000000000000000000000000000000000_0123456789abcdef"


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (("--ephemeral",), 2, "--url"),
        (("--ephemeral", "--url", "{url}"), 2, "DRONE_TOKEN"),
        (("--ephemeral", "--url", "nonsense", "--token", FORGED), 2, "URL"),
        (("--ephemeral", "--url", "{url}", "--token", "nonsense"), 2, "token"),
        (("--ephemeral", "--url", "{url}", "--token", FORGED), 6, "unknown"),
        (("--ephemeral", "--url", "{url}", "--token", FORGED, "--idle", "0"), 2, "duration"),
        (("--ephemeral", "--url", "{url}", "--token", FORGED, "--orders", "0"), 2, "orders"),
        (("--ephemeral", "--url", "http://127.0.0.1:9", "--token", FORGED), 5, "127.0.0.1:9"),
        (("--idle", "5m"), 2, "--idle"),
        (("--token", FORGED), 2, "--token"),
    ],
)
def test_an_ephemeral_drone_that_cannot_join_is_refused_and_leaves_no_files(
    fleet: WholeFleet, tmp_path: Path, options: tuple[str, ...], code: int, word: str
) -> None:
    environment = {**fleet.environment, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    drone = WorkstationDrone("passing", environment, tmp_path / "log")
    done = drone.run("start", *(each.format(url=fleet.url) for each in options))
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_tokens_and_homes_of_other_drones_are_not_for_an_ephemeral_one(
    fleet: WholeFleet, visitor: Callable[[str], WorkstationDrone]
) -> None:
    pool = fleet.fleet("pool", "add", "passing", "--max-drones", "1").stdout.strip()
    again = fleet.fleet("pool", "add", "passing")
    assert (again.returncode, "E-POOL-NAME" in again.stderr) == (4, True)
    stays = visitor("stays")
    assert stays.run("register", "--url", fleet.url, "--token", pool).returncode == 4
    token = fleet.fleet("token", "create").stdout.strip()
    assert visitor("kind").run("start", "--ephemeral", "--url", fleet.url, "--token", token).returncode == 4
    assert stays.run("register", "--url", fleet.url, "--token", token, "--name", "stays").returncode == 0
    in_use = stays.run("start", "--ephemeral", "--url", fleet.url, "--token", pool)
    assert (in_use.returncode, "E-HOME-IN-USE" in in_use.stderr) == (4, True)
    assert fleet.json("pool", "show", "passing")["drones"] == 0
    fleet.json("pool", "rm", "passing", "--yes")


def test_a_wrong_api_token_is_not_allowed_in(fleet: WholeFleet) -> None:
    stranger = WholeFleet(fleet.root)
    done = _fleet_with(stranger, {"FLEET_API_TOKEN": "fa_wrong", "FLEET_URL": fleet.url}, "orders")

    assert done == 6


def _fleet_with(fleet: WholeFleet, environment: dict[str, str], *arguments: str) -> int:
    return warm_processes.run([*FLEET, *arguments], {**fleet.environment, **environment}).returncode


def test_no_server_at_all_is_no_connection(fleet: WholeFleet) -> None:
    assert _fleet_with(fleet, {"FLEET_URL": "http://127.0.0.1:9"}, "orders") == 5


def test_a_second_fleet_up_in_one_directory_is_a_conflict(fleet: WholeFleet) -> None:
    done = fleet.fleet("up", "--port", "0", "--no-flower")

    assert done.returncode == 4
    assert "another `fleet up`" in done.stderr
