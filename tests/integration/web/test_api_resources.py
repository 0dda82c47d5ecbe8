"""What only the HTTP interface decides: files of orders, routes of drones, drafts, and requests that are none."""

from __future__ import annotations

import json
from hashlib import sha256
from http.client import HTTPConnection
from itertools import product
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.contract.declarations import agents, orders, sessions, tasks
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.db.teams import Comment
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


def test_a_blob_comes_back_to_its_drone_alone_a_checkpoint_lies_sealed_and_a_wrong_or_large_one_is_refused(
    api: Api, run: PlayedRun
) -> None:
    content, wrong = b"the very words" * 20_000, sha256(b"right").hexdigest()
    path = f"/api/v1/runs/{run.id}/blobs/{sha256(content).hexdigest()}"
    with api.http(run.drone.token) as http, api.http(api.add_drone("stranger").token) as stranger:
        for _ in range(2):
            assert http.put(path, params={"kind": "checkpoint"}, content=content).status_code == 204
        assert http.get(path).content == content
        refused = [
            http.put(f"/api/v1/runs/{run.id}/blobs/{wrong}", content=b"wrong"),
            http.put(path, params={"kind": "checkpoint"}, content=b"other"),
            http.put(path, params={"kind": "diary"}, content=content),
        ]
        missing = [
            http.get(f"/api/v1/runs/{run.id}/blobs/{wrong}"),
            stranger.get(path),
            stranger.put(path, content=content),
            stranger.post(f"/api/v1/runs/{run.id}/push-grant"),
        ]
    assert [answer.status_code for answer in (*refused, *missing)] == [422] * 3 + [404] * 4
    assert refused[0].json()["code"] == "E-BLOB-DIGEST"
    (stored,) = [file.read_bytes() for file in api.core.blobs.root.rglob("*") if file.is_file()]
    assert b"the very words" not in stored

    connection = HTTPConnection("127.0.0.1", api.port, timeout=60)
    connection.putrequest("PUT", f"/api/v1/runs/{run.id}/blobs/{'a' * 64}")
    connection.putheader("Authorization", f"Bearer {run.drone.token}")
    connection.putheader("Content-Length", str(600 * 1024 * 1024))
    connection.endheaders()
    # Before it is sent.
    answer = connection.getresponse()
    assert (answer.status, json.load(answer)["code"]) == (413, "E-BLOB-SIZE")
    connection.close()


def test_only_the_current_run_may_push_and_a_drone_that_left_has_no_token(api: Api, run: PlayedRun) -> None:
    newer = run.drone.take({"id": run.order_id})
    with api.http(run.drone.token) as http:
        late = http.post(f"/api/v1/runs/{run.id}/push-grant")
        current = http.post(f"/api/v1/runs/{newer.id}/push-grant")
        left = [http.delete("/api/v1/registrations/self").status_code for _ in range(2)]
    assert (late.status_code, late.json()["code"]) == (409, "E-PUSH-STALE")
    assert current.json() == {"granted": True, "expires_in": 60, "known": None}
    assert left == [204, 401]


PATH = "/api/v1/drafts/order:0123456789ab:message"


def test_a_stale_draft_is_answered_with_the_text_that_is_stored_and_one_is_deleted_once(api: Api) -> None:
    with api.browser() as one, api.browser() as other:
        first = one.put(PATH, json={"text": "from the first window", "version": 0}).json()
        assert other.get(PATH).json() == first
        refused = other.put(PATH, json={"text": "from the second", "version": 0})
        assert [set(each) for each in one.get("/api/v1/drafts").json()] == [{"subject", "version", "updated_at"}]
        assert one.delete(PATH, params={"version": first["version"] - 1}).status_code == 409
        assert one.delete(PATH, params={"version": first["version"]}).json()["text"] == first["text"]
        assert one.get(PATH).json()["version"] == 0
    assert (refused.status_code, refused.json()["code"]) == (409, "E-DRAFT-STALE")
    assert refused.json()["stored"] == first


def test_a_form_that_is_sent_twice_with_its_key_counts_once_and_takes_its_drafts_along(
    api: Api, run: PlayedRun
) -> None:
    """Whatever the operation: as a page does whose connection was cut before the answer."""
    order, session = run.order_id, api.client.call(sessions.LIST)[0]["id"]
    task = api.client.call(tasks.ADD, TaskRequest(title="Round refunds", assignee="user"))["id"]
    texts: dict[str, tuple[str, dict[str, str]]] = {
        "say": ("text", {"order_id": order, "next": f"/sessions/{session}"}),
        "submit": ("prompt", {"project": "demo"}),
        "comment_task": ("text", {"task_id": task}),
        "create_task": ("description", {"title": "Another one", "assignee": "user"}),
        "add_memory": ("text", {"slug": "demo"}),
    }
    found = {}
    with api.browser() as browser:
        for name, (field, fields) in texts.items():
            browser.put(f"/api/v1/drafts/{name}", json={"text": name, "version": 0}).raise_for_status()
            sent = {**fields, field: f"{name}: once", "idempotency_key": f"key-{name}", "draft": f"{field} {name}"}
            statuses = [browser.post(f"/actions/{name}", data=sent).status_code for _ in range(3)]
            found[name] = (statuses, browser.get(f"/api/v1/drafts/{name}").json()["text"])
        hostile = {"draft": "text \0", "idempotency_key": "\0", "task_id": task, "text": "another"}
        found["hostile"] = ([browser.post("/actions/comment_task", data=hostile).status_code], "")
    assert found == {**{name: ([303] * 3, "") for name in texts}, "hostile": ([303], "")}
    assert [each["text"] for each in api.client.call(orders.SHOW, order_id=order)["unheard"]] == ["say: once"]
    assert [each["prompt"] for each in api.client.call(orders.LIST)].count("submit: once") == 1
    with api.core.database.read() as db:
        thread = list(db.scalars(select(Comment.text).where(Comment.author == "user").order_by(Comment.id)))
    assert thread == ["comment_task: once", "another"]
    assert len(api.client.call(tasks.LIST)) == 2


def test_an_organization_goes_out_and_in_as_a_stream_of_lines_of_any_length(api: Api) -> None:
    api.add_work()
    with api.http() as http:
        out = http.get("/api/v1/organizations/default/export")
        made = http.post("/api/v1/organizations/import", params={"name": "moved"}, content=iter([out.content]))
        refused = http.post("/api/v1/organizations/import", content=iter([b"x" * 65536] * 64 + [b"\n"]))
    assert out.headers["content-type"].startswith("application/x-ndjson")
    assert json.loads(out.text.splitlines()[-1])["kind"] == "end"
    assert (made.status_code, made.json()["name"]) == (201, "moved")
    assert (refused.status_code, refused.json()["code"]) == (422, "E-IMPORT-LINE")


NO_AGENTS: list[tuple[dict[str, Any], int, str]] = [
    ({"name": "user", "instructions": "x"}, 422, "E-NAME"),
    ({"name": "l" * 10_000, "instructions": "x"}, 422, "E-NAME"),
    ({"name": "lead", "instructions": "x"}, 409, "E-AGENT-NAME"),
    ({"name": "backend"}, 422, "E-AGENT-INSTRUCTIONS"),
    ({"name": "backend", "instructions": "x", "instructions_path": "b.md"}, 422, "E-AGENT-INSTRUCTIONS"),
    ({"name": "backend", "instructions": "x" * 100_001}, 422, "E-AGENT-INSTRUCTIONS"),
    ({"name": "backend", "instructions_path": "../b.md"}, 422, "E-AGENT-INSTRUCTIONS"),
    ({"name": "backend", "instructions": "x", "boss": "nobody"}, 404, "E-AGENT-404"),
    ({"name": "backend", "instructions": "x", "boss": "backend"}, 422, "E-AGENT-BOSS"),
    ({"name": "backend", "instructions": "x", "max_iterations": -1}, 422, "E-REQUEST"),
    ({"name": "backend", "instructions": "x", "no_such_field": 1}, 422, "E-REQUEST"),
]
AGENTS = "/api/v1/organizations/default/agents"


def test_what_cannot_be_an_agent_is_refused_with_its_status(api: Api) -> None:
    """S-121."""
    api.add_work()
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
    order, strange = api.submit()["id"], ("💥", "a" * 300, "' OR 1=1 --", "-1", "9" * 30, "%")
    with api.http(Content_Type="application/json") as http:
        sent = {body[:80]: http.post("/api/v1/orders", content=body) for body in BODIES}
        asked = {
            (path, key, text): http.get(path, params={key: text})
            for path, key in product(
                ("/api/v1/orders", f"/api/v1/orders/{order}/steps", "/"), ("org", "limit", "after")
            )
            for text in strange
        }
        nul = [http.get(path).status_code for path in ("/api/v1/drones/a%00b", "/api/v1/orders?project=a%00b")]
    assert {body: each.text for body, each in sent.items() if each.status_code not in {400, 422}} == {}
    assert {place: each.text for place, each in asked.items() if each.status_code >= 500} == {}
    assert nul == [422, 422]
