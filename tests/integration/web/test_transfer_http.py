"""Export, import and pull requests over HTTP: streamed both ways, and refused in the right words."""

from __future__ import annotations

import json

from control_plane.declarations import projects
from tests.support.fleet import Api


def test_an_organization_goes_out_and_in_as_a_stream_of_lines(api: Api) -> None:
    api.add_work()
    with api.http() as http:
        out = http.get("/api/v1/organizations/default/export")
        made = http.post("/api/v1/organizations/import", params={"name": "moved"}, content=iter([out.content]))
    assert out.headers["content-type"].startswith("application/x-ndjson")
    assert json.loads(out.text.splitlines()[-1])["kind"] == "end"
    assert (made.status_code, made.json()["name"]) == (201, "moved")
    assert [project["slug"] for project in api.client.call(projects.LIST)] == ["demo"]


def test_a_body_of_many_megabytes_is_taken_in_and_refused_by_its_line(api: Api) -> None:
    with api.http() as http:
        refused = http.post("/api/v1/organizations/import", content=iter([b"x" * 65536] * 64 + [b"\n"]))
    assert (refused.status_code, refused.json()["code"]) == (422, "E-IMPORT-LINE")


def test_strangers_and_lesser_roles_are_refused(api: Api) -> None:
    with api.http(None) as http:
        assert http.get("/api/v1/organizations/default/export").status_code == 401
        assert http.post("/api/v1/organizations/import", content=b"{}").status_code == 401
    with api.http(api.token_for("operator")) as http:
        assert http.get("/api/v1/organizations/default/export").status_code == 403
        assert http.post("/api/v1/organizations/import", content=b"{}").status_code == 403
    with api.http(api.token_for("admin")) as http:
        assert http.get("/api/v1/organizations/other/export").status_code == 404
        assert http.post("/api/v1/organizations/import", content=b"{}").json()["code"] == "E-EVERYWHERE"


def test_a_pull_request_for_what_is_not_there_or_not_done_is_refused(api: Api) -> None:
    api.add_work()
    order = api.submit()
    with api.http() as http:
        answers = [
            http.post(f"/api/v1/orders/{order['id']}/pull-request"),
            http.post("/api/v1/orders/000000000000/pull-request", json={"draft": True}),
            http.post("/api/v1/tasks/NONE-0001/pull-request"),
            http.post(f"/api/v1/orders/{order['id']}/pull-request", json={"drafty": True}),
        ]
    assert [answer.status_code for answer in answers] == [409, 404, 404, 422]
