"""Following a graph through a restart of the server."""

from __future__ import annotations

import json
import threading
from functools import partial

import pytest

from control_plane.cli.group_follow import follow_group
from control_plane.client.fleet import FleetClient
from control_plane.declarations import graphs
from control_plane.declarations.graphs import GraphRequest
from shared.errors import NotFound
from tests.support import wait_until
from tests.support.fleet import Api


def test_a_graph_is_followed_through_a_restart_of_the_server(api: Api, capfd: pytest.CaptureFixture[str]) -> None:
    api.add_work()
    orders = [{"name": "one", "prompt": "First"}, {"name": "two", "prompt": "Second", "after": ["one"]}]
    request = GraphRequest.model_validate({"project": "demo", "orders": orders})
    told, ended = list[str](), list[str]()

    def heard(word: str) -> bool:
        told.append("".join(capfd.readouterr()))
        return word in "".join(told)

    def follow() -> None:
        with FleetClient(api.url, api.token) as client:
            graph = client.call(graphs.SUBMIT, request)
            again = partial(client.call, graphs.SHOW, graph_id=graph["id"])
            ended.append(follow_group(graph, again, lambda found: found["failed"] == 2, str, as_json=True)["id"])

    watcher = threading.Thread(target=follow, daemon=True)
    watcher.start()
    wait_until(lambda: heard('"key": "two"'))
    api.stop()
    wait_until(lambda: heard("connection lost"))
    api.start()
    wait_until(lambda: heard("reconnected"))
    (graph,) = api.client.call(graphs.LIST)
    api.client.call(graphs.CANCEL, graph_id=graph["id"])
    watcher.join(60)
    assert ended == [graph["id"]]
    told.append("".join(capfd.readouterr()))
    lines = [json.loads(line) for line in "".join(told).splitlines() if line.startswith("{")]
    assert [(line["key"], line["status"]) for line in lines] == [
        *(("one", "queued"), ("two", "queued")),
        *(("one", "canceled"), ("two", "canceled")),
    ]


def test_a_graph_that_is_gone_ends_the_follower() -> None:
    def gone() -> dict[str, object]:
        raise NotFound("graph x not found", code="E-GRAPH-404")

    with pytest.raises(NotFound):
        follow_group({"orders": []}, gone, lambda _: False, str, as_json=True)
