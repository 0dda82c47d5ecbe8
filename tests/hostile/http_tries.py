"""What a hostile drone tries with its token: addresses for people, runs and keys of others, files, joining again.

`integration/web/test_every_route.py` has every address for people; an address that no operation has is closed as well.
"""

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
import redis

from control_plane.contract.declarations import audit
from control_plane.contract.declarations.audit import AuditFilter
from control_plane.operations.audit.refusal_tally import SINGLY
from shared import envelope
from shared.blobs import digest
from shared.events import ABILITIES
from tests.hostile.hostile_drone import Doc, GotThrough, HostileDrone, Try

CONTENT = b"evil"
BLOB = digest(CONTENT)
PEOPLE = (
    "GET /api/v1/orders/{oka_order}/patch",
    "GET /api/v1/orders/{mila_order}?org=payments",
    "POST /api/v1/orders",
    "POST /api/v1/orders/{oka_order}/approve",
    "DELETE /api/v1/drones/oka",
    "POST /api/v1/api-tokens",
    "GET /api/v1/export",
    "POST /mcp",
)
CLOSED = {403, 404, 405, 422}
"""A body that no operation accepts is refused before the token is looked at, as is an address that does not exist."""
RUNS: dict[str, tuple[str, str, int]] = {
    "store a file for a run of another drone": ("PUT", "/runs/{oka_run}/blobs/{blob}", 404),
    "store a checkpoint for a run of another organization": (
        "PUT",
        "/runs/{mila_run}/blobs/{blob}?kind=checkpoint",
        404,
    ),
    "store a file under another's name": ("PUT", "/runs/{own_run}/blobs/{mila_patch}", 422),
    "store a file outside the directory": ("PUT", "/runs/{own_run}/blobs/..%2f..%2fmaster.key", 404),
    "read the patch of another organization": ("GET", "/runs/{mila_run}/blobs/{mila_patch}", 404),
    "read a file outside the directory": ("GET", "/runs/{own_run}/blobs/..%2f..%2fmaster.key", 404),
    "be allowed to push another's branch": ("POST", "/runs/{oka_run}/push-grant", 404),
    "take money for a run of another organization": ("POST", "/runs/{mila_run}/allowance", 404),
    "replace its keys unasked": ("POST", "/registrations/self/keys", 409),
}
"""Method, address and the status of the refusal."""
SENT: dict[str, Doc] = {
    "keys": {"envelope": "x"},
    "allowance": {"number": 1, "model": "openai/x", "wanted": 1e6},
}
"""The JSON that belongs to an address, by its last word."""
JOINS: dict[str, tuple[str, Doc]] = {
    "join again under another name": ("E-DRONE-KEY-TAKEN", {"name": "crow-2"}),
    "join again under another name, with another key": ("E-JOIN-USED", {"name": "crow-3", "other_key": True}),
    "take the name of another drone": ("E-DRONE-NAME", {"name": "oka", "other_key": True}),
}


def tries() -> Iterator[Try]:
    for line in PEOPLE:
        yield Try(line, partial(_person, line=line), "audit")
    for what, (method, path, status) in RUNS.items():
        yield Try(what, partial(_run, method=method, path=path, status=status), "audit")
    yield Try("announce a file of 600 MB", _large, "audit")
    yield Try("claim to be another drone by headers", _headers, "audit")
    yield Try("use its token as a cookie", _cookie, "unknown")
    yield Try("log in on the page with its token", _page, "unknown")
    yield Try("use a token of its own making", lambda it: _bearer(it, "fd_" + "0" * 64), "unknown")
    yield Try("use its broker password as a token", _password, "unknown")
    yield Try("claim another network address", _forwarded, "unknown")
    for what, (code, said) in JOINS.items():
        yield Try(what, partial(_join, code=code, **said), "unknown")


def after_the_end() -> Iterator[Try]:
    """Requests about a run that has ended, and more requests than the audit log has room for."""
    push = partial(_run, method="POST", path="/runs/{own_run}/push-grant", status=409)
    yield Try("be allowed to push after the end", push, "audit")
    yield Try("flood the audit log with 300 refused requests", _flood, "audit")


def with_revoked_keys() -> Iterator[Try]:
    """What a thief tries with the credentials of a drone whose keys were revoked."""
    yield Try("use a revoked token", lambda it: _revoked(it, "registrations/self"), "unknown")
    files = "runs/{oka_run}/blobs/{mila_patch}"
    yield Try("read its runs' files with a revoked token", lambda it: _revoked(it, files), "unknown")
    yield Try("use a revoked password of the broker", _broker, "acl")
    for name in ("jay", "jay-2"):
        yield Try(
            f"join as {name} with a revoked key", partial(_join, name=name, code="E-DRONE-KEY-REVOKED"), "unknown"
        )


def _refused(answer: httpx.Response, status: int) -> str:
    """The code of the refusal."""
    if answer.status_code != status:
        raise GotThrough(f"{answer.status_code}: {answer.text[:300]}")
    return str(json.loads(answer.text)["code"])


def _flood(it: HostileDrone) -> None:
    """Requests in a number that must not end in as many records."""
    with it.http() as http:
        for number in range(300):
            _refused(http.get(f"/api/v1/orders/{number}"), 403)
    found = it.client.call(audit.LIST, AuditFilter(actor=it.id, outcome="refused", limit=1000))
    by_minute = Counter(each["at"][:16] for each in found)
    # The sum of a minute is one more for each code.
    if max(by_minute.values()) > SINGLY + len({each["code"] for each in found}):
        raise GotThrough(f"{by_minute} records")


def _person(it: HostileDrone, line: str) -> None:
    method, path = line.split()
    with it.http() as http:
        answer = http.request(method, path.format_map(vars(it.victims)), json={} if method == "POST" else None)
    _refused(answer, answer.status_code if answer.status_code in CLOSED else 403)


def _run(it: HostileDrone, method: str, path: str, status: int) -> None:
    address = path.format_map({**vars(it.victims), "own_run": it.held.run_id, "blob": BLOB})
    content = CONTENT if method == "PUT" else None
    said = SENT.get(address.rpartition("/")[2])
    with it.http() as http:
        _refused(http.request(method, f"/api/v1{address}", content=content, json=said), status)


def _large(it: HostileDrone) -> None:
    url = httpx.URL(it.url)
    with closing(HTTPConnection(str(url.host), url.port, timeout=60)) as connection:
        connection.putrequest("PUT", f"/api/v1/runs/{it.held.run_id}/blobs/{BLOB}")
        connection.putheader("Authorization", f"Bearer {it.api_token}")
        connection.putheader("Content-Length", str(600 * 10**6))
        connection.endheaders(CONTENT)
        answer = connection.getresponse()
        _refused(httpx.Response(answer.status, content=answer.read()), 413)


def _cookie(it: HostileDrone) -> str:
    return _stranger(it, {"Cookie": f"fleet_session_{httpx.URL(it.url).port}={it.api_token}"})


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
        return _refused(http.get("/api/v1/orders"), 401)


def _page(it: HostileDrone) -> str:
    with httpx.Client(base_url=it.url, trust_env=False, timeout=60) as http:
        answer = http.post("/login", data={"token": it.api_token, "browser_key": "k" * 64})
        if http.cookies or answer.status_code < 400:
            raise GotThrough(f"{answer.status_code}: {answer.text[:200]}")
        return "E-TOKEN-UNKNOWN"


def _headers(it: HostileDrone) -> None:
    claims = {"X-Drone-Id": it.victims.oka, "X-User": "admin", "X-HTTP-Method-Override": "DELETE"}
    with it.http() as http:
        _refused(http.get("/api/v1/orders", headers=claims), 403)


def _join(it: HostileDrone, name: str, code: str, *, other_key: bool = False, **said: Any) -> str:
    key = envelope.new_private_key() if other_key else it.played.private_key
    request: Doc = {
        "secret": it.victims.join_token.split("_")[1],
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
    return code


def _revoked(it: HostileDrone, path: str) -> str:
    with it.http() as http:
        return _refused(http.get(f"/api/v1/{path.format_map(vars(it.victims))}"), 401)


def _broker(it: HostileDrone) -> None:
    try:
        it.played.redis.ping()
    except redis.AuthenticationError:
        return
    raise GotThrough("the broker answers")
