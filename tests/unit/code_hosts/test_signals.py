"""Webhooks in one form: which ones are a reason to read the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.automation.code_host_events import read_event
from control_plane.code_hosts.signals import HostSignal, signal_of
from shared.code_hosts import marked
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


def test_a_mention_is_a_reason_to_read_the_host(host: HostStandIn) -> None:
    found = signal(host, "comment", host.comment("issues/1", "alice", "@fleet fix it"))
    assert found == HostSignal("comment", "shop/calc", "")


@pytest.mark.parametrize(
    ("body", "why"), [("nice", "it does not mention @fleet"), (marked("x", "@fleet"), "the fleet wrote it")]
)
def test_other_comments_and_our_own_are_none(host: HostStandIn, body: str, why: str) -> None:
    assert signal(host, "comment", host.comment("issues/1", "kim", body)).why_ignored == why


def test_failed_checks_are_one(host: HostStandIn) -> None:
    found = signal(host, "check", Check(1, "build", "c" * 40, ""))
    assert (found.kind, found.why_ignored) == ("check", "")


@pytest.mark.parametrize("event", ["issue_comment.edited", "issue_comment.deleted", "ping", "star.created", ""])
def test_edited_deleted_and_foreign_events_are_none(event: str) -> None:
    payload = {"comment": {"body": "@fleet"}, "repository": {"full_name": "shop/calc"}}
    assert signal_of("github", event, payload, "@fleet").why_ignored


@given(st.sampled_from(sorted(KINDS)), st.text(), st.dictionaries(KEYS, ANYTHING))
def test_a_payload_of_any_shape_is_read_without_an_error(kind: str, event: str, payload: dict[str, Any]) -> None:
    assert isinstance(signal_of(kind, event, payload, "@fleet").repository, str)


def test_a_review_is_one_although_it_does_not_mention_the_fleet() -> None:
    review = {"review": {"body": ""}, "repository": {"full_name": "shop/calc"}}
    assert signal_of("github", "pull_request_review.submitted", review, "@fleet").why_ignored == ""
    assert signal_of("gitea", "pull_request_comment.reviewed", review, "@fleet") == HostSignal("review", "shop/calc")
    note = {"object_attributes": {"note": "Use sum()", "type": "DiffNote"}}
    assert signal_of("gitlab", "note.create", note, "@fleet") == HostSignal("review", "")
