"""Orders and sessions named by a prefix of their id, or `@last`, through the operations that every interface calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from control_plane.core import Caller, Core
from control_plane.db.sessions import ChatSession
from control_plane.documents.orders import SubmitRequest
from control_plane.operations.orders import canceling, reading
from control_plane.operations.sessions import reading as sessions
from shared.errors import Invalid, NotFound
from tests.support.made import make_project, submit


@pytest.fixture
def ids(core: Core, admin: Caller) -> list[str]:
    """The ids of 17 orders, oldest first: at least two begin with the same of 16 digits."""
    make_project(core, admin)
    return [submit(core, admin, prompt=f"Task {number}\nwith details").id for number in range(17)]


def beginning(prefix: str, ids: list[str]) -> list[str]:
    return [each for each in ids if each.startswith(prefix)]


def test_a_unique_prefix_names_an_order(core: Core, admin: Caller, ids: list[str]) -> None:
    for wanted in ids:
        prefix = next(wanted[:size] for size in range(1, 13) if beginning(wanted[:size], ids) == [wanted])
        assert reading.show_order(core, admin, prefix).id == wanted
        assert reading.show_order(core, admin, prefix.upper()).id == wanted
    assert canceling.cancel(core, admin, ids[0][:11]).id == ids[0]


def test_an_ambiguous_prefix_names_the_candidates_newest_first(core: Core, admin: Caller, ids: list[str]) -> None:
    shared = next(each[0] for each in ids if len(beginning(each[0], ids)) > 1)
    named = [f"{each} (Task {ids.index(each)})" for each in reversed(beginning(shared, ids))]
    with pytest.raises(Invalid) as refused:
        reading.show_order(core, admin, shared)
    assert refused.value.code == "E-ID-AMBIGUOUS"
    assert refused.value.why == ", ".join(named[:5]) + (" and more" if len(named) > 5 else "")


def test_an_unknown_prefix_is_an_unknown_order(core: Core, admin: Caller, ids: list[str]) -> None:
    """So is one of an order of another organization."""
    stranger = replace(admin, organization_id="0" * 12, organization="elsewhere")
    for caller, prefix in ((stranger, ids[0][:11]), *((admin, each) for each in ("g", "%", "_", "aaaa11111111x", ""))):
        with pytest.raises(NotFound) as refused:
            reading.show_order(core, caller, prefix)
        assert refused.value.code == "E-ORDER-404", prefix


def test_last_is_the_callers_newest_order(core: Core, admin: Caller, ids: list[str]) -> None:
    assert reading.show_order(core, admin, "@last").id == ids[-1]
    for other in (replace(admin, user="mila"), replace(admin, organization_id="0" * 12)):
        with pytest.raises(NotFound) as refused:
            reading.show_order(core, other, "@last")
        assert refused.value.code == "E-ORDER-LAST"


def test_a_session_is_named_by_a_prefix_too(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    session_id = submit(core, admin).session
    assert sessions.show(core, admin, session_id[:6]).id == session_id
    again = reading.submit(core, admin, SubmitRequest(prompt="x", project="web", session=session_id[:6]))
    assert again.session == session_id
    with core.database.write() as db:
        old = db.get_one(ChatSession, session_id)
        copy = {column.key: getattr(old, column.key) for column in ChatSession.__table__.columns}
        db.add(ChatSession(**{**copy, "id": f"{session_id[:6]}000000"}))
    with pytest.raises(Invalid) as refused:
        sessions.show(core, admin, session_id[:6])
    assert refused.value.code == "E-ID-AMBIGUOUS"
