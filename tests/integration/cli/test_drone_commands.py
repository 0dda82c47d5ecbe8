"""The commands of `drone`, in this process: what they send, print and keep; a small server is the control plane."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from drone.cli.main import app
from drone.installation.home import DroneHome
from shared.envelope import new_private_key
from tests.support import needs
from tests.support.command_lines import CommandLine, Done
from tests.support.disks import Disk
from tests.support.local_runs import make_repository
from tests.support.registrar import DRONE_ID, Registrar, registrar


class Owner:
    """The owner of a drone, with separate directories."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory, self.runs = directory, CommandLine(app, capsys, monkeypatch)
        self.home, self.policy = directory / "home", directory / "config" / "dronefleet" / "policy.toml"
        (directory / "owner").mkdir()
        for name in [each for each in os.environ if each.startswith(("DRONE_", "FLEET_"))]:
            monkeypatch.delenv(name)
        for name, place in {"HOME": "owner", "DRONE_HOME": "home", "XDG_CONFIG_HOME": "config"}.items():
            monkeypatch.setenv(name, str(directory / place))

    def registers(self, server: Registrar, *words: str) -> Done:
        return self.runs("register", "--url", server.url, "--token", server.token, *words)

    def checks(self, *words: str) -> dict[str, str]:
        """The state of each check of `drone doctor`."""
        return {check["code"]: check["state"] for check in self.runs("doctor", "--json", *words).document["checks"]}

    def writes_policy(self, text: str) -> None:
        self.policy.parent.mkdir(parents=True)
        self.policy.write_text(text)


@pytest.fixture
def server() -> Iterator[Registrar]:
    with registrar() as running:
        yield running


@pytest.fixture
def owner(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Owner:
    return Owner(tmp_path, capsys, monkeypatch)


@pytest.fixture
def joined(owner: Owner, server: Registrar) -> Owner:
    """The owner of the registered drone `oka`."""
    done = owner.registers(server, "--name", "oka", "--sandbox", "none")
    assert done.returncode == 0, done.stderr
    return owner


def problem(status: int, code: str) -> tuple[int, dict[str, str]]:
    """A control plane's answer to a refused request."""
    return status, {"title": "no", "detail": f"refused: {status}", "code": code, "why": "because", "next": "do this"}


# --- register ---------------------------------------------------------------------------


def test_a_registration_is_printed_and_kept_as_the_server_answered_without_its_secrets(
    owner: Owner, server: Registrar
) -> None:
    done = owner.registers(server, "--name", "oka", "--label", "gpu=yes", "--concurrency", "2", "--json")

    asked = server.requests[0]["body"]
    kept = {name: json.loads((owner.home / f"{name}.json").read_text()) for name in ("drone", "credentials")}
    sent = {"name": "oka", "labels": {"gpu": "yes"}, "concurrency": 2, "secret": "s3cret"}
    assert {name: asked[name] for name in sent} == sent
    assert done.document == {
        **{"id": DRONE_ID, "name": "oka", "url": server.url, "labels": {"gpu": "yes", "fixed": "yes"}},
        **{"concurrency": 2, "sandbox": "auto", "workspace": f"{owner.home}/workspace", "home": str(owner.home)},
    }
    assert (kept["drone"]["labels"], kept["credentials"]["api_token"]) == (done.document["labels"], "fd_token")
    assert [secret for secret in ("s3cret", "fd_token") if secret in done.stdout + done.stderr] == []
    assert [stat.S_IMODE((owner.home / each).stat().st_mode) for each in ("key", "credentials.json")] == [0o600] * 2

    assert owner.registers(server).returncode == 0
    again = server.requests[1]["body"]
    assert (again["public_key"], again["name"]) == (asked["public_key"], "oka")


def test_the_token_can_come_from_stdin_or_from_the_environment(
    owner: Owner, server: Registrar, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = ("register", "--url", server.url)
    assert owner.runs(*url, "--token", "-", stdin=f"{server.token}\n").returncode == 0
    assert owner.runs(*url, "--token", "-").returncode == 2
    assert owner.runs(*url).returncode == 2
    monkeypatch.setenv("DRONE_TOKEN", server.token)
    assert owner.runs(*url).returncode == 0


def test_what_cannot_be_meant_is_refused_before_anybody_is_asked(owner: Owner, server: Registrar) -> None:
    (owner.directory / "owner" / "thesis.txt").write_text("all of it")
    joins = ("--url", server.url, "--token", server.token)
    refused = {
        "E-WORKSPACE": [(*joins, "--workspace", str(owner.directory / "owner"))],
        "E-PLAIN-HTTP": [("--url", "http://192.0.2.1:8420", "--token", server.token)],
        "E-URL": [
            ("--url", url, "--token", server.token)
            for url in ("fleet.example.org", "ftp://h", "http://", "http://u:p4ss@h", "http://h:port")
        ],
        "": [
            *(("--url", server.url, "--token", token) for token in ("", "hello", "fj__b")),
            *((*joins, "--concurrency", number) for number in ("0", "many")),
            *((*joins, "--label", "gpu"), (*joins, "--sandbox", "chroot")),
        ],
    }
    for code, all_words in refused.items():
        for words in all_words:
            done = owner.runs("register", *words)
            assert (done.returncode, code in done.stderr, "p4ss" in done.stderr) == (2, True, False), words
    assert server.requests == []
    assert (owner.directory / "owner" / "thesis.txt").read_text() == "all of it"


def test_a_refusal_of_the_server_comes_through_in_its_own_words_and_leaves_no_registration(
    owner: Owner, server: Registrar
) -> None:
    for status, code in {401: 6, 403: 6, 409: 4, 422: 2, 412: 2, 404: 3, 503: 1}.items():
        server.problem = problem(status, "E-JOIN")
        done = owner.registers(server)
        told = [f"error: refused: {status}   [E-JOIN]", "  why   because", "  next  do this"]
        assert (done.returncode, done.stderr.splitlines()[:3]) == (code, told)
    assert not (owner.home / "drone.json").exists()


def test_a_server_with_another_key_than_the_tokens_is_not_trusted(owner: Owner, server: Registrar) -> None:
    token, server.key = server.token, new_private_key()
    done = owner.runs("register", "--url", server.url, "--token", token)
    assert (done.returncode, "[E-FINGERPRINT]" in done.stderr) == (6, True)
    assert not (owner.home / "credentials.json").exists()


def test_credentials_that_are_bound_to_another_drone_are_not_taken(owner: Owner, server: Registrar) -> None:
    server.bound_to = "ffffffffffff"
    done = owner.registers(server)
    assert (done.returncode, "[E-CREDENTIALS]" in done.stderr) == (6, True)
    assert not (owner.home / "credentials.json").exists()


def test_what_is_no_control_plane_is_told_apart_from_nothing_at_all(owner: Owner, server: Registrar) -> None:
    server.nonsense = True
    other = owner.registers(server)
    nothing = owner.runs("register", "--url", "http://127.0.0.1:9", "--token", server.token)
    assert (other.returncode, "not a control plane" in other.stderr) == (5, True)
    assert (nothing.returncode, "no control plane answers at http://127.0.0.1:9" in nothing.stderr) == (5, True)


# --- the other commands -----------------------------------------------------------------


def test_a_drone_that_is_not_registered_is_told_how_to(owner: Owner) -> None:
    for command in ("start", "status", "unregister", "install-service"):
        done = owner.runs(command)
        assert (done.returncode, "[E-NOT-REGISTERED]" in done.stderr) == (2, True), command
        assert "drone register" in done.stderr

    doctor = owner.runs("doctor", "--json")
    assert (doctor.returncode, doctor.document["ok"]) == (1, False)
    [fix] = [check["fix"] for check in doctor.document["checks"] if check["state"] == "FAIL"]
    assert "drone register" in fix


def test_status_says_who_the_drone_is_and_whether_its_server_answers(joined: Owner, server: Registrar) -> None:
    found = joined.runs("status", "--json").document
    assert (found["name"], found["url"], found["home"]) == ("oka", server.url, str(joined.home))
    assert (found["running"], found["pid"], found["runs"]) == (False, None, [])
    assert (found["server_reachable"], found["server_error"]) == (True, None)

    server.nonsense = True
    told = joined.runs("status").stdout
    assert ("unreachable" in told, "not a control plane" in told) == (True, True)

    (joined.home / "drone.json").write_text("{")
    damaged = joined.runs("status")
    assert (damaged.returncode, "[E-HOME-DAMAGED]" in damaged.stderr) == (2, True)


def test_a_check_fails_unless_the_drone_runs_and_is_registered(joined: Owner, server: Registrar) -> None:
    assert (joined.runs("status").returncode, joined.runs("status", "--check").returncode) == (0, 1)
    with DroneHome(joined.home).lock():
        assert joined.runs("status", "--check").returncode == 0
        server.nonsense = True
        assert joined.runs("status", "--check").returncode == 0
        server.nonsense, server.problem = False, problem(401, "E-DRONE-REMOVED")
        assert joined.runs("status", "--check").returncode == 1


def test_a_drone_leaves_with_a_yes_when_it_does_not_run_and_its_server_answers_and_then_forgets_its_keys(
    joined: Owner, server: Registrar
) -> None:
    def kept() -> list[str]:
        return [name for name in ("key", "drone.json") if (joined.home / name).exists()]

    with DroneHome(joined.home).lock():
        running = joined.runs("unregister", "--yes")
    unasked = joined.runs("unregister")
    server.nonsense = True
    unanswered = joined.runs("unregister", "--yes")
    assert [done.returncode for done in (running, unasked, unanswered)] == [4, 2, 5]
    assert ("[E-DRONE-RUNNING]" in running.stderr, "add --yes" in unasked.stderr) == (True, True)
    assert kept() == ["key", "drone.json"]

    server.nonsense = False
    assert joined.runs("unregister", "--yes").returncode == 0
    last = server.requests[-1]
    assert (last["method"], last["path"]) == ("DELETE", "/api/v1/registrations/self")
    assert (last["authorization"], kept()) == ("Bearer fd_token", [])


def test_a_drone_that_runs_is_not_registered_again_as_it_would_continue_with_revoked_keys(
    joined: Owner, server: Registrar
) -> None:
    before = len(server.requests)
    with DroneHome(joined.home).lock():
        running = joined.registers(server)
    assert (running.returncode, "[E-DRONE-RUNNING]" in running.stderr) == (4, True)
    assert len(server.requests) == before, "the token was not used"
    assert joined.registers(server).returncode == 0


def test_a_service_unit_starts_this_drone_and_takes_the_place_of_no_other(
    joined: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = joined.runs("install-service", "--json").document
    assert f'Environment="DRONE_HOME={joined.home}"' in shown["unit"].splitlines()
    assert " -m drone.cli.main start" in shown["unit"]
    assert "systemctl --user enable --now dronefleet-drone" in shown["next"]

    systemctl = joined.directory / "bin" / "systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text("#!/bin/sh\n")
    systemctl.chmod(0o755)
    unit = joined.directory / "config" / "systemd" / "user" / "dronefleet-drone.service"
    unit.parent.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{os.environ['PATH']}")
    for _ in range(2):
        assert joined.runs("install-service").returncode == 0
    of_another_drone = unit.read_text().replace(str(joined.home), "/other/home")
    for taken in ("[Service]\n", of_another_drone):
        unit.write_text(taken)
        refused = joined.runs("install-service")
        assert (refused.returncode, "[E-SERVICE]" in refused.stderr, unit.read_text()) == (4, True, taken)
    assert "/other/home" in refused.stderr


def test_the_policy_is_shown_with_the_line_that_sets_each_rule(joined: Owner) -> None:
    before = joined.runs("policy", "--json").document
    joined.writes_policy('[keys]\nKEY = ["api.example"]\n\n[when]\nhours = ["Sat,Sun"]\n')
    shown, text = joined.runs("policy", "--json").document, joined.runs("policy").stdout

    assert (before["exists"], {each["line"] for each in before["settings"]}) == (False, {None})
    found = {each["name"]: (each["value"], each["line"]) for each in shown["settings"]}
    assert shown["file"] == str(joined.policy)
    assert (found["when.hours"], found["keys.KEY"]) == ((["Sat,Sun"], 5), (["api.example"], 2))
    assert found["when.on_mains"] == (False, None)
    assert f"Sat,Sun  ({joined.policy}, line 5)" in text
    assert "no restriction  (default)" in text


def test_a_policy_that_cannot_be_read_keeps_a_drone_from_starting(joined: Owner) -> None:
    joined.writes_policy("version = 7\n")
    for command in ("start", "policy"):
        refused = joined.runs(command)
        assert refused.returncode == 2
        assert f"{joined.policy}, line 1" in refused.stderr
    assert joined.checks()["D-POLICY"] == "FAIL"


# --- doctor -----------------------------------------------------------------------------


def test_the_doctor_fails_a_sandbox_that_the_policy_does_not_allow_and_says_how_to_get_one_that_it_does(
    joined: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finding() -> tuple[str, bool, bool]:
        checks = joined.runs("doctor", "--json").document["checks"]
        (check,) = (each for each in checks if each["code"] == "D-SANDBOX")
        return check["state"], "drone register --sandbox bwrap " in check["fix"], "no namespaces" in check["fix"]

    needs("bwrap")
    joined.writes_policy('[sandbox]\nallow = ["bwrap"]\n')
    assert finding() == ("FAIL", True, False)
    broken = joined.directory / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no namespaces >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
    assert finding() == ("FAIL", False, True)


def test_the_doctor_looks_at_everything_a_registered_drone_needs_and_shows_no_secret(
    joined: Owner, server: Registrar
) -> None:
    found, told = joined.checks(), joined.runs("doctor").stdout

    assert set(found) == {
        *("D-PYTHON", "D-GIT", "D-LITELLM", "D-POLICY", "D-DISK", "D-REGISTERED", "D-SANDBOX", "D-LIMITS", "D-NETWORK"),
        *("D-FILES", "D-WORKSPACE", "D-SERVER", "D-CLOCK", "D-BROKER"),
    }
    # Nothing listens at the broker's address.
    expected = {"D-SERVER": "OK", "D-CLOCK": "OK", "D-SANDBOX": "WARN", "D-BROKER": "FAIL"}
    assert {name: found[name] for name in expected} == expected
    assert "127.0.0.1:1" in told
    assert [secret for secret in ("pw@", "fd_token") if secret in told] == []

    server.clock_ahead = timedelta(seconds=300)
    assert joined.checks()["D-CLOCK"] == "FAIL"
    server.problem = problem(503, "E-DB")
    refused = joined.checks()
    assert (refused["D-SERVER"], "D-CLOCK" in refused) == ("FAIL", False)


def test_the_doctor_looks_at_the_disk_of_the_workspace_too(owner: Owner, server: Registrar, small_disk: Disk) -> None:
    workspace = small_disk.path / "workspace"
    owner.registers(server, "--sandbox", "none", "--workspace", str(workspace))
    checks = owner.runs("doctor", "--json").document["checks"]
    assert [(each["state"], str(workspace) in each["found"]) for each in checks if each["code"] == "D-DISK"] == [
        ("FAIL", True)
    ]


def test_the_doctor_mends_what_can_lose_nothing(joined: Owner) -> None:
    (joined.home / "key").chmod(0o644)
    before, after = (joined.checks(*fix)["D-FILES"] for fix in ((), ("--fix",)))

    assert (before, after) == ("FAIL", "OK")
    assert stat.S_IMODE((joined.home / "key").stat().st_mode) == 0o600


# --- what cannot begin ------------------------------------------------------------------


def test_a_local_run_that_cannot_begin_is_refused(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drone.processes.reaping.become_reaper", lambda: None)
    monkeypatch.chdir(make_repository(owner.directory / "my project"))
    here = ("Do it", "--repo", ".", "--model", "m")
    refused = {
        (): 2,
        ("Do it", "--repo", "."): 2,
        ("Do it", "--model", "m"): 2,
        (" ", "--repo", ".", "--model", "m"): 2,
        ("-", "--repo", ".", "--model", "m"): 2,
        ("Fix the caf\udce9", "--repo", ".", "--model", "m"): 2,
        ("Do it", "--repo", ".", "--model", " "): 2,
        ("Do it", "--repo", "nowhere", "--model", "m"): 3,
        ("Do it", "--repo", "..", "--model", "m"): 3,
        ("Do it", "--repo", "ext::sh -c date", "--model", "m"): 6,
        (*here, "--mode", "play"): 2,
        (*here, "--thinking", "max"): 2,
        (*here, "--max-iterations", "-1"): 2,
        (*here, "--api-key-env", "NO_SUCH_KEY"): 2,
        (*here, "--sandbox", "docker"): 2,
    }
    done = {words: owner.runs("run", *words, stdin=b"Fix the caf\xe9") for words in refused}
    assert {words: each.returncode for words, each in done.items()} == refused
    assert [each for each in done.values() if each.stdout or not each.stderr.startswith("error: ")] == []
