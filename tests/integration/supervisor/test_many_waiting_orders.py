"""What a supervisor's rounds cost does not grow with the square of the orders that wait."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event

from control_plane.supervisor.waiting_reasons import refresh_reasons
from tests.support.planes import Plane


def test_the_reasons_of_many_waiting_orders_take_as_many_statements_as_those_of_few(any_plane: Plane) -> None:
    any_plane.drone()
    statements, counts = list[Any](), []
    event.listen(any_plane.core.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    for number in (2, 6):
        for _ in range(number):
            any_plane.submit()
        statements.clear()
        assert refresh_reasons(any_plane.core) == []
        counts.append(len(statements))
    assert counts[0] == counts[1] > 0
