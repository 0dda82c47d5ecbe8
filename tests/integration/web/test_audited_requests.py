"""The audit log of requests: through which door and from which address each came."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane.declarations import audit
from control_plane.declarations.audit import AuditFilter
from control_plane.declarations.projects import REMOVE
from shared.errors import NotFound
from tests.support.fleet import Api, Doc
from tests.support.fleet_tools import WAYS, reached

MISSING = "/api/v1/projects/missing"


def records(api: Api, **filters: object) -> list[Doc]:
    """Newest first."""
    return list(api.client.call(audit.LIST, AuditFilter(everywhere=True, **filters)))


def newest(api: Api) -> tuple[str, ...]:
    record = records(api, limit=1)[0]
    return tuple(record[name] for name in ("door", "actor_kind", "action", "target", "outcome", "code", "address"))


REFUSED = ("remove_project", "missing", "refused", "E-PROJECT-404", "127.0.0.1")


def test_the_command_line_and_other_clients_of_the_api_are_told_apart(api: Api) -> None:
    with pytest.raises(NotFound):
        api.client.call(REMOVE, slug="missing")
    assert newest(api) == ("cli", "token", *REFUSED)
    with api.http() as script:
        script.delete(MISSING)
    assert newest(api) == ("api", "token", *REFUSED)


def test_a_page_is_a_door_of_its_own_and_names_the_login_session(api: Api) -> None:
    with api.browser() as browser:
        browser.delete(MISSING)
    assert newest(api) == ("page", "session", *REFUSED)
    record = records(api, limit=1)[0]
    assert record["actor"].startswith("login session ")
    assert records(api, actor=record["actor_id"], outcome="refused") == [record]


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_of_the_mcp_server_is_a_door_of_its_own(api: Api, way: str, tmp_path: Path) -> None:
    with reached(way, api.url, api.token, tmp_path) as client:
        client.refused("cancel_order", order_id="o" * 12)
    assert newest(api) == ("mcp", "token", "cancel_order", "o" * 12, "refused", "E-ORDER-404", "127.0.0.1")
