"""The `drone` command line as its user sees it: real processes, real files, a server at the other end."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from drone.cli.main import app
from drone.installation.home import DroneHome
from shared.envelope import new_private_key
from shared.terminal.command_line import run as run_app
from tests.support import wait_until
from tests.support.command_tree import BIN, Node, clean_environment, commands, imported_by, invoke, walk
from tests.support.registrar import DRONE_ID, Registrar, registrar

Run = Callable[..., "subprocess.CompletedProcess[str]"]
TREE = walk(app)
COMMANDS = commands(app)


@pytest.fixture
def server() -> Iterator[Registrar]:
    with registrar() as running:
        yield running


@pytest.fixture
def drone(tmp_path: Path) -> Run:
    """Runs `drone WORDS…` with a separate drone home, configuration and HOME."""
    owner = {
        "HOME": str(tmp_path / "owner"),
        "DRONE_HOME": str(tmp_path / "home"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    (tmp_path / "owner").mkdir()

    def run(*words: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return invoke("drone", *words, env={**owner, **env}, stdin=stdin)

    return run


@pytest.fixture
def joined(drone: Run, server: Registrar) -> Run:
    """The same, registered as `oka`."""
    done = drone("register", "--url", server.url, "--token", server.token, "--name", "oka", "--sandbox", "none")
    assert done.returncode == 0, done.stderr
    return drone


def problem(status: int, code: str) -> tuple[int, dict[str, str]]:
    """A control plane's answer to a refused request."""
    return status, {
        "title": "no",
        "detail": f"refused with {status}",
        "code": code,
        "why": "because",
        "next": "do this",
    }


# --- the whole tree -------------------------------------------------------------------


@pytest.mark.parametrize("node", TREE, ids=lambda node: node.name)
def test_every_command_explains_itself(node: Node) -> None:
    done = invoke("drone", *node.words, "--help")

    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith(f"Usage: {' '.join(['drone', *node.words])}")
    assert node.command.help.strip().partition("\n")[0] in " ".join(done.stdout.split())


@pytest.mark.parametrize("node", TREE, ids=lambda node: node.name)
def test_an_option_that_does_not_exist_is_wrong_use(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    code = run_app(app, [*node.words, "--no-such-option"])

    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert told.err.startswith("error: ")
    assert "[E-USAGE]" in told.err


def test_every_command_that_answers_can_answer_in_json() -> None:
    silent = {"start", "help", "completion"}

    assert {node.name for node in COMMANDS if "--json" not in node.options} == silent


def test_the_commands_are_those_of_the_contract() -> None:
    contract = {"register", "start", "status", "doctor", "unregister", "install-service", "run"}

    assert contract <= {node.name for node in COMMANDS}


def test_a_word_that_is_nearly_a_command_is_answered_with_it() -> None:
    done = invoke("drone", "docter")

    assert done.returncode == 2
    assert "did you mean doctor?" in done.stderr


def test_help_imports_nothing_heavy() -> None:
    modules = imported_by("drone", "--help")

    assert "shared.terminal.command_line" in modules
    assert {"litellm", "celery", "sqlalchemy", "redis", "httpx", "pydantic", "rich.console", "git"} & modules == set()


def test_colours_come_only_when_they_are_asked_for_in_a_pipe() -> None:
    assert "\x1b[" not in invoke("drone", "docter").stderr
    assert "\x1b[31merror:" in invoke("drone", "docter", env={"FORCE_COLOR": "1"}).stderr
    assert "\x1b[" not in invoke("drone", "docter", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stderr


def test_completion_knows_the_commands() -> None:
    env = {"_DRONE_COMPLETE": "complete_bash", "COMP_WORDS": "drone reg", "COMP_CWORD": "1"}

    assert invoke("drone", env=env).stdout.split() == ["register"]


def test_a_reader_that_leaves_early_is_no_error() -> None:
    pipe = f'"{BIN / "drone"}" completion bash | true'

    done = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, env=clean_environment(), check=False)

    assert done.stderr == ""


# --- register ---------------------------------------------------------------------------


def test_a_drone_registers_and_is_told_what_comes_next(drone: Run, server: Registrar, tmp_path: Path) -> None:
    done = drone(
        *("register", "--url", server.url + "/", "--token", server.token, "--name", "oka"),
        *("--label", "gpu=yes", "--concurrency", "2", "--sandbox", "none"),
    )

    asked = server.requests[0]["body"]
    assert done.returncode == 0
    assert f"registered as oka ({DRONE_ID}) with {server.url}\n" in done.stdout
    assert "drone start" in done.stdout
    assert (asked["name"], asked["labels"], asked["concurrency"]) == ("oka", {"gpu": "yes"}, 2)
    assert asked["secret"] == "s3cret"


def test_what_is_kept_of_a_registration_is_the_servers_answer(joined: Run, server: Registrar, tmp_path: Path) -> None:
    config = json.loads((tmp_path / "home" / "drone.json").read_text())

    assert config["drone_id"] == DRONE_ID
    assert config["labels"] == {"fixed": "yes"}
    assert json.loads((tmp_path / "home" / "credentials.json").read_text())["api_token"] == "fd_token"


def test_no_secret_is_shown_and_none_is_readable_by_others(drone: Run, server: Registrar, tmp_path: Path) -> None:
    done = drone("register", "--url", server.url, "--token", server.token, "--json")

    kept = [tmp_path / "home" / name for name in ("key", "credentials.json")]
    assert [stat.S_IMODE(file.stat().st_mode) for file in kept] == [0o600, 0o600]
    assert "s3cret" not in done.stdout + done.stderr
    assert "fd_token" not in done.stdout + done.stderr


def test_registering_again_uses_the_same_key_and_name(joined: Run, server: Registrar) -> None:
    assert joined("register", "--url", server.url, "--token", server.token).returncode == 0

    first, second = (request["body"] for request in server.requests)
    assert (first["public_key"], first["name"]) == (second["public_key"], second["name"])


def test_the_token_can_come_from_stdin_or_from_the_environment(drone: Run, server: Registrar) -> None:
    url = ("register", "--url", server.url)

    assert drone(*url, "--token", "-", stdin=f"{server.token}\n").returncode == 0
    assert drone(*url, DRONE_TOKEN=server.token).returncode == 0
    assert drone(*url, "--token", "-").returncode == 2
    assert drone(*url).returncode == 2


def test_the_answer_can_be_had_in_json(drone: Run, server: Registrar, tmp_path: Path) -> None:
    done = drone("register", "--url", server.url, "--token", server.token, "--name", "oka", "--json")

    assert json.loads(done.stdout) == {
        "id": DRONE_ID,
        "name": "oka",
        "url": server.url,
        "labels": {"fixed": "yes"},
        "concurrency": 1,
        "sandbox": "auto",
        "workspace": str(tmp_path / "home" / "workspace"),
        "home": str(tmp_path / "home"),
    }


@pytest.mark.parametrize("token", ["", "hello", "fj__b"])
def test_what_is_no_join_token_is_refused_before_anybody_is_asked(drone: Run, server: Registrar, token: str) -> None:
    done = drone("register", "--url", server.url, "--token", token)

    assert done.returncode == 2
    assert server.requests == []


@pytest.mark.parametrize(("status", "code"), [(401, 6), (403, 6), (409, 4), (422, 2), (412, 2), (404, 3), (503, 1)])
def test_a_refusal_of_the_server_comes_through_in_its_own_words(
    drone: Run, server: Registrar, tmp_path: Path, status: int, code: int
) -> None:
    server.problem = problem(status, "E-JOIN")

    done = drone("register", "--url", server.url, "--token", server.token)

    assert done.returncode == code
    assert done.stderr.splitlines()[:3] == [
        f"error: refused with {status}   [E-JOIN]",
        "  why   because",
        "  next  do this",
    ]
    assert not (tmp_path / "home" / "drone.json").exists()


def test_a_server_with_another_key_than_the_tokens_is_not_trusted(
    drone: Run, server: Registrar, tmp_path: Path
) -> None:
    token, server.key = server.token, new_private_key()

    done = drone("register", "--url", server.url, "--token", token)

    assert done.returncode == 6
    assert "[E-FINGERPRINT]" in done.stderr
    assert not (tmp_path / "home" / "credentials.json").exists()


def test_credentials_that_are_bound_to_another_drone_are_not_taken(drone: Run, server: Registrar) -> None:
    server.bound_to = "ffffffffffff"

    done = drone("register", "--url", server.url, "--token", server.token)

    assert done.returncode == 6
    assert "[E-CREDENTIALS]" in done.stderr


def test_without_a_server_it_says_so(drone: Run, server: Registrar) -> None:
    done = drone("register", "--url", "http://127.0.0.1:9", "--token", server.token)

    assert done.returncode == 5
    assert "no control plane answers at http://127.0.0.1:9" in done.stderr


def test_a_server_that_is_no_control_plane_is_recognized(drone: Run, server: Registrar) -> None:
    server.nonsense = True

    done = drone("register", "--url", server.url, "--token", server.token)

    assert done.returncode == 5
    assert "not a control plane" in done.stderr


@pytest.mark.parametrize("url", ["fleet.example.org", "ftp://h", "http://", "http://u:p4ss@h", "http://h:port"])
def test_what_is_no_url_of_a_control_plane_is_refused(drone: Run, server: Registrar, url: str) -> None:
    done = drone("register", "--url", url, "--token", server.token)

    assert done.returncode == 2
    assert "[E-URL]" in done.stderr
    assert "p4ss" not in done.stderr


def test_plain_http_to_another_machine_is_refused(drone: Run, server: Registrar) -> None:
    done = drone("register", "--url", "http://192.0.2.1:8420", "--token", server.token)

    assert done.returncode == 2
    assert "[E-PLAIN-HTTP]" in done.stderr
    assert "--allow-http" in done.stderr


def test_a_workspace_with_files_of_somebody_else_is_refused_before_the_token_is_used(
    drone: Run, server: Registrar, tmp_path: Path
) -> None:
    (tmp_path / "owner" / "thesis.txt").write_text("all of it")

    done = drone("register", "--url", server.url, "--token", server.token, "--workspace", str(tmp_path / "owner"))

    assert done.returncode == 2
    assert "[E-WORKSPACE]" in done.stderr
    assert server.requests == []
    assert (tmp_path / "owner" / "thesis.txt").read_text() == "all of it"


@pytest.mark.parametrize(
    "words",
    [("--label", "gpu"), ("--concurrency", "0"), ("--concurrency", "many"), ("--sandbox", "chroot")],
    ids=" ".join,
)
def test_a_value_without_meaning_is_wrong_use(drone: Run, server: Registrar, words: tuple[str, str]) -> None:
    assert drone("register", "--url", server.url, "--token", server.token, *words).returncode == 2
    assert server.requests == []


# --- the other commands -----------------------------------------------------------------


@pytest.mark.parametrize("command", ["start", "status", "unregister", "install-service"])
def test_a_drone_that_is_not_registered_is_told_how_to(drone: Run, command: str) -> None:
    done = drone(command)

    assert done.returncode == 2
    assert "[E-NOT-REGISTERED]" in done.stderr
    assert "drone register" in done.stderr


def test_status_says_who_the_drone_is_and_how_it_does(joined: Run, server: Registrar, tmp_path: Path) -> None:
    found = json.loads(joined("status", "--json").stdout)

    assert (found["name"], found["url"], found["home"]) == ("oka", server.url, str(tmp_path / "home"))
    assert (found["running"], found["pid"], found["runs"]) == (False, None, [])
    assert (found["server_reachable"], found["server_error"]) == (True, None)


def test_status_says_why_the_server_cannot_be_reached(joined: Run, server: Registrar) -> None:
    server.nonsense = True

    told = joined("status").stdout

    assert "unreachable" in told
    assert "not a control plane" in told


def test_a_check_fails_unless_the_drone_runs_and_is_registered(joined: Run, server: Registrar, tmp_path: Path) -> None:
    assert (joined("status").returncode, joined("status", "--check").returncode) == (0, 1)
    with DroneHome(tmp_path / "home").lock():
        assert joined("status", "--check").returncode == 0
        server.nonsense = True
        assert joined("status", "--check").returncode == 0
        server.nonsense, server.problem = False, problem(401, "E-DRONE-REMOVED")
        assert joined("status", "--check").returncode == 1


def test_a_damaged_home_is_told_and_not_guessed_at(joined: Run, tmp_path: Path) -> None:
    (tmp_path / "home" / "drone.json").write_text("{")

    done = joined("status")

    assert done.returncode == 2
    assert "[E-HOME-DAMAGED]" in done.stderr


def test_leaving_tells_the_server_and_forgets_the_keys(joined: Run, server: Registrar, tmp_path: Path) -> None:
    done = joined("unregister", "--yes")

    assert done.returncode == 0
    last = server.requests[-1]
    assert (last["method"], last["path"]) == ("DELETE", "/api/v1/registrations/self")
    assert last["authorization"] == "Bearer fd_token"
    assert sorted(p.name for p in (tmp_path / "home").iterdir() if p.name in {"key", "drone.json"}) == []


def test_a_drone_that_runs_does_not_leave(joined: Run, tmp_path: Path) -> None:
    with DroneHome(tmp_path / "home").lock():
        done = joined("unregister", "--yes")

    assert done.returncode == 4
    assert "stop it" in done.stderr
    assert (tmp_path / "home" / "key").exists()


def test_a_second_start_in_one_home_is_refused(joined: Run, tmp_path: Path) -> None:
    with DroneHome(tmp_path / "home").lock():
        done = joined("start")

    assert done.returncode == 4
    assert f"process {os.getpid()} holds its lock" in done.stderr


def test_leaving_without_a_yes_does_nothing(joined: Run, tmp_path: Path) -> None:
    done = joined("unregister")

    assert done.returncode == 2
    assert "add --yes" in done.stderr
    assert (tmp_path / "home" / "drone.json").exists()


def test_leaving_without_an_answer_keeps_the_registration(joined: Run, server: Registrar, tmp_path: Path) -> None:
    server.nonsense = True

    assert joined("unregister", "--yes").returncode == 5
    assert (tmp_path / "home" / "key").exists()


def test_a_service_unit_is_written_or_printed(joined: Run, tmp_path: Path) -> None:
    found = json.loads(joined("install-service", "--json").stdout)

    assert f'Environment="DRONE_HOME={tmp_path / "home"}"' in found["unit"].splitlines()
    assert " -m drone.cli.main start" in found["unit"]
    assert "systemctl --user enable --now dronefleet-drone" in found["next"]


def test_somebody_elses_unit_is_not_overwritten(joined: Run, tmp_path: Path) -> None:
    systemctl = tmp_path / "bin" / "systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text("#!/bin/sh\n")
    systemctl.chmod(0o755)
    unit = tmp_path / "config" / "systemd" / "user" / "dronefleet-drone.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\n")

    done = joined("install-service", PATH=f"{systemctl.parent}:{os.environ['PATH']}")

    assert done.returncode == 4
    assert unit.read_text() == "[Service]\n"


# --- doctor -----------------------------------------------------------------------------


def states(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The state of each check in a `doctor --json`."""
    return {check["code"]: check["state"] for check in json.loads(done.stdout)["checks"]}


def test_the_doctor_of_a_drone_that_is_not_registered_fails_with_the_fix(drone: Run) -> None:
    done = drone("doctor", "--json")

    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert document["ok"] is False
    assert states(done)["D-REGISTERED"] == "FAIL"
    assert states(done)["D-GIT"] == "OK"
    assert {"drone register" in c["fix"] for c in document["checks"] if c["code"] == "D-REGISTERED"} == {True}


def test_the_doctor_looks_at_everything_a_registered_drone_needs(joined: Run) -> None:
    found = states(joined("doctor", "--json"))

    assert set(found) == {
        *("D-PYTHON", "D-GIT", "D-LITELLM", "D-POLICY", "D-DISK", "D-REGISTERED", "D-SANDBOX", "D-LIMITS", "D-NETWORK"),
        *("D-FILES", "D-WORKSPACE", "D-SERVER", "D-CLOCK", "D-BROKER"),
    }
    assert found["D-SERVER"] == "OK"
    assert found["D-CLOCK"] == "OK"
    assert found["D-SANDBOX"] == "WARN"
    assert found["D-BROKER"] == "FAIL"  # nothing listens there


def test_the_doctor_never_shows_a_secret(joined: Run) -> None:
    told = joined("doctor").stdout

    assert "127.0.0.1:1" in told
    assert "pw@" not in told
    assert "fd_token" not in told


def test_the_doctor_mends_what_can_lose_nothing(joined: Run, tmp_path: Path) -> None:
    (tmp_path / "home" / "key").chmod(0o644)
    before = states(joined("doctor", "--json"))

    after = states(joined("doctor", "--fix", "--json"))

    assert (before["D-FILES"], after["D-FILES"]) == ("FAIL", "OK")
    assert stat.S_IMODE((tmp_path / "home" / "key").stat().st_mode) == 0o600


def test_the_doctor_compares_the_clocks(joined: Run, server: Registrar) -> None:
    server.clock_ahead = timedelta(seconds=300)

    assert states(joined("doctor", "--json"))["D-CLOCK"] == "FAIL"


def test_the_doctor_says_why_the_server_cannot_be_reached(joined: Run, server: Registrar) -> None:
    server.problem = problem(503, "E-DB")

    found = states(joined("doctor", "--json"))

    assert found["D-SERVER"] == "FAIL"
    assert "D-CLOCK" not in found


def test_the_doctor_reads_the_owners_policy(joined: Run, tmp_path: Path) -> None:
    policy = tmp_path / "config" / "dronefleet" / "policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text("[repositories]\nextensions = maybe\n")

    assert states(joined("doctor", "--json"))["D-POLICY"] == "FAIL"


def test_the_policy_is_shown_with_the_line_that_sets_each_rule(joined: Run, tmp_path: Path) -> None:
    policy = tmp_path / "config" / "dronefleet" / "policy.toml"
    before = json.loads(joined("policy", "--json").stdout)
    policy.parent.mkdir(parents=True)
    policy.write_text('[keys]\nKEY = ["api.example"]\n\n[when]\nhours = ["Sat,Sun"]\n')

    shown = json.loads(joined("policy", "--json").stdout)
    text = joined("policy").stdout

    assert (before["exists"], {each["line"] for each in before["settings"]}) == (False, {None})
    found = {each["name"]: (each["value"], each["line"]) for each in shown["settings"]}
    assert shown["file"] == str(policy)
    assert (found["when.hours"], found["keys.KEY"]) == ((["Sat,Sun"], 5), (["api.example"], 2))
    assert found["when.on_mains"] == (False, None)
    assert f"Sat,Sun  ({policy}, line 5)" in text
    assert "no restriction  (default)" in text


def test_a_policy_that_cannot_be_read_keeps_a_drone_from_starting(joined: Run, tmp_path: Path) -> None:
    policy = tmp_path / "config" / "dronefleet" / "policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text("version = 7\n")

    for command in ("start", "policy"):
        refused = joined(command)
        assert refused.returncode == 2
        assert f"the policy file {policy}, line 1, cannot be loaded" in refused.stderr
        assert "version 7 is not supported" in refused.stderr


def test_ctrl_c_ends_any_command_without_a_traceback(server: Registrar, tmp_path: Path) -> None:
    server.answers.clear()
    waiting = subprocess.Popen(
        [str(BIN / "drone"), "register", "--url", server.url, "--token", server.token],
        stderr=subprocess.PIPE,
        text=True,
        env={**clean_environment(), "DRONE_HOME": str(tmp_path / "home")},
    )
    wait_until(lambda: server.requests)
    waiting.send_signal(signal.SIGINT)

    _, told = waiting.communicate(timeout=60)
    server.answers.set()
    assert waiting.returncode == 130
    assert told.strip() == "interrupted"
