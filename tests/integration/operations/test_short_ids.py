"""Orders and sessions named by a prefix of their id, or `@last`, through the operations that every interface calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.core import Caller, Core
from control_plane.db.sessions import ChatSession
from control_plane.operations.orders import canceling, reading
from control_plane.operations.sessions import reading as sessions
from shared.errors import Invalid
from tests.support.made import make_project, submit
from tests.support.refusals import code_of


def test_a_unique_prefix_names_an_order_an_ambiguous_one_its_candidates_and_last_the_callers_newest(
    core: Core, admin: Caller
) -> None:
    make_project(core, admin)
    # Of 17 orders, at least two begin with the same of 16 digits.
    ids = [submit(core, admin, prompt=f"Task {number}\nwith details").id for number in range(17)]

    def beginning(prefix: str) -> list[str]:
        return [each for each in ids if each.startswith(prefix)]

    wanted = ids[0]
    prefix = next(wanted[:size] for size in range(1, 13) if beginning(wanted[:size]) == [wanted])
    assert [reading.show_order(core, admin, each).id for each in (prefix, prefix.upper())] == [wanted] * 2
    assert canceling.cancel(core, admin, wanted[:11]).id == wanted

    shared = next(each[0] for each in ids if len(beginning(each[0])) > 1)
    named = [f"{each} (Task {ids.index(each)})" for each in reversed(beginning(shared))]
    with pytest.raises(Invalid) as refused:
        reading.show_order(core, admin, shared)
    assert refused.value.code == "E-ID-AMBIGUOUS"
    assert refused.value.why == ", ".join(named[:5]) + (" and more" if len(named) > 5 else "")

    stranger = replace(admin, organization_id="0" * 12, organization="elsewhere")
    unknown = [(stranger, wanted[:11]), *((admin, each) for each in ("g", "%", "_", "aaaa11111111x", ""))]
    codes = [code_of(lambda who=who, name=name: reading.show_order(core, who, name)) for who, name in unknown]
    assert codes == ["E-ORDER-404"] * len(unknown)
    assert reading.show_order(core, admin, "@last").id == ids[-1]
    for other in (replace(admin, user="mila"), stranger):
        assert code_of(lambda other=other: reading.show_order(core, other, "@last")) == "E-ORDER-LAST"


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
