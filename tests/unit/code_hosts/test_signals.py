"""Webhooks in one form: which ones are a reason to read the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.automation.code_host_events import read_event
from control_plane.operations.code_hosts.arriving import HostSignal, signal_of
from control_plane.operations.code_hosts.texts import request_in
from shared.code_hosts import is_ours, marked
from tests.support.host_stand_ins import KINDS, stand_in
from tests.support.host_stand_ins.server import Check, HostStandIn

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
KEYS = st.sampled_from(["repository", "project", "comment", "object_attributes", "review", "action"])


def signal(host: HostStandIn, what: str, about: Any) -> HostSignal:
    delivery = host.delivery(what, about)
    headers = {name.lower(): value for name, value in delivery.headers.items()}
    event = read_event(host.kind, headers, delivery.body)
    return signal_of(host.kind, event.name, event.payload, "@fleet")


@pytest.fixture(params=sorted(KINDS))
def host(request: pytest.FixtureRequest, tmp_path: Path) -> HostStandIn:
    made = stand_in(request.param, tmp_path)
    made.server_close()
    made.open_issue("Wrong", "It is.")
    return made


def test_a_mention_and_failed_checks_are_a_reason_to_read_the_host_and_other_comments_are_none(
    host: HostStandIn,
) -> None:
    found = signal(host, "comment", host.comment("issues/1", "alice", "@fleet fix it"))
    assert found == HostSignal("comment", "shop/calc", "")
    for body in ("nice", marked("x", "@fleet")):
        assert signal(host, "comment", host.comment("issues/1", "kim", body)).why_ignored
    payload = {"comment": {"body": "@fleet"}, "repository": {"full_name": "shop/calc"}}
    for event in ("issue_comment.edited", "issue_comment.deleted", "ping", "star.created", ""):
        assert signal_of("github", event, payload, "@fleet").why_ignored
    # A review is one although it does not mention the fleet.
    review = {"review": {"body": ""}, "repository": {"full_name": "shop/calc"}}
    assert signal_of("github", "pull_request_review.submitted", review, "@fleet").why_ignored == ""
    assert signal_of("gitea", "pull_request_comment.reviewed", review, "@fleet") == HostSignal("review", "shop/calc")
    note = {"object_attributes": {"note": "Use sum()", "type": "DiffNote"}}
    assert signal_of("gitlab", "note.create", note, "@fleet") == HostSignal("review", "")
    failed = signal(host, "check", Check(1, "build", "c" * 40, ""))
    assert (failed.kind, failed.why_ignored) == ("check", "")


def test_checks_pushes_and_pull_requests_count_on_the_fleets_branches_and_pushes_to_the_base_too() -> None:
    own, attributes = "fleet/0123456789ab", "object_attributes"
    default = {"repository": {"default_branch": "main"}, "project": {"default_branch": "main"}}

    def counts(kind: str, event: str, payload: dict[str, Any], base: str | None = None) -> bool:
        return not signal_of(kind, event, {**default, **payload}, "@fleet", base).why_ignored

    for branch, expected in ((own, True), ("topic", False)):
        pull, suite = {"pull_request": {"head": {"ref": branch}}}, {"head_branch": branch}
        assert counts("github", "push", {"ref": f"refs/heads/{branch}"}) is expected
        assert counts("github", "check_run.completed", {"check_run": {"check_suite": suite}}) is expected
        assert counts("github", "pull_request.closed", pull) is expected
        assert counts("gitea", "pull_request.synchronized", pull) is expected
        assert counts("gitlab", "build", {"ref": branch}) is expected
        assert counts("gitlab", "pipeline", {attributes: {"ref": branch}}) is expected
        assert counts("gitlab", "merge_request.close", {attributes: {"source_branch": branch}}) is expected
    assert counts("github", "push", {"ref": "refs/heads/main"})
    assert counts("github", "push", {"ref": "refs/heads/next"}, "next")
    assert not counts("github", "push", {"ref": "refs/heads/main"}, "next")
    assert not counts("github", "check_suite.completed", {"check_suite": {"head_branch": "main"}})
    # Not every event names its branch.
    assert counts("gitea", "status", {"state": "failure"})
    assert counts("gitlab", "build", {"ref": "refs/merge-requests/4/head"})


@given(st.sampled_from(sorted(KINDS)), st.text(), st.dictionaries(KEYS, ANYTHING))
def test_a_payload_of_any_shape_is_read_without_an_error(kind: str, event: str, payload: dict[str, Any]) -> None:
    assert isinstance(signal_of(kind, event, payload, "@fleet").repository, str)


def test_a_comment_that_addresses_the_fleet_is_its_request_and_a_quotation_or_code_is_none() -> None:
    requests = {
        "@fleet fix it": "fix it",
        "@Fleet: fix it": "fix it",
        "Please, @fleet, fix it": "Please, @fleet, fix it",
        "@fleet": "@fleet",
        # Backticks that no others of the same number follow are no code.
        "``\n@fleet fix `it": "``\n@fleet fix `it",
        "`a`` @fleet fix ```it": "`a`` @fleet fix ```it",
        "Thanks.\r\n\r\n@fleet now the docs": "Thanks.\n\n@fleet now the docs",
    }
    none = (
        *("fix it", "> @fleet fix it", "`@fleet` is the word", "```\n@fleet fix it\n```", "~~~\n@fleet fix it"),
        *("    @fleet fix it", "@fleet-admins look", "@fleets look", "me@fleet.example", "see https://host/@fleet"),
        *("@fleet.org", "``` @fleet ` ``` fix it", "``a ` @fleet`` fix it"),
    )
    assert {text: request_in(text, "@fleet") for text in (*requests, *none)} == {**requests, **dict.fromkeys(none)}


@given(st.text())
def test_what_the_fleet_writes_is_recognized_whatever_it_says(text: str) -> None:
    assert is_ours(marked("abc", text))
    assert not is_ours(f"> {marked('abc', text)}")
