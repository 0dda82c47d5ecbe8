"""What a hostile drone tries with its token: addresses for people, runs and keys of others, files, joining again."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from typing import Any

import httpx

from control_plane.declarations import audit
from control_plane.declarations.audit import AuditFilter
from control_plane.operations.audit.refusal_tally import SINGLY
from shared import envelope
from shared.blobs import digest
from shared.events import ABILITIES
from tests.hostile.hostile_drone import Doc, GotThrough, HostileDrone, Try

CONTENT = b"evil"
BLOB = digest(CONTENT)
PEOPLE = """
    GET /api/v1/orders
    GET /api/v1/orders/{oka_order}
    GET /api/v1/orders/{oka_order}/patch
    GET /api/v1/orders/{oka_order}/events
    GET /api/v1/orders/{mila_order}?org=payments
    POST /api/v1/orders
    POST /api/v1/orders/{oka_order}/cancel
    POST /api/v1/orders/{oka_order}/approve
    GET /api/v1/sessions
    GET /api/v1/tasks
    GET /api/v1/drones
    GET /api/v1/drones?org=payments
    POST /api/v1/drones/oka/drain
    DELETE /api/v1/drones/oka
    POST /api/v1/drones/oka/keys
    DELETE /api/v1/drones/oka/keys
    GET /api/v1/projects
    POST /api/v1/projects
    GET /api/v1/providers
    GET /api/v1/organizations
    DELETE /api/v1/organizations/payments
    GET /api/v1/users
    POST /api/v1/users
    GET /api/v1/api-tokens
    POST /api/v1/api-tokens
    GET /api/v1/join-tokens
    POST /api/v1/join-tokens
    GET /api/v1/login-sessions
    GET /api/v1/audit
    GET /api/v1/keys
    GET /api/v1/export
    GET /api/v1/webhooks
    GET /api/v1/agents
    GET /mcp
    POST /mcp
    GET /
    GET /audit
    GET /settings
"""
"""Addresses for people. Which of them exist does not matter: a drone's token opens none."""
CLOSED = {403, 404, 405, 422}
"""A body that no operation accepts is refused before the token is looked at, as is an address that does not exist."""
RUNS: dict[str, tuple[str, str, int]] = {
    "store a file for a run of another drone": ("PUT", "/runs/{oka_run}/blobs/{blob}", 404),
    "store a file for a run of another organization": ("PUT", "/runs/{mila_run}/blobs/{blob}", 404),
    "store a checkpoint for a run of another drone": ("PUT", "/runs/{oka_run}/blobs/{blob}?kind=checkpoint", 404),
    "store a file for a run that does not exist": ("PUT", "/runs/000000000000/blobs/{blob}", 404),
    "store a file under another's name": ("PUT", "/runs/{own_run}/blobs/{mila_patch}", 422),
    "store a file of an unknown kind": ("PUT", "/runs/{own_run}/blobs/{blob}?kind=../../x", 422),
    "store a file outside the directory": ("PUT", "/runs/{own_run}/blobs/..%2f..%2fmaster.key", 404),
    "read the patch of another organization": ("GET", "/runs/{mila_run}/blobs/{mila_patch}", 404),
    "read it as its own": ("GET", "/runs/{own_run}/blobs/{mila_patch}", 404),
    "read a file outside the directory": ("GET", "/runs/{own_run}/blobs/..%2f..%2fmaster.key", 404),
    "read a file with a name of another form": ("GET", "/runs/{own_run}/blobs/master.key", 422),
    "be allowed to push another's branch": ("POST", "/runs/{oka_run}/push-grant", 404),
    "be allowed to push a branch of another organization": ("POST", "/runs/{mila_run}/push-grant", 404),
    "take money for another drone's run": ("POST", "/runs/{oka_run}/allowance", 404),
    "take money for a run of another organization": ("POST", "/runs/{mila_run}/allowance", 404),
    "take a model permit of another drone's run": ("POST", "/runs/{oka_run}/model-permit", 404),
    "take a model permit of another organization": ("POST", "/runs/{mila_run}/model-permit", 404),
    "replace its keys unasked": ("POST", "/registrations/self/keys", 409),
}
"""Method, address and the status of the refusal."""


def tries() -> Iterator[Try]:
    for line in PEOPLE.split("\n"):
        if line.strip():
            yield Try(line.strip(), partial(_person, line=line.strip()), "audit")
    for what, (method, path, status) in RUNS.items():
        yield Try(what, partial(_run, method=method, path=path, status=status), "audit")
    yield Try("announce a file of 600 MB", _large, "audit")
    yield Try("use its token as a cookie", _cookie, "unknown")
    yield Try("log in on the page with its token", _page, "unknown")
    yield Try("use a token of its own making", partial(_bearer, token="fd_" + "0" * 64), "unknown")
    yield Try("use its broker password as a token", _password, "unknown")
    yield Try("claim another network address", _forwarded, "unknown")
    yield Try("claim to be another drone by headers", _headers, "audit")
    yield Try("join again under another name", partial(join, name="crow-2", code="E-DRONE-KEY-TAKEN"), "unknown")
    yield Try(
        "join again under another name, with another key",
        partial(join, name="crow-3", other_key=True, code="E-JOIN-USED"),
        "unknown",
    )
    yield Try(
        "take the name of another drone", partial(join, name="oka", other_key=True, code="E-DRONE-NAME"), "unknown"
    )
    yield Try("join as ../../x", partial(join, name="../../x", code="E-NAME"), "unknown")
    yield Try("join with 10^9 slots", partial(join, name="crow", concurrency=10**9, code="E-REQUEST"), "unknown")
    yield Try(
        "join again without no-scripts", partial(join, name="crow", abilities=(), code="E-DRONE-VERSION"), "unknown"
    )
    yield Try("guess a join token", partial(join, name="x", secret="0" * 64, code="E-JOIN-UNKNOWN"), "unknown")


def after_the_end() -> Iterator[Try]:
    """Requests about a run that has ended, and more requests than the audit log has room for."""
    yield Try(
        "be allowed to push after the end",
        partial(_run, method="POST", path="/runs/{own_run}/push-grant", status=409),
        "audit",
    )
    yield Try("flood the audit log with 300 refused requests", _flood, "audit")


def _flood(it: HostileDrone) -> str:
    """Requests in a number that must not end in as many records."""
    with it.http() as http:
        for number in range(300):
            refused(http.get(f"/api/v1/orders/{number}"), 403)
    found = it.client.call(audit.LIST, AuditFilter(actor=it.id, outcome="refused", limit=1000))
    by_minute = Counter(each["at"][:16] for each in found)
    # The sum of a minute is one more for each code.
    if max(by_minute.values()) > SINGLY + len({each["code"] for each in found}):
        raise GotThrough(f"{by_minute} records")
    return "API: 403 E-TOKEN-KIND"


def _person(it: HostileDrone, line: str) -> str:
    method, path = line.split()
    with it.http() as http:
        answer = http.request(method, path.format_map(vars(it.victims)), json={} if method == "POST" else None)
    return refused(answer, answer.status_code if answer.status_code in CLOSED else 403)


def _run(it: HostileDrone, method: str, path: str, status: int) -> str:
    assert it.order is not None
    address = path.format_map({**vars(it.victims), "own_run": it.order.run_id, "blob": BLOB})
    content = {"content": CONTENT} if method == "PUT" else {}
    if address.endswith("/keys"):
        content = {"json": {"envelope": "x"}}  # type: ignore[dict-item]
    if address.endswith("/allowance"):
        content = {"json": {"number": 1, "model": "openai/x", "wanted": 1e6}}  # type: ignore[dict-item]
    if address.endswith("/model-permit"):
        content = {"json": {"provider": "main"}}  # type: ignore[dict-item]
    with it.http() as http:
        return refused(http.request(method, f"/api/v1{address}", **content), status)  # type: ignore[arg-type]


def _large(it: HostileDrone) -> str:
    assert it.order is not None
    url = httpx.URL(it.url)
    with closing(HTTPConnection(str(url.host), url.port, timeout=60)) as connection:
        connection.putrequest("PUT", f"/api/v1/runs/{it.order.run_id}/blobs/{BLOB}")
        connection.putheader("Authorization", f"Bearer {it.api_token}")
        connection.putheader("Content-Length", str(600 * 10**6))
        connection.endheaders(CONTENT)
        answer = connection.getresponse()
        return refused(httpx.Response(answer.status, content=answer.read()), 413)


def _cookie(it: HostileDrone) -> str:
    port = httpx.URL(it.url).port
    return _stranger(it, {"Cookie": f"fleet_session_{port}={it.api_token}"})


def _bearer(it: HostileDrone, token: str) -> str:
    return _stranger(it, {"Authorization": f"Bearer {token}"})


def _password(it: HostileDrone) -> str:
    return _bearer(it, str(httpx.URL(it.broker_url).password))


def _forwarded(it: HostileDrone) -> str:
    """The audit log must not contain the address that the drone names."""
    spoofed = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9", "X-Real-IP": "203.0.113.9"}
    return _stranger(it, {"Authorization": "Bearer fa_x", **spoofed})


def _stranger(it: HostileDrone, headers: dict[str, str]) -> str:
    with httpx.Client(base_url=it.url, headers=headers, trust_env=False, timeout=60) as http:
        return refused(http.get("/api/v1/orders"), 401)


def _page(it: HostileDrone) -> str:
    with httpx.Client(base_url=it.url, trust_env=False, timeout=60) as http:
        answer = http.post("/login", data={"token": it.api_token, "browser_key": "k" * 64})
        if http.cookies or answer.status_code < 400:
            raise GotThrough(f"{answer.status_code}: {answer.text[:200]}")
        return f"API: {answer.status_code} E-TOKEN-UNKNOWN"


def _headers(it: HostileDrone) -> str:
    claims = {"X-Drone-Id": it.victims.oka, "X-User": "admin", "X-HTTP-Method-Override": "DELETE"}
    with it.http() as http:
        return refused(http.get("/api/v1/orders", headers=claims), 403)


def join(it: HostileDrone, name: str, code: str, *, secret: str = "", other_key: bool = False, **said: Any) -> str:
    key = envelope.new_private_key() if other_key else it.played.private_key
    request: Doc = {
        "secret": secret or it.victims.join_token.split("_")[1],
        "name": name,
        "machine_id": "elsewhere",
        "public_key": base64.b64encode(envelope.public_key(key)).decode(),
        "abilities": ABILITIES,
        **said,
    }
    with httpx.Client(base_url=it.url, trust_env=False, timeout=60) as http:
        answer = http.post("/api/v1/registrations", json=request)
    if answer.status_code < 400 or answer.json()["code"] != code:
        raise GotThrough(f"{answer.status_code}: {answer.text[:300]}")
    return f"API: {answer.status_code} {code}"


def refused(answer: httpx.Response, status: int) -> str:
    if answer.status_code != status:
        raise GotThrough(f"{answer.status_code}: {answer.text[:300]}")
    return f"API: {status} {json.loads(answer.text)['code']}"
