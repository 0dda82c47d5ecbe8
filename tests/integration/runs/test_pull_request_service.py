"""A service order on a drone: a pull request, by whatever login the workstation has, and never with another's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from drone.installation.policy import Policy
from shared.events import ErrorStep, PullRequestStep
from shared.outcome import ExitStatus
from shared.work_order import OpenPullRequest
from tests.support.code_hosts import TOKEN, CodeHost, install
from tests.support.git_servers import serving
from tests.support.repositories import bare_remote, push_commit
from tests.support.runs import Bench

HEAD = "fleet/0rder0rder00"
BODY = "The sign was wrong.\n\n## Verification\n\nPassed: `make`.\n\nOrder: 0rder0rder00\n\nFleet-Order: 0rder0rder00\n"
FORM = "# Thanks!\n\n## What does this change?\n<!-- say\n## Summary\n-->\n\n- [ ] I tested it\n- [ ] I wrote docs\n"
GITHUB = {"number": 7, "html_url": "https://github.example/shop/calc/pull/7", "state": "open"}
GITLAB = {"iid": 7, "web_url": "https://gitlab.example/shop/calc/-/merge_requests/7", "state": "opened"}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[CodeHost]:
    bare_remote(tmp_path / "hosted" / "shop" / "calc.git")
    with serving(CodeHost(tmp_path / "hosted")) as server:
        yield server


@pytest.fixture
def bench(tmp_path: Path, host: CodeHost, owner_home: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A run that is to open a pull request on a workstation without any login."""
    [monkeypatch.delenv(name) for name in os.environ if "TOKEN" in name]
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return asking(Bench(tmp_path, tmp_path / "none"), host)


@pytest.fixture
def with_token(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The same on one with a token that may go to the host."""
    monkeypatch.setenv("GITEA_TOKEN", TOKEN)
    bench.policy = allowing(bench)
    return bench


def allowing(bench: Bench, **rules: Any) -> Policy:
    """A policy by which the token may go to the project's host."""
    parts = urlsplit(bench.order.project.git_url)
    return Policy(keys={"GITEA_TOKEN": (f"http://{parts.hostname}:{parts.port}",)}, **rules)


def asking(bench: Bench, host: CodeHost, login: str = "", **changes: Any) -> Bench:
    said = {"head": HEAD, "title": "Mend the sum", "body": BODY, **changes}
    bench.change(purpose="pull_request", pull_request=OpenPullRequest(**said))
    bench.change_project(git_url=host.url("shop/calc.git", login))
    return bench


def opened(bench: Bench) -> PullRequestStep:
    """What the run recorded of a success."""
    end = bench.run("http://127.0.0.1:9")
    assert end.exit_status == ExitStatus.SUBMITTED, end.reason
    step: PullRequestStep = bench.last(PullRequestStep)
    return step


def failed(bench: Bench) -> str:
    """Why the run failed."""
    assert bench.run("http://127.0.0.1:9").status == "failed"
    assert bench.last(ErrorStep).code == "E-PULL-REQUEST"
    step: PullRequestStep = bench.last(PullRequestStep)
    assert step.state == "failed"
    return step.why


# --- with a login of the workstation ------------------------------------------------------------


def test_a_pull_request_is_opened_or_updated_and_a_closed_one_is_left_alone(with_token: Bench, host: CodeHost) -> None:
    old = {"number": 1, "html_url": "https://x/1", "state": "closed", "head": {"ref": HEAD}, "title": "Old"}
    host.pulls.append(old)
    step = opened(with_token)
    assert (step.state, step.via, step.number, step.base) == ("opened", "http", 2, "main")
    assert step.url == host.url("shop/calc/pulls/2")
    found = [(pull["title"], pull.get("body"), pull.get("base")) for pull in host.pulls]
    assert found == [("Old", None, None), ("Mend the sum", BODY, "main")]
    host.pulls[:] = [{**old, "state": "open"}]
    step = opened(with_token)
    assert (step.state, step.number, step.url) == ("updated", 1, "https://x/1")
    assert [pull["title"] for pull in host.pulls] == ["Mend the sum"]


def test_the_one_before_of_the_same_work_is_closed_and_refers_to_the_new_one(with_token: Bench, host: CodeHost) -> None:
    host.pulls.append({"number": 1, "html_url": "https://x/1", "state": "open", "head": {"ref": "fleet/before"}})
    step = opened(asking(with_token, host, replaces=1, draft=True))
    assert (step.number, step.why) == (2, "")
    assert [pull["state"] for pull in host.pulls] == ["closed", "open"]
    assert host.comments == [{"number": 1, "body": f"The work continues in {step.url}."}]
    assert host.pulls[1]["title"] == "WIP: Mend the sum"


def test_without_a_login_it_is_made_ready(bench: Bench, host: CodeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    step = opened(bench)
    assert (step.state, step.base, "no login for 127.0.0.1" in step.why) == ("ready", "main", True)
    assert (step.title, step.body, step.head) == ("Mend the sum", BODY, HEAD)
    monkeypatch.setenv("GITEA_TOKEN", "wrong-token-123456")
    bench.policy = allowing(bench)
    step = opened(bench)
    assert (step.state, step.url, "rejected the login" in step.why) == ("ready", None, True)
    host.asked.clear()
    bench.policy = allowing(bench, pull_requests=False)
    step = opened(bench)
    assert (step.state, "policy" in step.why, host.asked) == ("ready", True, [])
    bench.change_project(git_url=f"file://{host.root}/shop/calc.git")
    bench.policy = Policy()
    assert (opened(bench).state, host.pulls) == ("ready", [])


def test_a_token_is_sent_neither_where_the_policy_does_not_name_the_host_nor_after_a_redirect(
    with_token: Bench, host: CodeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(CodeHost(tmp_path / "elsewhere")) as thief:
        host.redirect = f"http://localhost:{thief.server_port}"
        assert "nothing was sent there" in failed(with_token)
        assert thief.asked == []
    host.redirect = ""
    host.asked.clear()
    with_token.policy = Policy()
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_notforthishost")
    step = opened(with_token)
    place = f"http://127.0.0.1:{host.server_port}"
    assert step.state == "ready"
    assert f'GITEA_TOKEN may not be sent to {place} (next: on the drone, GITEA_TOKEN = ["{place}"]' in step.why
    assert [login for _, _, login in host.asked if login] == []


def test_the_login_in_the_projects_url_is_used_for_that_very_host(bench: Bench, host: CodeHost) -> None:
    host.login, host.expected = "kim:hunter2", "Basic a2ltOmh1bnRlcjI="
    step = opened(asking(bench, host, "kim:hunter2"))
    assert (step.state, step.via) == ("opened", "http")
    assert "hunter2" not in repr(bench.events)


def test_a_host_or_tool_that_refuses_is_a_failure_without_the_token(
    with_token: Bench, host: CodeHost, tmp_path: Path
) -> None:
    host.answers = 422, {"message": f"base branch is protected, {TOKEN}"}
    why = failed(with_token)
    assert why.startswith("127.0.0.1")
    assert "(HTTP 422): base branch is protected, [redacted]" in why
    assert TOKEN not in repr(with_token.events)
    said = '{"message": "Validation Failed", "errors": [{"message": "No commits between main and fleet"}]}'
    refused = (1, said, "gh: Validation Failed (HTTP 422)")
    install(tmp_path / "bin", "gh", ("auth status", {}), ("--method GET", []), ("--method POST", refused))
    with_token.policy = Policy()
    words = "127.0.0.1 rejected the request (HTTP 422): Validation Failed; No commits between main and fleet"
    assert failed(with_token) == words


# --- with the hosts' tools ----------------------------------------------------------------------


def test_nothing_that_people_wrote_is_on_a_tools_command_line(bench: Bench, host: CodeHost, tmp_path: Path) -> None:
    gh = install(tmp_path / "bin", "gh", ("auth status", {}), ("--method GET", []), ("--method POST", GITHUB))
    title = f"--web $(id) `id` \"quoted\" 'so'; rm -rf /\n{'x' * 10_000}"
    step = opened(asking(bench, host, title=title))
    (post,) = gh.asked("--method POST")
    assert post["arguments"] == [
        *("api", "--hostname", "127.0.0.1", "--method", "POST", "--input", "-", "repos/shop/calc/pulls"),
    ]
    assert (step.via, step.number, step.url) == ("gh", 7, GITHUB["html_url"])
    assert json.loads(post["stdin"])["title"] == step.title
    assert ("\n" in step.title, len(step.title) <= 250, step.title[:9]) == (False, True, "--web $(i")


def test_glab_opens_a_merge_request_or_changes_the_open_one_and_gets_no_token_that_may_not_go_there(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [monkeypatch.setenv(name, "secret-value-1") for name in ("GITLAB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN")]
    path, bin_ = "projects/shop%2Fcalc/merge_requests", tmp_path / "bin"
    install(bin_, "gh", ("auth status", (1, "", "not logged in")))
    glab = install(bin_, "glab", ("auth status", {}), ("--method GET", []), ("PUT", GITLAB), ("POST", GITLAB))
    assert (opened(bench).state, bench.last(PullRequestStep).via) == ("opened", "glab")
    glab.answers(("auth status", {}), ("--method GET", [{**GITLAB, "source_branch": HEAD}]), ("PUT", GITLAB))
    step = opened(bench)
    assert (step.state, step.via, step.url) == ("updated", "glab", GITLAB["web_url"])
    assert glab.asked("PUT")[0]["arguments"][-1] == f"{path}/7"
    assert glab.asked("GET")[0]["arguments"][-1] == f"{path}?state=opened&source_branch=fleet%2F0rder0rder00"
    assert [asked["tokens"] for asked in glab.asked()] == [[]] * 6


def test_tea_is_asked_with_the_login_of_the_repositorys_server(bench: Bench, host: CodeHost, tmp_path: Path) -> None:
    logins = [{"name": "other", "url": "https://git.example"}, {"name": "here", "url": host.url("")}]
    tea = install(tmp_path / "bin", "tea", ("logins list", logins), ("-X GET", []), ("-X POST", GITHUB))
    step = opened(bench)
    assert (step.state, step.via) == ("opened", "tea")
    assert tea.asked("-X POST")[0]["arguments"] == [
        *("api", "--login=here", "--include", "-X", "POST", "--data", "@-", "repos/shop/calc/pulls"),
    ]


# --- the repository's form ----------------------------------------------------------------------


def test_the_repositorys_form_is_filled_and_not_replaced(with_token: Bench, host: CodeHost) -> None:
    push_commit(host.root / "shop" / "calc.git", {".gitea/pull_request_template.md": FORM})
    opened(with_token)
    (pull,) = host.pulls
    assert pull["body"] == (
        "# Thanks!\n\n## What does this change?\n\nThe sign was wrong.\n\n<!-- say\n## Summary\n-->\n\n"
        "- [ ] I tested it\n- [ ] I wrote docs\n\n## Verification\n\nPassed: `make`.\n\n"
        "Order: 0rder0rder00\n\nFleet-Order: 0rder0rder00\n"
    )
