"""A service order on a drone: what a code host has is read in one form, and each comment is written once."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from drone.installation.policy import Policy
from drone.sandbox.network import NetworkAccess
from drone.services.code_host.host_answers import MOST_REVIEW_COMMENTS
from drone.services.pull_request.api import HostRefused
from drone.services.pull_request.http_api import HttpApi
from shared.code_hosts import CodeHostReading, CommentToWrite, SyncCodeHost, marked
from shared.events import ErrorStep, RunEnded
from tests.support.certificates import Authority
from tests.support.git_servers import GitHttpServer, _GitHandler, serving
from tests.support.host_stand_ins import KINDS, HostStandIn, stand_in
from tests.support.host_stand_ins.gitea import GiteaStandIn
from tests.support.host_stand_ins.server import DELETED, LOGIN, LOST, Thread
from tests.support.repositories import calc_project, git, push_commit
from tests.support.runs import Bench

KEY = "ghp_" + "a1B2" * 9
CHANGED = {"calc.py": "def add(a, b):\n    return a + b\n"}
Lines = list[tuple[str, int, str]]


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
    bench.change_project(git_url=host.url("shop/calc.git", login))
    wanted = SyncCodeHost.model_validate({"kind": host.kind, "mention": "@fleet", **asked})
    bench.change(purpose="code_host", code_host=wanted)
    bench.run("http://127.0.0.1:9")
    # As it is reported, within the size of an event.
    ended: RunEnded = bench.last(RunEnded)
    return ended


def read(bench: Bench, host: HostStandIn, **asked: Any) -> CodeHostReading:
    ended = run(bench, host, **{"since": datetime.now(UTC) - timedelta(hours=1), **asked})
    assert ended.status == "success", ended.reason
    return CodeHostReading.model_validate_json(ended.response)


def with_pull(host: HostStandIn, lines: Lines) -> Thread:
    """A pull request on whose lines alice commented."""
    git(host.repository, "branch", "fleet/one", "main")
    push_commit(host.repository, CHANGED, "fleet/one")
    pull = host.open_pull("fleet/one", "main", "Mend the sum", "")
    host.review(pull.place, "alice", lines)
    return pull


def note(place: str = "issues/1", text: str = "**Done**", **fields: Any) -> CommentToWrite:
    return CommentToWrite.model_validate({"id": "0f1e2d3c4b5a", "place": place, "text": text, **fields})


def test_comments_that_mention_the_fleet_are_read_with_what_they_are_about(bench: Bench, host: HostStandIn) -> None:
    host.comment("issues/1", "bob", "me too")
    host.comment("issues/1", "kim", marked("x", "@fleet"))
    edited = host.comment("issues/1", "alice", "@fleet fix it")
    host.edit(edited, "@fleet fix it all")
    host.comment("issues/1", "alice", f"@fleet with {KEY}")
    host.notes.remove(host.comment("issues/1", "alice", "@fleet never mind"))
    pull = with_pull(host, [])
    host.comment(pull.place, "alice", "@fleet here too")
    seen = read(bench, host).comments
    assert sorted((each.text, each.edited, each.place) for each in seen) == [
        ("@fleet fix it all", True, "issues/1"),
        ("@fleet here too", False, pull.place),
        ("@fleet with [redacted]", False, "issues/1"),
    ]
    about = next(each for each in seen if each.place == "issues/1")
    said = (about.author, about.account, about.title, about.about)
    assert said == ("alice", "2", "The sum is wrong", "calc.add subtracts.")
    # Hosts tell whole seconds: a comment of the second in which the last reading began seems older than that.
    (fresh,) = (each for each in seen if each.place == pull.place)
    assert fresh in read(bench, host, since=fresh.at + timedelta(microseconds=999_999)).comments
    assert fresh not in read(bench, host, since=fresh.at + timedelta(seconds=1)).comments
    assert fresh not in read(bench, host, known=(f"comment:{fresh.id}",)).comments


def test_a_pull_request_is_read_with_its_review_checks_conflicts_and_end(bench: Bench, host: HostStandIn) -> None:
    lines = [("calc.py", 2, "Use sum()"), ("calc.py", 1, "Why?")]
    pull = with_pull(host, lines)
    failed = host.fail_check(pull.place, "build", f"{'x' * 20_000}\n{KEY}\nE  assert 1 == 2")
    push_commit(host.repository, {"calc.py": "def add(a, b):\n    return b + a\n"}, "main")
    (seen,) = read(bench, host, pulls=(pull.number,)).pulls
    (review,) = seen.reviews
    assert [(each.path, each.end_line, each.text) for each in review.comments] == lines
    (check,) = seen.checks
    assert (check.name, "E  assert 1 == 2" in check.log, KEY in check.log) == ("build", True, False)
    assert len(check.log) <= 8_100
    assert (seen.state, seen.conflicts, seen.base, seen.head) == ("open", True, "main", host.tip("fleet/one"))
    assert seen.base_commit == host.tip("main")
    # An answer stands in the thread of its comment; the log of a known check is not fetched again.
    thread, known = review.comments[0].thread, (str(failed.id),)
    for text in ("Done.", "Done, indeed."):
        writes = (note(pull.place, text, reply_to=thread),)
        (again,) = read(bench, host, pulls=(pull.number,), known_checks=known, writes=writes).pulls
    assert [(each.id, each.log) for each in again.checks] == [(str(failed.id), "")]
    (answer,) = host.written(pull.place)
    assert (answer.path, answer.line, answer.body[-13:]) == ("calc.py", 2, "Done, indeed.")
    assert [each.text for review in again.reviews for each in review.comments] == ["Use sum()", "Why?"]
    host.merge(pull.place)
    (merged,) = read(bench, host, pulls=(pull.number,)).pulls
    assert merged.state == "merged"


@pytest.mark.parametrize("host", ["gitea"], indirect=True)
def test_git_says_what_conflicts_where_gitea_still_checks_or_has_a_draft(bench: Bench, host: GiteaStandIn) -> None:
    pull = with_pull(host, [])

    def conflicts() -> bool:
        (seen,) = read(bench, host, pulls=(pull.number,)).pulls
        return seen.conflicts

    pull.title = "WIP: Mend the sum"
    assert not conflicts()
    pull.title, host.checks_conflicts = "Mend the sum", True
    assert not conflicts()
    push_commit(host.repository, {"other.py": ""}, "main")
    assert not conflicts()
    push_commit(host.repository, {"calc.py": "def add(a, b):\n    return b + a\n"}, "main")
    assert conflicts()


def test_a_pull_request_that_is_gone_is_closed_where_the_repository_is_not(bench: Bench, host: HostStandIn) -> None:
    pull = with_pull(host, [])
    del host.threads[pull.place]
    reading = read(bench, host, pulls=(pull.number,))
    assert ([each.state for each in reading.pulls], reading.why) == (["closed"], "")
    # What is not visible to the login also looks like this: only a repository whose comments were read has lost it.
    unread = read(bench, host, since=None, pulls=(pull.number,))
    assert (unread.pulls, "(HTTP 404)" in unread.why, unread.comments_read) == ((), True, False)


def test_of_many_comments_on_lines_the_newest_are_read_and_the_fleets_own_do_not_count(
    bench: Bench, host: HostStandIn
) -> None:
    pull = with_pull(host, [("calc.py", 1, f"note {number}") for number in range(MOST_REVIEW_COMMENTS)])
    host.review(pull.place, "kim", [("calc.py", 1, marked("x", "Done."))])
    host.review(pull.place, "alice", [("calc.py", 2, "Use sum()")])
    (seen,) = read(bench, host, pulls=(pull.number,)).pulls
    texts = [each.text for review in seen.reviews for each in review.comments]
    newest = [*(f"note {number}" for number in range(1, MOST_REVIEW_COMMENTS)), "Use sum()"]
    assert texts[-MOST_REVIEW_COMMENTS:] == newest


@pytest.mark.parametrize("host", ["gitea"], indirect=True)
def test_what_one_event_cannot_hold_is_read_later_and_nothing_twice(bench: Bench, host: HostStandIn) -> None:
    for number in range(15):
        host.comment("issues/1", "alice", f"@fleet {number} " + "x" * 9_000)
    many = with_pull(host, [("calc.py", 1, f"{number} " + "x" * 2_000) for number in range(MOST_REVIEW_COMMENTS - 1)])
    few = host.open_pull("fleet/one", "main", "Mend it", "")
    host.review(few.place, "alice", [("calc.py", 1, "Why?")])
    found: list[tuple[str, str]] = []
    left_out, is_more = [], True
    while is_more:
        known = tuple(key for key, _ in found)
        reading = read(bench, host, pulls=(many.number, few.number), known=known)
        lines = [line for pull in reading.pulls for review in pull.reviews for line in review.comments]
        found += [(f"comment:{each.id}", each.text) for each in reading.comments]
        found += [(f"line:{each.id}", each.text) for each in lines]
        left_out.append(reading.left_out)
        is_more = bool(reading.more_comments or reading.left_out or reading.pulls[0].more)
    assert sorted(text for _, text in found) == sorted(note.body for note in host.notes)
    assert (left_out[0], left_out[-1]) == ((few.number,), ())


@pytest.mark.parametrize("host", ["github"], indirect=True)
def test_a_pull_request_that_alone_is_too_large_is_read_with_shorter_logs(bench: Bench, host: HostStandIn) -> None:
    pull = with_pull(host, [("calc.py", 1, "\u2713" * 10_000)])
    for name in ("build", "lint", "unit", "docs"):
        host.fail_check(pull.place, name, f"{name} " + "\u2713" * 8_000)
    (seen,) = read(bench, host, pulls=(pull.number,)).pulls
    assert [each.name for each in seen.checks] == ["build", "lint", "unit", "docs"]
    assert (len(seen.reviews), seen.more) == (1, False)


@pytest.mark.parametrize("host", ["github"], indirect=True)
def test_what_a_deleted_account_wrote_has_no_author(bench: Bench, host: HostStandIn) -> None:
    pull = with_pull(host, [("calc.py", 2, "Use sum()")])
    host.review(pull.place, DELETED, [("calc.py", 1, "Why?")])
    host.comment("issues/1", DELETED, "@fleet fix it")
    reading = read(bench, host, pulls=(pull.number,))
    (seen,) = reading.pulls
    authors = [(each.author, each.account) for review in seen.reviews for each in (review, *review.comments)]
    assert authors == [("alice", "2"), ("alice", "2"), ("", ""), ("", "")]
    assert [(each.author, each.account) for each in reading.comments] == [("", "")]


@pytest.mark.parametrize("host", ["github"], indirect=True)
def test_a_review_that_is_submitted_and_a_push_edit_no_comment(bench: Bench, host: HostStandIn) -> None:
    pull = with_pull(host, [("calc.py", 2, "Use sum()"), ("calc.py", 1, "Why?")])
    first, second = host.notes
    # While a review is pending, only its author sees it.
    second.edited = second.at - timedelta(seconds=30)

    def edited() -> list[bool]:
        (seen,) = read(bench, host, pulls=(pull.number,)).pulls
        return [each.edited for review in seen.reviews for each in review.comments]

    assert edited() == [False, False]
    push_commit(host.repository, {"calc.py": "# none"}, "fleet/one")
    assert edited() == [False, False]
    host.edit(first, "Delete all")
    assert edited() == [True, False]


def test_a_comment_is_written_once_changed_later_and_not_again_where_it_was_deleted(
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
    assert ("(HTTP 404)" in third.error, host.notes) == (True, [])
    # A refusal is told with its status, and the rest goes on.
    host.refusals = [429]
    host.comment("issues/1", "alice", "@fleet fix it")
    reading = read(bench, host, writes=(note(), note(id="aaaaaaaaaaaa")))
    refused, written = reading.written
    assert (refused.comment, "(HTTP 429): refused by the test" in refused.error) == (None, True)
    assert (written.comment is None, len(reading.comments), len(host.written("issues/1"))) == (False, 1, 1)


@pytest.mark.parametrize("host", ["gitea"], indirect=True)
def test_without_a_login_for_a_host_of_its_kind_and_a_policy_the_order_fails(bench: Bench, host: HostStandIn) -> None:
    assert "is for gitea, not for github" in run(bench, host, kind="github").reason
    host.login = ""
    ended = run(bench, host, login="")
    assert (ended.status, bench.last(ErrorStep).code) == ("failed", "E-CODE-HOST-LOGIN")
    assert "no login for 127.0.0.1" in ended.reason
    bench.policy = Policy(pull_requests=False)
    assert "policy" in run(bench, host).reason


def test_a_log_on_another_server_is_read_without_the_login_and_only_its_end(tmp_path: Path) -> None:
    sent: list[str | None] = []
    first, second = GitHttpServer(tmp_path), GitHttpServer(tmp_path)

    class Redirecting(_GitHandler):
        """Redirects to the second server, as GitHub does for logs."""

        def do_GET(self) -> None:
            sent.append(self.headers.get("Authorization"))
            if self.server is first:
                self._answer(302, {"Location": second.url("log")}, b"")
            else:
                self._answer(200, {}, b"x" * 300_000 + b"the end")

    first.RequestHandlerClass = second.RequestHandlerClass = Redirecting
    with serving(first), serving(second):
        found = HttpApi(first.url("api"), {"Authorization": "Bearer key"}).text("log")
    assert (len(found), found[-7:]) == (256 * 1024, "the end")
    assert sent == ["Bearer key", None]


def test_a_redirect_to_a_log_leads_to_an_address_that_was_checked_and_never_into_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str | None] = []
    authority = Authority(tmp_path / "authority")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    first, inside, named = (GitHttpServer(tmp_path) for _ in range(3))
    pair = authority.issue("server", "name.example")
    named.encrypt(pair.certificate, pair.key)
    listed = f"name.example:{named.server_port}"

    places = [inside.url("log"), "https://other.example/log", f"https://{listed}/log"]

    class Redirecting(_GitHandler):
        def do_GET(self) -> None:
            if self.server is first:
                self._answer(302, {"Location": places.pop(0)}, b"")
            else:
                sent.append(self.headers["Host"])
                self._answer(200, {}, b"the end")

    first.RequestHandlerClass = inside.RequestHandlerClass = named.RequestHandlerClass = Redirecting
    with serving(first), serving(inside), serving(named):
        # A spelling of the address that is not recognized as this machine's.
        root = first.url("api").replace("127.0.0.1", "127.1")
        api = HttpApi(root, {}, access=NetworkAccess(hosts=(listed,)), resolve=lambda *_: ["127.0.0.1"])
        for _ in range(2):
            with pytest.raises(HostRefused, match="redirects elsewhere"):
                api.text("log")
        assert (api.text("log"), sent) == ("the end", [listed])


def test_a_host_that_hangs_is_a_refusal_after_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        api = HttpApi(f"http://127.0.0.1:{silent.getsockname()[1]}", {}, seconds=0.3)
        with pytest.raises(HostRefused, match="cannot be reached"):
            api.call("POST", "comments", {"body": "x"})
        with pytest.raises(HostRefused, match="cannot be reached"):
            api.text("log")
