"""The pages of graphs: their orders with what each waits for."""

from __future__ import annotations

from control_plane.declarations import graphs
from control_plane.declarations.graphs import GraphRequest
from tests.support.fleet import Api


def test_a_graph_has_a_page_with_the_names_and_states_of_its_orders(api: Api) -> None:
    api.add_work()
    orders = [{"name": "one", "prompt": "First <b>"}, {"name": "two", "prompt": "Second", "after": ["one"]}]
    request = GraphRequest.model_validate({"name": "Release", "project": "demo", "orders": orders})
    graph = api.client.call(graphs.SUBMIT, request)
    with api.browser() as browser:
        listed = browser.get("/graphs").text
        shown = browser.get(f"/graphs/{graph['id']}").text
        sent = browser.post("/actions/cancel_graph", data={"graph_id": graph["id"]})
        after = browser.get(f"/graphs/{graph['id']}").text
        missing = browser.get("/graphs/000000000000")
    assert f'href="/graphs/{graph["id"]}"' in listed
    assert "0 of 2 done" in listed
    assert "after one</span>" in shown
    assert "First &lt;b&gt;" in shown
    assert "0 of 2 orders succeeded" in shown
    assert (sent.status_code, "Cancel the graph" in shown, "Cancel the graph" in after) == (303, True, False)
    assert missing.status_code == 404


def test_without_graphs_the_page_says_how_to_submit_one(api: Api) -> None:
    with api.browser() as browser:
        assert "fleet graph run FILE" in browser.get("/graphs").text
