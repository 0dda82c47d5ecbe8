"""What `fleet doctor` and the board say of a fleet that is less safe than it could be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import Api, api_on


def check(api: Api, code: str) -> dict[str, Any]:
    with api.http() as http:
        found = http.get("/api/v1/doctor").raise_for_status().json()
    return next(each for each in found if each["code"] == code)


def board(api: Api) -> str:
    with api.browser() as browser:
        return browser.get("/board").raise_for_status().text


@pytest.mark.parametrize(
    ("address", "state", "is_told"),
    [
        ("redis://fleet.example.org:6379/0", "WARN", True),
        ("rediss://fleet.example.org:6379/0", "OK", False),
        ("redis://127.0.0.1:6379/0", "OK", False),
    ],
)
def test_a_broker_that_others_reach_without_tls_is_told(  # noqa: PLR0917
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory, address: str, state: str, is_told: bool
) -> None:
    with api_on(sqlite_url, valkey, core_factory, public_broker_url=address) as api:
        assert check(api, "D-BROKER-TLS")["state"] == state
        assert ("broker passwords can be read" in board(api).replace("&#39;", "'")) is is_told
