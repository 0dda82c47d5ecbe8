"""A service order on a drone: what a code host has is read in one form, and each comment is written once."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from drone.installation.policy import Policy
from drone.services.pull_request.api import HostRefused
from drone.services.pull_request.http_api import HttpApi
from shared.code_hosts import CodeHostReading, CommentToWrite, SyncCodeHost, marked
from shared.events import ErrorStep, RunEnded
from tests.support.git_servers import serving
from tests.support.host_stand_ins import KINDS, HostStandIn, stand_in
from tests.support.host_stand_ins.server import LOGIN, LOST, Thread
from tests.support.repositories import calc_project, git, push_commit
from tests.support.runs import Bench

KEY = "ghp_" + "a1B2" * 9
CHANGED = {"calc.py": "def add(a, b):\n    return a + b\n"}


@pytest.fixture(params=sorted(KINDS))
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HostStandIn]:
    calc_project(tmp_path / "hosted" / "shop" / "calc.git")
    server = stand_in(request.param, tmp_path / "hosted")
    with serving(server):
        server.open_issue("The sum is wrong", "calc.add subtracts.")
        yield server


@pytest.fixture
def bench(tmp_path: Path, owner_home: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for name in [name for name in os.environ if "TOKEN" in name]:
        monkeypatch.delenv(name)
    return Bench(tmp_path, tmp_path / "none")


def run(bench: Bench, host: HostStandIn, login: str = LOGIN, **asked: Any) -> RunEnded:
    project = bench.order.project.model_copy(update={"git_url": host.url("shop/calc.git", login)})
    wanted = SyncCodeHost.model_validate({"kind": host.kind, "mention": "@fleet", **asked})
    update = {"purpose": "code_host", "code_host": wanted, "project": project}
    bench.order = bench.order.model_copy(update=update)
    return bench.run("http://127.0.0.1:9")


def read(bench: Bench, host: HostStandIn, **asked: Any) -> CodeHostReading:
    ended = run(bench, host, **{"since": datetime.now(UTC) - timedelta(hours=1), **asked})
    assert ended.status == "success", ended.reason
    return CodeHostReading.model_validate_json(ended.response)


def with_pull(host: HostStandIn) -> Thread:
    git(host.repository, "branch", "fleet/one", "main")
    push_commit(host.repository, CHANGED, "fleet/one")
    return host.open_pull("fleet/one", "main", "Mend the sum", "")


def note(place: str = "issues/1", text: str = "**Done**", **fields: Any) -> CommentToWrite:
    return CommentToWrite.model_validate({"id": "0f1e2d3c4b5a", "place": place, "text": text, **fields})


# --- reading ---------------------------------------------------------------------------------


def test_comments_that_mention_the_fleet_are_read_with_what_they_are_about(bench: Bench, host: HostStandIn) -> None:
    host.comment("issues/1", "bob", "me too")
    host.comment("issues/1", "kim", marked("x", "@fleet"))
    edited = host.comment("issues/1", "alice", "@fleet fix it")
    host.edit(edited, "@fleet fix it all")
    host.comment("issues/1", "alice", f"@fleet with {KEY}")
    host.notes.remove(host.comment("issues/1", "alice", "@fleet never mind"))
    with_pull(host)
    host.comment(host.pulls()[0].place, "alice", "@fleet here too")
    seen = read(bench, host).comments
    assert sorted((each.text, each.edited) for each in seen) == [
        ("@fleet fix it all", True),
        ("@fleet here too", False),
        ("@fleet with [redacted]", False),
    ]
    assert {each.place for each in seen} == {"issues/1", host.pulls()[0].place}
    about = next(each for each in seen if each.place == "issues/1")
    assert (about.author, about.account, about.title, about.about) == (
        "alice",
        "2",
        "The sum is wrong",
        "calc.add subtracts.",
    )


def test_a_pull_request_is_read_with_its_review_checks_conflicts_and_end(bench: Bench, host: HostStandIn) -> None:
    pull = with_pull(host)
    host.review(pull.place, "alice", [("calc.py", 2, "Use sum()"), ("calc.py", 1, "Why?")])
    failed = host.fail_check(pull.place, "build", f"{'x' * 20_000}\n{KEY}\nE  assert 1 == 2")
    push_commit(host.repository, {"calc.py": "def add(a, b):\n    return b + a\n"}, "main")
    (seen,) = read(bench, host, pulls=(pull.number,)).pulls
    (review,) = seen.reviews
    assert [(each.path, each.end_line, each.text) for each in review.comments] == [
        ("calc.py", 2, "Use sum()"),
        ("calc.py", 1, "Why?"),
    ]
    (check,) = seen.checks
    assert check.name == "build"
    assert "E  assert 1 == 2" in check.log
    assert KEY not in check.log
    assert len(check.log) <= 8_100
    assert (seen.state, seen.conflicts, seen.base, seen.head) == ("open", True, "main", host.tip("fleet/one"))
    assert seen.base_commit == host.tip("main")
    # The log of a known check is not fetched again.
    (again,) = read(bench, host, pulls=(pull.number,), known_checks=(str(failed.id),)).pulls
    assert [(each.id, each.log) for each in again.checks] == [(str(failed.id), "")]
    host.merge(pull.place)
    (merged,) = read(bench, host, pulls=(pull.number,)).pulls
    assert merged.state == "merged"


def test_a_comment_is_written_once_changed_later_and_not_written_again_where_it_was_deleted(
    bench: Bench, host: HostStandIn
) -> None:
    host.refusals = [LOST]
    (lost,) = read(bench, host, writes=(note(text="**Queued**"),)).written
    assert (lost.comment, "cannot be reached" in lost.error) == (None, True)
    (first,) = read(bench, host, writes=(note(text="**Queued**"),)).written
    (second,) = read(bench, host, writes=(note(text="**Failed**", comment=first.comment),)).written
    assert first.comment == second.comment
    assert [each.body for each in host.written("issues/1")] == [marked("0f1e2d3c4b5a", "**Failed**")]
    host.notes.clear()
    (third,) = read(bench, host, writes=(note(text="x", comment=first.comment),)).written
    assert "(HTTP 404)" in third.error
    assert host.notes == []


@pytest.mark.parametrize("host", ["gitea"], indirect=True)
def test_without_a_login_for_a_host_of_its_kind_and_a_policy_the_order_fails(bench: Bench, host: HostStandIn) -> None:
    assert "is for gitea, not for github" in run(bench, host, kind="github").reason
    host.login = ""
    ended = run(bench, host, login="")
    assert (ended.status, bench.last(ErrorStep).code) == ("failed", "E-CODE-HOST-LOGIN")
    assert "no login for 127.0.0.1" in ended.reason
    bench.policy = Policy(pull_requests=False)
    assert "policy" in run(bench, host).reason


def test_a_comment_of_the_second_in_which_the_last_reading_began_is_read(bench: Bench, host: HostStandIn) -> None:
    host.comment("issues/1", "alice", "@fleet fix it")
    (seen,) = read(bench, host).comments
    # Hosts tell whole seconds: the comment seems older than a reading that began before it.
    assert read(bench, host, since=seen.at + timedelta(microseconds=999_999)).comments == (seen,)
    assert read(bench, host, since=seen.at + timedelta(seconds=1)).comments == ()


# --- writing ---------------------------------------------------------------------------------


def test_an_answer_stands_in_the_thread_of_the_review_comment(bench: Bench, host: HostStandIn) -> None:
    pull = with_pull(host)
    host.review(pull.place, "alice", [("calc.py", 2, "Use sum()")])
    (seen,) = read(bench, host, pulls=(pull.number,)).pulls
    thread = seen.reviews[0].comments[0].thread
    for text in ("Done.", "Done, indeed."):
        reading = read(bench, host, pulls=(pull.number,), writes=(note(pull.place, text, reply_to=thread),))
    (answer,) = host.written(pull.place)
    assert (answer.path, answer.line) == ("calc.py", 2)
    assert answer.body.endswith("Done, indeed.")
    comments = [each.text for review in reading.pulls[0].reviews for each in review.comments]
    assert comments == ["Use sum()"]


def test_a_refusal_is_told_with_its_status_and_the_rest_goes_on(bench: Bench, host: HostStandIn) -> None:
    host.refusals = [429]
    host.comment("issues/1", "alice", "@fleet fix it")
    reading = read(bench, host, writes=(note(), note(id="aaaaaaaaaaaa")))
    refused, written = reading.written
    assert (refused.comment, "(HTTP 429): refused by the test" in refused.error) == (None, True)
    assert written.comment
    assert len(reading.comments) == 1
    assert len(host.written("issues/1")) == 1


# --- logins ----------------------------------------------------------------------------------


class _Log(BaseHTTPRequestHandler):
    """Redirects to another server, as GitHub does for logs, which notes what it is sent."""

    def do_GET(self) -> None:
        sent.append(self.headers.get("Authorization"))
        there = self.server.there  # type: ignore[attr-defined]
        self.send_response(302 if there else 200)
        self.send_header("Location", there)
        self.end_headers()
        self.wfile.write(b"" if there else b"x" * 300_000 + b"the end")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep the test's output clean."""


sent: list[str | None] = []


def test_a_log_on_another_server_is_read_without_the_login_and_only_its_end() -> None:
    sent.clear()
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _Log) for _ in range(2)]
    servers[0].there, servers[1].there = f"http://127.0.0.1:{servers[1].server_port}/log", ""  # type: ignore[attr-defined]
    threads = [threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.05}) for each in servers]
    for thread in threads:
        thread.start()
    api = HttpApi(f"http://127.0.0.1:{servers[0].server_port}", {"Authorization": "Bearer key"})
    found = api.text("log")
    for server in servers:
        server.shutdown()
        server.server_close()
    for thread in threads:
        thread.join()
    assert (len(found), found[-7:]) == (256 * 1024, "the end")
    assert sent == ["Bearer key", None]


def test_a_host_that_hangs_is_a_refusal_after_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        api = HttpApi(f"http://127.0.0.1:{silent.getsockname()[1]}", {}, seconds=0.3)
        with pytest.raises(HostRefused, match="cannot be reached"):
            api.call("POST", "comments", {"body": "x"})
        with pytest.raises(HostRefused, match="cannot be reached"):
            api.text("log")
