"""What only the HTTP interface decides: files of orders, routes of drones, drafts, and requests that are none."""

from __future__ import annotations

import json
from contextlib import closing
from hashlib import sha256
from http.client import HTTPConnection
from itertools import cycle, product
from typing import Any

import pytest

from control_plane.contract.declarations import agents, orders, sessions, tasks
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.task_documents import TaskRequest
from shared.errors import NotFound
from shared.events import ABILITIES, Delivered, ToolResultStep
from tests.support.fleet import Api, PlayedRun


def test_what_was_sent_is_not_repeated_in_a_refusal(api: Api) -> None:
    with api.http() as http, api.http(None) as stranger:
        answer = http.post("/api/v1/providers", json={"name": "p", "model": "m", "api_key": ["sk-secret"]})
        new = {"name": "x", "machine_id": "m", "public_key": "A" * 43 + "=", "abilities": ABILITIES}
        body = {"secret": "forged", **new}
        joining = stranger.post("/api/v1/registrations", json=body)
    assert (answer.status_code, answer.json()["fields"][0]["field"]) == (422, "body.api_key")
    assert (joining.status_code, joining.json()["code"]) == (401, "E-JOIN-UNKNOWN")
    assert ("sk-secret" in answer.text, "forged" in joining.json()["instance"]) == (False, False)


def test_output_patch_and_bundle_come_as_they_were_once_they_are_there(api: Api, run: PlayedRun) -> None:
    whole, patch = b"line\n" * 100_000, b"diff --git a/x b/x\n"
    session = api.client.call(sessions.LIST)[0]["id"]
    run.step(
        ToolResultStep(call_id="c", output="line…", output_bytes=len(whole), log_sha256=api.store_blob(run, whole))
    )
    assert api.client.log(run.order_id, 2) == whole
    for missing in (
        lambda: api.client.log(run.order_id, 1),
        lambda: api.client.patch(run.order_id),
        lambda: api.client.session_bundle(session),
    ):
        with pytest.raises(NotFound):
            missing()
    files = {"patch_sha256": api.store_blob(run, patch), "bundle_sha256": api.store_blob(run, b"a bundle")}
    branch = f"fleet/{run.order_id}"
    run.step(Delivered(branch=branch, head_commit="a" * 40, patch_bytes=len(patch), **files))
    run.ends()
    assert (api.client.patch(run.order_id), api.client.session_bundle(session)) == (patch, b"a bundle")
    assert api.client.call(orders.SHOW, order_id=run.order_id)["patch"] == patch.decode()
    head = api.client.call(sessions.HEAD, session_id=session)
    assert (head["branch"], head["commit"], head["pushed"], head["bundle"]) == (branch, "a" * 40, False, True)


def test_a_blob_that_is_not_what_its_address_says_or_is_too_large_is_refused(api: Api, run: PlayedRun) -> None:
    path, name = f"/api/v1/runs/{run.id}/blobs", sha256(b"a bundle").hexdigest()
    with api.http(run.drone.token) as http:
        stored = http.put(f"{path}/{name}", content=b"a bundle", params={"kind": "checkpoint"})
        read = http.get(f"{path}/{name}")
        granted = http.post(f"/api/v1/runs/{run.id}/push-grant").json()
        refused = [
            http.put(f"{path}/{name}", content=b"other"),
            http.put(f"{path}/{name}", content=b"a bundle", params={"kind": "diary"}),
        ]
    assert (stored.status_code, read.content, granted["granted"]) == (204, b"a bundle", True)
    assert [each.status_code for each in refused] == [422, 422]
    with closing(HTTPConnection("127.0.0.1", api.port, timeout=60)) as connection:
        connection.putrequest("PUT", f"{path}/{'a' * 64}")
        connection.putheader("Authorization", f"Bearer {run.drone.token}")
        connection.putheader("Content-Length", str(600 * 1024 * 1024))
        connection.endheaders()
        # Before it is sent.
        answer = connection.getresponse()
        assert (answer.status, json.load(answer)["code"]) == (413, "E-BLOB-SIZE")


def test_a_stale_draft_is_answered_with_the_text_that_is_stored(api: Api) -> None:
    path = "/api/v1/drafts/order:0123456789ab:message"
    with api.browser() as one, api.browser() as other:
        first = one.put(path, json={"text": "from the first window", "version": 0}).json()
        assert other.get(path).json() == first
        refused = [other.put(path, json={"text": "x", "version": 0}), other.delete(path, params={"version": 0})]
    assert [(each.status_code, each.json()["stored"]) for each in refused] == [(409, first)] * 2


def test_a_form_that_is_sent_twice_with_its_key_counts_once_and_takes_its_drafts_along(
    api: Api, run: PlayedRun
) -> None:
    """As a page does whose connection was cut before the answer."""
    task = api.client.call(tasks.ADD, TaskRequest(title="Round refunds", assignee="user"))["id"]
    texts: dict[str, tuple[str, dict[str, str]]] = {
        "say": ("text", {"order_id": run.order_id}),
        "submit": ("prompt", {"project": "demo"}),
        "comment_task": ("text", {"task_id": task}),
    }
    found = {}
    with api.browser() as browser:
        for name, (field, fields) in texts.items():
            browser.put(f"/api/v1/drafts/{name}", json={"text": "once", "version": 0}).raise_for_status()
            sent = {**fields, field: "once", "idempotency_key": f"key-{name}", "draft": f"{field} {name}"}
            statuses = [browser.post(f"/actions/{name}", data=sent).status_code for _ in range(2)]
            found[name] = (statuses, browser.get(f"/api/v1/drafts/{name}").json()["text"])
        hostile = {"draft": "text \0", "idempotency_key": "\0", "task_id": task, "text": "another"}
        assert browser.post("/actions/comment_task", data=hostile).status_code == 303
    assert found == {name: ([303] * 2, "") for name in texts}
    assert [each["text"] for each in api.client.call(orders.SHOW, order_id=run.order_id)["unheard"]] == ["once"]
    assert [each["prompt"] for each in api.client.call(orders.LIST)].count("once") == 1
    thread = [each["comment"]["text"] for each in api.client.show_task(task)["timeline"]]
    assert thread == ["once", "another"]


def test_an_organization_comes_in_as_a_stream_of_lines_of_bounded_length(api: Api) -> None:
    with api.http() as http:
        out = http.get("/api/v1/organizations/default/export")
        refused = http.post("/api/v1/organizations/import", content=iter([b"x" * 65536] * 64 + [b"\n"]))
    assert out.headers["content-type"].startswith("application/x-ndjson")
    assert (refused.status_code, refused.json()["code"]) == (422, "E-IMPORT-LINE")


NO_AGENTS: list[tuple[dict[str, Any], int, str]] = [
    ({"name": "l" * 10_000, "instructions": "x"}, 422, "E-NAME"),
    ({"name": "lead", "instructions": "x"}, 409, "E-AGENT-NAME"),
    ({"name": "backend"}, 422, "E-AGENT-INSTRUCTIONS"),
    ({"name": "backend", "instructions": "x", "boss": "nobody"}, 404, "E-AGENT-404"),
]
AGENTS = "/api/v1/organizations/default/agents"


def test_what_cannot_be_an_agent_is_refused_with_its_status(api: Api) -> None:
    """S-121."""
    api.client.call(agents.ADD, AgentRequest(name="lead", instructions="Lead."))
    with api.http() as http:
        refusals = [http.post(AGENTS, json=request) for request, *_ in NO_AGENTS]
    assert [(each.status_code, each.json()["code"]) for each in refusals] == [each[1:] for each in NO_AGENTS]
    assert max(len(each.text) for each in refusals) < 2000
    assert len(api.client.call(agents.LIST)) == 1


WRONG_VALUES: list[Any] = ["💥", "\ud800", "a\0b", -1, 10**400, 1e400, float("nan"), [], {"a": {}}]
BODIES = [b"", b"null", b"[]", b"0", b"{", b"[" * 50_000, b'{"a":' * 5_000, b"\xff"]
BODIES += [json.dumps({"prompt": "x", "project": "demo", "priority": value}).encode() for value in WRONG_VALUES[3:]]
BODIES += [json.dumps({"prompt": "x", "project": value}).encode() for value in WRONG_VALUES[1:]]


def test_no_body_and_no_query_is_an_error_of_ours(api: Api) -> None:
    """Those that the generated requests of the hostile tests do not have."""
    api.add_work()
    lists = ("/api/v1/orders", f"/api/v1/orders/{api.submit()['id']}/steps", "/")
    strange = cycle(("💥", "a" * 300, "' OR 1=1 --", "-1", "9" * 30))
    with api.http(Content_Type="application/json") as http:
        sent = {body[:80]: http.post("/api/v1/orders", content=body) for body in BODIES}
        # Each list and parameter with two of the texts.
        asked = {
            (path, key, text): http.get(path, params={key: text})
            for path, key in product(lists, ("org", "limit", "after"))
            for text in (next(strange), next(strange))
        }
        nul = [http.get(path).status_code for path in ("/api/v1/drones/a%00b", "/api/v1/orders?project=a%00b")]
    assert {body: each.text for body, each in sent.items() if each.status_code not in {400, 422}} == {}
    assert {place: each.text for place, each in asked.items() if each.status_code >= 500} == {}
    assert nul == [422, 422]
