"""What only the HTTP interface decides: files of orders, routes of drones, refusals, and requests that are none."""

from __future__ import annotations

import json
from hashlib import sha256
from http.client import HTTPConnection

import pytest

from control_plane.cli.inbox import inbox_text
from control_plane.declarations import inbox, orders, projects, server, sessions, tokens
from control_plane.declarations.inbox import InboxFilter
from control_plane.declarations.sessions import SessionEdit
from control_plane.declarations.tokens import JoinTokenRequest
from shared.errors import Forbidden, NotFound, Unauthenticated
from shared.events import ApprovalStep, Delivered, ToolCallStep, ToolResultStep
from tests.support.fleet import Api, PlayedRun


def test_what_was_sent_is_not_repeated_in_a_refusal(api: Api) -> None:
    with api.http() as http, api.http(None) as stranger:
        answer = http.post("/api/v1/providers", json={"name": "p", "model": "m", "api_key": ["sk-secret"]})
        body = {"secret": "forged", "name": "x", "machine_id": "m", "public_key": "A" * 43 + "="}
        joining = stranger.post("/api/v1/registrations", json=body)
    assert (answer.status_code, answer.json()["fields"][0]["field"]) == (422, "body.api_key")
    assert (joining.status_code, joining.json()["code"]) == (401, "E-JOIN-UNKNOWN")
    assert ("sk-secret" in answer.text, "forged" in joining.json()["instance"]) == (False, False)


def test_the_output_of_a_tool_and_the_patch_come_as_they_were_once_they_are_there(api: Api, run: PlayedRun) -> None:
    whole, patch = b"line\n" * 100_000, b"diff --git a/x b/x\n"
    run.step(
        ToolResultStep(call_id="c", output="line…", output_bytes=len(whole), log_sha256=api.store_blob(run, whole))
    )
    assert api.client.log(run.order_id, 2) == whole
    for missing in (lambda: api.client.log(run.order_id, 1), lambda: api.client.patch(run.order_id)):
        with pytest.raises(NotFound):
            missing()
    name = api.store_blob(run, patch)
    run.step(Delivered(branch=f"fleet/{run.order_id}", patch_sha256=name, patch_bytes=len(patch)))
    run.ends()
    assert api.client.patch(run.order_id) == patch
    assert api.client.call(orders.SHOW, order_id=run.order_id)["patch"] == patch.decode()


def test_a_blob_comes_back_as_it_went_to_its_drone_alone_and_one_with_another_digest_is_not_kept(
    api: Api, run: PlayedRun
) -> None:
    content, wrong = bytes(range(256)) * 20_000, sha256(b"right").hexdigest()
    path = f"/api/v1/runs/{run.id}/blobs/{api.store_blob(run, content)}"
    with api.http(run.drone.token) as http, api.http(api.add_drone("stranger").token) as stranger:
        assert http.get(path).content == content
        assert http.put(path, content=content).status_code == 204
        refused = http.put(f"/api/v1/runs/{run.id}/blobs/{wrong}", content=b"wrong")
        answers = [
            http.get(f"/api/v1/runs/{run.id}/blobs/{wrong}"),
            stranger.get(path),
            stranger.put(path, content=content),
            stranger.post(f"/api/v1/runs/{run.id}/push-grant"),
        ]
    assert (refused.status_code, refused.json()["code"]) == (422, "E-BLOB-DIGEST")
    assert [answer.status_code for answer in answers] == [404] * 4
    assert len([path for path in api.core.blobs.root.rglob("*") if path.is_file()]) == 1


def test_a_blob_that_is_too_large_is_refused_before_it_is_sent(api: Api, run: PlayedRun) -> None:
    connection = HTTPConnection("127.0.0.1", api.port, timeout=60)
    connection.putrequest("PUT", f"/api/v1/runs/{run.id}/blobs/{'a' * 64}")
    connection.putheader("Authorization", f"Bearer {run.drone.token}")
    connection.putheader("Content-Length", str(600 * 1024 * 1024))
    connection.endheaders()
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


def test_refusals_arrive_as_the_errors_they_were_raised_as(api: Api) -> None:
    api.client.close()
    api.client._token = api.token_for("viewer")
    with pytest.raises(Forbidden) as refused:
        api.client.call(tokens.CREATE_JOIN, JoinTokenRequest())
    assert (refused.value.code, refused.value.exit_code) == ("E-ROLE", 6)
    api.client.close()
    api.client._token = None
    with pytest.raises(Unauthenticated):
        api.client.call(server.WHOAMI)


def test_an_address_or_method_that_is_not_there_is_a_problem_too(api: Api) -> None:
    with api.http() as http:
        answers = [http.request(*each) for each in (("GET", "/api/v1/nothing"), ("DELETE", "/api/v1/orders"))]
    assert [answer.status_code for answer in answers] == [404, 405]
    assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}
    fields = {"type", "title", "status", "detail", "instance", "code", "why", "next", "help"}
    assert all(set(answer.json()) >= fields for answer in answers)


def test_a_body_that_is_no_order_is_refused(api: Api) -> None:
    bodies = [b"{ no json", b"[]", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"prompt": "\\ud800"}']
    with api.http() as http:
        json_type = {"Content-Type": "application/json"}
        answers = {body[:20]: http.post("/api/v1/orders", content=body, headers=json_type) for body in bodies}
    assert {body: each.text for body, each in answers.items() if each.status_code not in {400, 422}} == {}
    assert all(each.json()["detail"] for each in answers.values())


PATH = "/api/v1/drafts/order:0123456789ab:message"


def test_a_stale_write_is_answered_with_the_text_that_is_stored(api: Api) -> None:
    with api.browser() as one, api.browser() as other:
        first = one.put(PATH, json={"text": "from the first window", "version": 0}).json()
        assert other.get(PATH).json() == first
        refused = other.put(PATH, json={"text": "from the second", "version": 0})
    assert (refused.status_code, refused.json()["code"]) == (409, "E-DRAFT-STALE")
    assert refused.json()["stored"] == first


def test_a_draft_is_listed_without_its_text_and_deleted_once(api: Api) -> None:
    with api.browser() as page:
        saved = page.put(PATH, json={"text": "typed"}).json()
        assert [set(each) for each in page.get("/api/v1/drafts").json()] == [{"subject", "version", "updated_at"}]
        assert page.delete(PATH, params={"version": saved["version"] - 1}).status_code == 409
        assert page.delete(PATH, params={"version": saved["version"]}).json()["text"] == "typed"
        assert page.get(PATH).json()["version"] == 0


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


@pytest.fixture
def asking(api: Api) -> PlayedRun:
    """A run whose agent asks."""
    api.add_work()
    run = api.add_drone().take(api.submit("Choose a database\n\nfor the shop"))
    run.step(ToolCallStep(call_id="c1", tool="ask", arguments={"question": "Which?"}))
    run.step(ApprovalStep(about="question", call_id="c1", tool="ask", why="Which?\nNow.", choices=("a", "b")))
    return run


def test_people_read_the_question_its_choices_and_the_command_that_answers(api: Api, asking: PlayedRun) -> None:
    text = inbox_text(api.client.call(inbox.LIST, InboxFilter()))
    assert f"question  {asking.order_id}  Choose a database" in text
    assert "  Which?\n  Now.\n  1  a\n  2  b\n" in text
    assert f"  next  fleet answer {asking.order_id}\n" in text
    assert inbox_text([]) == "nothing waits for you\n"


def test_the_head_of_a_session_and_its_bundle_come_as_they_were_stored(api: Api, run: PlayedRun) -> None:
    session = api.client.call(sessions.LIST)[0]["id"]
    with pytest.raises(NotFound):
        api.client.session_bundle(session)
    name = api.store_blob(run, b"a bundle")
    branch = f"fleet/{run.order_id}"
    run.step(Delivered(branch=branch, head_commit="a" * 40, bundle_sha256=name))
    run.ends()
    head = api.client.call(sessions.HEAD, session_id=session)
    assert (head["branch"], head["commit"], head["pushed"], head["bundle"]) == (branch, "a" * 40, False, True)
    assert api.client.session_bundle(session) == b"a bundle"


def test_the_pages_show_every_session_and_its_tree(api: Api, run: PlayedRun) -> None:
    session = api.client.call(sessions.LIST)[0]["id"]
    api.client.call(sessions.EDIT, SessionEdit(name="<script>alert(1)</script>"), session_id=session)
    with api.http() as http:
        listed, shown = http.get("/sessions"), http.get(f"/sessions/{session}")
        unknown = http.get("/sessions/0123456789ab")
    assert (listed.status_code, shown.status_code, unknown.status_code) == (200, 200, 404)
    assert (f"/sessions/{session}" in listed.text, f"/orders/{run.order_id}" in shown.text) == (True, True)
    assert ("&lt;script&gt;" in shown.text, "<script>alert" in listed.text + shown.text) == (True, False)
