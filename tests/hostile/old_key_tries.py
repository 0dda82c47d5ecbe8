"""What a thief tries with the credentials of a drone whose keys were revoked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import redis

from tests.hostile import http_tries
from tests.hostile.hostile_drone import GotThrough, HostileDrone, Try


def tries() -> Iterator[Try]:
    yield Try("use a revoked token", _token, "unknown")
    yield Try("read its runs' files with a revoked token", _files, "unknown")
    yield Try("use a revoked password of the broker", _broker, "acl")
    yield Try(
        "join again with a revoked key", partial(http_tries.join, name="jay", code="E-DRONE-KEY-REVOKED"), "unknown"
    )
    yield Try(
        "join under another name with a revoked key",
        partial(http_tries.join, name="jay-2", code="E-DRONE-KEY-REVOKED"),
        "unknown",
    )


def _token(it: HostileDrone) -> str:
    with it.http() as http:
        return http_tries.refused(http.get("/api/v1/registrations/self"), 401)


def _files(it: HostileDrone) -> str:
    with it.http() as http:
        known = it.victims
        return http_tries.refused(http.get(f"/api/v1/runs/{known.oka_run}/blobs/{known.mila_patch}"), 401)


def _broker(it: HostileDrone) -> str:
    try:
        it.played.redis.ping()
    except redis.AuthenticationError:
        return "broker: password"
    raise GotThrough("the broker answers")
