"""Webhooks of a connected host over HTTP: a signed one is a reason to read the host; all others change nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from control_plane.contract.declarations.code_hosts import CodeHostDocument, CodeHostEdit, CodeHostRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.code_hosts import HostEvent, HostLink
from control_plane.db.projects import Project
from control_plane.operations.code_hosts import connections as code_hosts
from control_plane.operations.code_hosts.arriving import FOR_EACH_CLOSED, FOR_EACH_PULL, accept_webhook
from shared.code_hosts import CodeHostReading
from tests.support import connected, hooks
from tests.support.clocks import HandClock
from tests.support.fleet import Api
from tests.support.host_stand_ins import KINDS, HostStandIn, stand_in
from tests.support.made import make_project

SECRET = "s3cret-s3cret-s3cret"


def made(kind: str, directory: Path) -> HostStandIn:
    """What a host sends; the fleet does not read it here."""
    host = stand_in(kind, directory)
    host.server_close()
    host.open_issue("Wrong", "It is.")
    return host


@pytest.fixture(params=sorted(KINDS))
def host(request: pytest.FixtureRequest, tmp_path: Path) -> HostStandIn:
    return made(request.param, tmp_path)


@pytest.fixture
def github(tmp_path: Path) -> HostStandIn:
    return made("github", tmp_path)


def connect(api: Api, kind: str) -> CodeHostDocument:
    caller = system_caller(api.core)
    make_project(api.core, caller)
    values = {"name": "shop", "kind": kind, "project": "web", "repository": "shop/calc", "secret": SECRET}
    return code_hosts.add(api.core, caller, CodeHostRequest.model_validate(values))


def send(api: Api, link: str, headers: Mapping[str, str], body: bytes) -> httpx.Response:
    with api.http() as http:
        return http.post(f"/hooks/hosts/{link}", content=body, headers=headers)


def signed(host: HostStandIn, body: bytes, headers: Mapping[str, str], secret: str = SECRET) -> dict[str, str]:
    return {"Content-Type": "application/json", **headers, **host.sign(secret, body)}


def has_news(api: Api) -> bool:
    with api.core.database.read() as db:
        assert db.scalars(select(HostEvent)).all() == []
        return db.scalars(select(HostLink.news_at)).one() is not None


def mention(host: HostStandIn, text: str = "@fleet fix it") -> tuple[dict[str, str], bytes]:
    delivery = host.delivery("comment", host.comment("issues/1", "alice", text))
    return signed(host, delivery.body, delivery.headers), delivery.body


def test_a_signed_mention_makes_the_host_be_read_and_what_is_none_is_ignored(api: Api, host: HostStandIn) -> None:
    link = connect(api, host.kind)
    headers = host.delivery("comment", host.comment("issues/1", "alice", "@fleet")).headers
    bodies = [json.dumps(each).encode() for each in ({}, {"comment": 7}, {"object_attributes": "x"})]
    none = [mention(host, "nice"), *((signed(host, body, headers), body) for body in bodies)]
    answers = [send(api, link.id, *each) for each in none]
    assert [(each.status_code, each.json()["outcome"]) for each in answers] == [(200, "ignored")] * len(none)
    assert not has_news(api)
    answers = [send(api, link.id, *mention(host)) for _ in range(2)]
    assert [(each.status_code, each.json()["outcome"]) for each in answers] == [(200, "noted")] * 2
    assert has_news(api)


def deliver(shop: connected.Connected, event: str, payload: dict[str, object]) -> str:
    request = hooks.github(connected.SECRET, event, payload)
    return accept_webhook(shop.core, shop.link.id, request.headers, request.body).outcome


def test_a_push_elsewhere_is_ignored_and_checks_wait_for_the_last_reading_but_comments_do_not(
    core: Core, admin: Caller, clock: HandClock
) -> None:
    shop = connected.connect(core, admin, clock)
    shop.reads(CodeHostReading(comments=(shop.comment(),)))
    shop.delivered(shop.work()[0].id)
    shop.writes()

    with core.database.write() as db:
        db.scalars(select(Project)).one().branch = "next"
    refs = ("refs/heads/topic", "refs/heads/main", "refs/heads/next")
    assert [deliver(shop, "push", {"ref": ref}) for ref in refs] == ["ignored", "ignored", "noted"]
    assert shop.asked() is None
    clock.sleep(FOR_EACH_PULL.total_seconds())
    assert shop.reads().pulls == (4,)
    shop.writes()
    assert deliver(shop, "check_run", {"check_run": {}}) == "noted"
    assert shop.asked() is None
    assert deliver(shop, "issue_comment", {"action": "created", "comment": {"body": "@fleet fix it"}}) == "noted"
    assert shop.asked() is not None


def test_the_time_between_readings_is_longer_for_each_open_pull_request_and_each_closed_one_that_is_read(
    core: Core, admin: Caller, clock: HandClock
) -> None:
    shop = connected.connect(core, admin, clock)
    shop.reads(CodeHostReading(comments=[shop.comment(id=str(n), place=f"issues/{n}") for n in (4, 5, 6)]))
    for number, order in enumerate(shop.work(), 4):
        shop.delivered(order.id, number=number, head=str(number) * 40)
    closed = [shop.pull(number=number, state=state) for number, state in ((5, "closed"), (6, "merged"))]
    shop.reads(CodeHostReading(pulls=closed))
    deliver(shop, "check_run", {"check_run": {}})
    with core.database.read() as db:
        news_at, last_at = db.execute(select(HostLink.news_at, HostLink.last_at)).one()
    assert news_at - last_at == FOR_EACH_PULL + FOR_EACH_CLOSED


def test_a_wrong_signature_and_an_unknown_connection_are_refused_in_the_same_words(api: Api, host: HostStandIn) -> None:
    link = connect(api, host.kind)
    headers, body = mention(host)
    forged = {**headers, **host.sign("another-secret", body)}
    bare = {"Content-Type": "application/json"}
    answers = [send(api, link.id, forged, body), send(api, link.id, bare, body), send(api, "0" * 12, headers, body)]
    assert [each.status_code for each in answers] == [401] * 3
    assert len({(each.json()["code"], each.json()["detail"]) for each in answers}) == 1
    assert not has_news(api)


def test_another_repository_is_refused_one_that_is_off_ignores_and_a_removed_one_is_unknown(
    api: Api, github: HostStandIn
) -> None:
    link, caller = connect(api, "github"), system_caller(api.core)
    delivery = github.delivery("comment", github.comment("issues/1", "alice", "@fleet fix it"))
    body = delivery.body.replace(b"shop/calc", b"evil/calc")
    answer = send(api, link.id, signed(github, body, delivery.headers), body)
    assert (answer.status_code, answer.json()["code"]) == (404, "E-HOOK-REPOSITORY")
    code_hosts.edit(api.core, caller, "shop", CodeHostEdit(enabled=False))
    headers, body = mention(github)
    assert send(api, link.id, headers, body).json()["outcome"] == "ignored"
    assert not has_news(api)
    code_hosts.remove(api.core, caller, "shop")
    assert send(api, link.id, headers, body).status_code == 401


def test_what_is_no_json_object_or_has_ten_megabytes_is_refused(api: Api, github: HostStandIn) -> None:
    link = connect(api, "github")
    for body in (b"", b"no JSON", b"[1]", b"\xff\xfe", b"[" * 100_000):
        answer = send(api, link.id, signed(github, body, {}), body)
        assert (body[:9], answer.status_code, answer.json()["code"]) == (body[:9], 422, "E-HOOK-JSON")
    connection = HTTPConnection("127.0.0.1", api.port, timeout=60)
    connection.putrequest("POST", f"/hooks/hosts/{link.id}")
    connection.putheader("Content-Length", str(10 * 1024 * 1024))
    connection.endheaders()
    connection.send(b"{" * 1000)
    assert connection.getresponse().status == 413
    connection.close()
    assert not has_news(api)
