"""A project is tried in a fresh workspace without a model; what fails is named, with the command that fixes it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from drone.installation.owner_rules.orders import OrderRules
from drone.installation.policy import Policy
from shared.events import Delivered
from tests.support.checks import project_report, try_project, trying_provider
from tests.support.git_servers import GitHttpServer, serving
from tests.support.runs import Bench, small_repository


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, small_repository(tmp_path / "remote.git"))


def test_a_project_that_works_is_reported_with_each_command(bench: Bench) -> None:
    end = try_project(bench, setup=("touch made",), verify=("test -f made", "grep -q hello README"))
    report = project_report(bench)

    assert (end.status, report.ok, report.code) == ("success", True, "")
    assert report.summary == "The repository can be fetched, and its 3 commands passed."
    assert [(each.phase, each.command, each.passed) for each in report.commands] == [
        ("setup", "touch made", True),
        ("verify", "test -f made", True),
        ("verify", "grep -q hello README", True),
    ]
    assert (report.branch, report.default_branch, report.may_push) == ("main", "main", True)
    assert (report.remote_ms or -1) >= 0


def test_a_project_without_commands_is_only_fetched(bench: Bench) -> None:
    try_project(bench)
    assert project_report(bench).summary == "The repository can be fetched, and it has no commands to run."


def test_nothing_is_delivered_pushed_or_left_in_the_workspace(bench: Bench) -> None:
    before = branches(bench)
    try_project(bench, setup=("echo changed > README",))

    assert [event for event in bench.events if isinstance(event.body, Delivered)] == []
    assert list((bench.workspaces / "sessions").iterdir()) == []
    assert branches(bench) == before


def branches(bench: Bench) -> list[Path]:
    return sorted((bench.directory / "remote.git" / "refs").rglob("*"))


@pytest.mark.parametrize(
    ("commands", "code", "what", "option"),
    [
        ({"setup": ("echo no; exit 3",)}, "E-CHECK-SETUP", "set-up command `echo no; exit 3`", "--setup"),
        ({"verify": ("echo no; exit 3",)}, "E-CHECK-VERIFY", "verification command `echo no; exit 3`", "--verify"),
    ],
)
def test_a_failing_command_is_named_with_its_output(
    bench: Bench, commands: dict[str, tuple[str, ...]], code: str, what: str, option: str
) -> None:
    end = try_project(bench, **commands)
    report = project_report(bench)

    assert (end.status, report.ok, report.code) == ("success", False, code)
    assert report.summary == f"The repository can be fetched, but the {what} failed with exit code 3."
    assert report.next == f"fleet project edit test {option} CMD"
    assert (report.commands[-1].return_code, report.commands[-1].output) == (3, "no\n")


def test_what_follows_a_failed_command_is_not_run(bench: Bench) -> None:
    try_project(bench, setup=("false", "true"), verify=("true",))
    assert [each.command for each in project_report(bench).commands] == ["false"]


def test_a_command_that_does_not_end_is_ended_at_the_time_limit(bench: Bench) -> None:
    limits = bench.order.limits.model_copy(update={"max_run_seconds": 2.0})
    bench.order = bench.order.model_copy(update={"limits": limits})
    try_project(bench, verify=("sleep 60",))
    report = project_report(bench)

    assert (report.ok, report.code, report.commands[0].return_code) == (False, "E-CHECK-VERIFY", None)
    assert "did not end within" in report.summary


def test_a_repository_that_is_not_there_is_left_to_other_drones(bench: Bench) -> None:
    end = try_project(bench, git_url=f"file://{bench.directory}/gone.git")

    assert (end.status, end.unsuitable) == ("failed", True)
    assert "not found" in end.reason
    assert "(next: correct the URL: fleet project edit test --git-url URL)" in end.reason


def test_a_branch_that_does_not_exist_is_a_result(bench: Bench) -> None:
    try_project(bench, branch="man")
    report = project_report(bench)

    assert (report.ok, report.code) == (False, "E-GIT-BRANCH")
    assert report.summary == 'The repository has no branch "man".'
    assert report.next == "fleet project edit test --branch main"


def test_a_remote_that_takes_no_push_is_reported_and_no_failure(bench: Bench) -> None:
    remote = bench.directory / "remote.git"
    subprocess.run(["git", "-C", remote, "config", "http.receivepack", "false"], check=True)
    with serving(GitHttpServer(bench.directory)) as server:
        try_project(bench, git_url=server.url("remote.git"))

    assert (project_report(bench).ok, project_report(bench).may_push) == (True, False)


def test_the_owners_policy_applies_to_a_check_of_a_project_and_not_its_repositories_to_one_of_a_provider(
    bench: Bench,
) -> None:
    bench.policy = Policy(orders=OrderRules(repositories=("https://git.example/*",)))
    bench.order = bench.order.model_copy(update={"purpose": "check_project"})
    with pytest.raises(Exception, match="does not allow this repository"):
        bench.policy.check_order(bench.order)

    trying_provider(bench, "http://127.0.0.1:9/v1")
    bench.policy.check_order(bench.order)
