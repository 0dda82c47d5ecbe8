"""Following a graph or a race: each change of an order until nothing more can change, across restarts of the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from control_plane.cli.answers import for_people
from control_plane.cli.polling import EVERY_S, PatientReader
from shared.clock import SystemClock
from shared.terminal.command_line import print_json_line, put, say

Doc = dict[str, Any]


def follow_group(
    document: Doc,
    again: Callable[[], Doc],
    is_over: Callable[[Doc], bool],
    line: Callable[[Doc], str],
    *,
    as_json: bool,
) -> Doc:
    """Print each change of an order of the document until it is over; returns the last document.

    `again` reads the document once more; `line` is an order's change for people. A server that is away is waited for.
    """
    read = PatientReader(again, say, SystemClock(), reached=True)
    seen: dict[str, str] = {}
    while True:
        for order in document["orders"]:
            if seen.get(order["id"]) != order["status"]:
                seen[order["id"]] = order["status"]
                _tell(order, line, as_json=as_json)
        if is_over(document):
            return document
        time.sleep(EVERY_S)
        document = read()


def _tell(order: Doc, line: Callable[[Doc], str], *, as_json: bool) -> None:
    if as_json:
        told = {name: order.get(name) for name in ("key", "id", "status", "outcome")}
        print_json_line({"event": "order", **told})
    else:
        put(f"{line(for_people(order))}\n")
