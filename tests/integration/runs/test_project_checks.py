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


def test_a_project_that_works_is_reported_with_each_command_and_nothing_is_delivered(bench: Bench) -> None:
    refs = bench.directory / "remote.git" / "refs"
    before = sorted(refs.rglob("*"))
    end = try_project(bench, setup=("echo changed > README; touch made",), verify=("test -f made", "grep -q ch README"))
    report = project_report(bench)

    assert (end.status, report.ok, report.code) == ("success", True, "")
    assert [(each.phase, each.command, each.passed) for each in report.commands] == [
        ("setup", "echo changed > README; touch made", True),
        ("verify", "test -f made", True),
        ("verify", "grep -q ch README", True),
    ]
    assert (report.branch, report.default_branch, report.may_push) == ("main", "main", True)
    assert (report.remote_ms or -1) >= 0
    assert [event for event in bench.events if isinstance(event.body, Delivered)] == []
    assert list((bench.workspaces / "sessions").iterdir()) == []
    assert sorted(refs.rglob("*")) == before


def test_a_failing_command_is_named_with_its_output_and_what_follows_it_is_not_run(bench: Bench) -> None:
    for phase in ("setup", "verify"):
        end = try_project(bench, **{"setup": (), "verify": ("true",), phase: ("echo no; exit 3", "true")})
        report = project_report(bench)

        assert (end.status, report.ok, report.code) == ("success", False, f"E-CHECK-{phase.upper()}")
        assert "`echo no; exit 3` failed with exit code 3" in report.summary
        assert report.next == f"fleet project edit test --{phase} CMD"
        (command,) = report.commands
        assert (command.return_code, command.output) == (3, "no\n")


def test_a_repository_that_is_not_there_is_left_to_other_drones_and_a_missing_branch_is_a_result(bench: Bench) -> None:
    url = bench.order.project.git_url
    end = try_project(bench, git_url=f"file://{bench.directory}/gone.git")
    assert (end.status, end.unsuitable) == ("failed", True)
    assert "fleet project edit test --git-url URL" in end.reason

    try_project(bench, git_url=url, branch="man")
    report = project_report(bench)
    assert (report.ok, report.code) == (False, "E-GIT-BRANCH")
    assert report.next == "fleet project edit test --branch main"


def test_a_command_that_does_not_end_is_ended_at_the_time_limit(bench: Bench) -> None:
    limits = bench.order.limits.model_copy(update={"max_run_seconds": 2.0})
    bench.order = bench.order.model_copy(update={"limits": limits})
    try_project(bench, verify=("sleep 60",))
    report = project_report(bench)

    assert (report.ok, report.code, report.commands[0].return_code) == (False, "E-CHECK-VERIFY", None)
    assert "did not end within" in report.summary


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
