"""Each resource over real HTTP, through the client that the command line uses."""

from __future__ import annotations

import json
from datetime import datetime
from hashlib import sha256
from http.client import HTTPConnection

import pytest

from control_plane.declarations import drones, orders, projects, providers, server, tokens
from control_plane.declarations.orders import CancelRequest, OrderFilter, StepFilter
from control_plane.declarations.projects import ProjectEdit, ProjectRequest
from control_plane.declarations.providers import ProviderEdit, ProviderRequest
from control_plane.declarations.tokens import ApiTokenRequest, JoinTokenRequest
from shared.errors import Conflict, Forbidden, Invalid, NotFound, Unauthenticated
from shared.events import Delivered, ToolResultStep
from tests.support.fleet import Api, PlayedRun


@pytest.fixture
def work(api: Api) -> Api:
    """With a provider and a project."""
    api.add_work()
    return api


@pytest.fixture
def run(work: Api) -> PlayedRun:
    """A run of an order on a drone that is online."""
    return work.add_drone().take(work.submit())


# --- orders --------------------------------------------------------------------------------


def test_a_submitted_order_comes_back_as_its_whole_document(work: Api) -> None:
    order = work.submit("Fix it", priority=3, max_iterations=7)
    assert (order["status"], order["project"], order["prompt"], order["priority"]) == ("queued", "demo", "Fix it", 3)
    assert order["reason"]
    assert (order["steps"], order["runs"], order["patch"], order["branch"]) == ([], [], None, None)
    assert datetime.fromisoformat(order["created_at"]).utcoffset().total_seconds() == 0  # type: ignore[union-attr]
    assert work.client.call(orders.SHOW, order_id=order["id"]) == order


def test_orders_are_listed_newest_first_and_filtered(work: Api) -> None:
    first, second = work.submit("one"), work.submit("two")
    assert [each["id"] for each in work.client.call(orders.LIST)] == [second["id"], first["id"]]
    assert [each["id"] for each in work.client.call(orders.LIST, OrderFilter(limit=1))] == [second["id"]]
    assert work.client.call(orders.LIST, OrderFilter(status="running")) == []
    assert "steps" not in work.client.call(orders.LIST)[0]
    with pytest.raises(NotFound):
        work.client.call(orders.LIST, OrderFilter(project="unknown"))


def test_one_idempotency_key_is_one_order(work: Api) -> None:
    request = {"prompt": "once", "project": "demo"}
    same = [work.client.submit(request, idempotency_key="key")["id"] for _ in range(2)]
    assert same[0] == same[1]
    with pytest.raises(Conflict, match="key"):
        work.client.submit({**request, "prompt": "other"}, idempotency_key="key")


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"project": "nope"}, NotFound, "nope"),
        ({"drone": "nope"}, NotFound, "nope"),
        ({"provider": "nope"}, NotFound, "nope"),
        ({"prompt": "  "}, Invalid, "empty"),
        ({"priority": 1000}, Invalid, "priority: must be at most 100"),
        ({"mode": "dance"}, NotFound, "mode 'dance' not found"),
        ({"promt": "typo"}, Invalid, "promt: unknown field"),
        ({"prompt": None}, Invalid, "prompt: must be text"),
    ],
)
def test_a_wrong_order_is_refused_and_the_field_named(
    work: Api, change: dict[str, object], error: type, said: str
) -> None:
    with pytest.raises(error, match=said):
        work.submit(**change)
    assert work.client.call(orders.LIST) == []


def test_what_was_sent_is_not_repeated_in_a_refusal(work: Api) -> None:
    with work.http() as http:
        answer = http.post("/api/v1/providers", json={"name": "p", "model": "m", "api_key": ["sk-secret"]})
    assert answer.status_code == 422
    assert answer.json()["fields"][0]["field"] == "body.api_key"
    assert "sk-secret" not in answer.text


def test_a_queued_order_is_canceled_at_once(work: Api) -> None:
    order = work.submit()
    canceled = work.client.call(orders.CANCEL, CancelRequest(reason="not needed"), order_id=order["id"])
    assert canceled["status"] == "canceled"
    with work.http(work.token_for("viewer")) as viewer:
        assert viewer.post(f"/api/v1/orders/{order['id']}/cancel").status_code == 403


def test_an_order_of_another_organization_does_not_exist(work: Api) -> None:
    with pytest.raises(NotFound, match="order '0000"):
        work.client.call(orders.SHOW, order_id="0" * 12)


def test_steps_are_read_behind_a_number(work: Api, run: PlayedRun) -> None:
    run.says("hello")
    steps = work.client.call(orders.STEPS, StepFilter(after=1), order_id=run.order_id)
    assert [(step["seq"], step["kind"], step["text"], step["run"]) for step in steps] == [
        (2, "assistant", "hello", run.id)
    ]


def test_the_full_output_of_a_tool_comes_as_it_was(work: Api, run: PlayedRun) -> None:
    whole = b"line\n" * 100_000
    name = work.store_blob(run, whole)
    run.step(ToolResultStep(call_id="c", output="line…", output_bytes=len(whole), log_sha256=name))
    assert work.client.log(run.order_id, 2) == whole
    with pytest.raises(NotFound):
        work.client.log(run.order_id, 1)


def test_the_patch_is_a_404_until_there_is_one(work: Api, run: PlayedRun) -> None:
    with pytest.raises(NotFound):
        work.client.patch(run.order_id)
    patch = b"diff --git a/x b/x\n"
    name = work.store_blob(run, patch)
    run.step(Delivered(branch=f"fleet/{run.order_id}", patch_sha256=name, patch_bytes=len(patch)))
    run.step(Delivered(patch_sha256=name, patch_bytes=len(patch)))
    run.ends()
    assert work.client.patch(run.order_id) == patch
    assert work.client.call(orders.SHOW, order_id=run.order_id)["patch"] == patch.decode()


# --- drones ----------------------------------------------------------------------------------


def test_a_drone_that_registered_is_shown_and_can_be_drained_and_removed(api: Api) -> None:
    api.add_drone("mila", labels={"gpu": "yes"}, concurrency=2)
    shown = api.client.call(drones.LIST)[0]
    assert (shown["name"], shown["status"], shown["labels"], shown["concurrency"]) == (
        "mila",
        "online",
        {"gpu": "yes"},
        2,
    )
    assert api.client.call(drones.DRAIN, name="mila")["draining"] is True
    assert api.client.call(drones.RESUME, name="mila")["draining"] is False
    assert api.client.call(drones.REMOVE, name="mila")["name"] == "mila"
    with pytest.raises(NotFound, match="drone 'mila' not found"):
        api.client.call(drones.SHOW, name="mila")


def test_a_drones_token_dies_when_it_leaves(api: Api) -> None:
    drone = api.add_drone()
    with api.http(drone.token) as http:
        assert http.delete("/api/v1/registrations/self").status_code == 204
        assert http.delete("/api/v1/registrations/self").status_code == 401
    assert api.client.call(drones.LIST) == []


def test_a_forged_join_token_is_refused(api: Api) -> None:
    with api.http(None) as http:
        body = {"secret": "forged", "name": "x", "machine_id": "m", "public_key": "A" * 43 + "="}
        answer = http.post("/api/v1/registrations", json=body)
    assert (answer.status_code, answer.json()["code"]) == (401, "E-JOIN-UNKNOWN")
    assert "forged" not in answer.json()["instance"]


# --- blobs and pushing ------------------------------------------------------------------------------


def test_a_blob_comes_back_as_it_went(work: Api, run: PlayedRun) -> None:
    content = bytes(range(256)) * 20_000
    name = work.store_blob(run, content)
    with work.http(run.drone.token) as http:
        assert http.get(f"/api/v1/runs/{run.id}/blobs/{name}").content == content
        assert http.put(f"/api/v1/runs/{run.id}/blobs/{name}", content=content).status_code == 204


def test_content_that_is_not_what_its_name_says_is_refused_and_not_kept(work: Api, run: PlayedRun) -> None:
    name = sha256(b"right").hexdigest()
    with work.http(run.drone.token) as http:
        answer = http.put(f"/api/v1/runs/{run.id}/blobs/{name}", content=b"wrong")
        missing = http.get(f"/api/v1/runs/{run.id}/blobs/{name}")
    assert (answer.status_code, answer.json()["code"]) == (422, "E-BLOB-DIGEST")
    assert missing.status_code == 404
    assert [path for path in work.core.blobs.root.rglob("*") if path.is_file()] == []


def test_a_blob_that_is_too_large_is_refused_before_it_is_sent(work: Api, run: PlayedRun) -> None:
    connection = HTTPConnection("127.0.0.1", work.port, timeout=60)
    connection.putrequest("PUT", f"/api/v1/runs/{run.id}/blobs/{'a' * 64}")
    connection.putheader("Authorization", f"Bearer {run.drone.token}")
    connection.putheader("Content-Length", str(600 * 1024 * 1024))
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, json.load(answer)["code"]) == (413, "E-BLOB-SIZE")
    connection.close()


def test_another_drone_reaches_neither_the_blobs_nor_the_branch(work: Api, run: PlayedRun) -> None:
    name = work.store_blob(run, b"mine")
    stranger = work.add_drone("stranger")
    with work.http(stranger.token) as http:
        answers = [
            http.get(f"/api/v1/runs/{run.id}/blobs/{name}"),
            http.put(f"/api/v1/runs/{run.id}/blobs/{name}", content=b"mine"),
            http.post(f"/api/v1/runs/{run.id}/push-grant"),
        ]
    assert [answer.status_code for answer in answers] == [404, 404, 404]


def test_only_the_current_run_may_push(work: Api, run: PlayedRun) -> None:
    newer = run.drone.take({"id": run.order_id})
    with work.http(run.drone.token) as http:
        late = http.post(f"/api/v1/runs/{run.id}/push-grant")
        current = http.post(f"/api/v1/runs/{newer.id}/push-grant")
    assert (late.status_code, late.json()["code"]) == (409, "E-PUSH-STALE")
    assert current.json() == {"granted": True, "expires_in": 60, "known": None}


# --- tokens, providers, projects ------------------------------------------------------------------------


def test_a_token_is_shown_once_and_dies_when_it_is_revoked(api: Api) -> None:
    made = api.client.call(tokens.CREATE_API, ApiTokenRequest(role="viewer", name="eyes"))
    assert made["token"].startswith("fa_")
    assert all(each["token"] is None for each in api.client.call(tokens.LIST_API))
    with api.http(made["token"]) as http:
        assert http.get("/api/v1/whoami").json()["role"] == "viewer"
        api.client.call(tokens.REVOKE_API, token_id=made["id"])
        assert http.get("/api/v1/whoami").json()["code"] == "E-TOKEN-REVOKED"


def test_join_tokens_are_counted_and_revoked(api: Api) -> None:
    made = api.client.call(tokens.CREATE_JOIN, JoinTokenRequest(uses=2, labels={"room": "4"}))
    assert made["token"].startswith("fj_")
    assert api.client.call(tokens.LIST_JOIN)[0]["token"] is None
    assert api.client.call(tokens.REVOKE_JOIN, token_id=made["id"])["revoked_at"]


def test_a_providers_key_goes_in_and_never_comes_out(api: Api) -> None:
    api.client.call(providers.ADD, ProviderRequest(name="main", model="openai/x", api_key="sk-very-secret"))
    assert api.client.call(providers.SHOW, name="main")["key"] == "sealed"
    assert api.client.call(providers.EDIT, ProviderEdit(model="openai/y"), name="main")["model"] == "openai/y"
    assert "sk-very-secret" not in str(api.client.call(providers.LIST))
    api.client.call(providers.REMOVE, name="main")
    assert api.client.call(providers.LIST) == []


def test_a_projects_password_is_never_shown_again(api: Api) -> None:
    api.client.call(projects.ADD, ProjectRequest(slug="x", git_url="https://me:hunter2@git.example/x.git"))
    assert "hunter2" not in str(api.client.call(projects.SHOW, slug="x"))
    assert api.client.call(projects.EDIT, ProjectEdit(branch="main"), slug="x")["branch"] == "main"
    with pytest.raises(Conflict):
        api.client.call(projects.ADD, ProjectRequest(slug="x", git_url="https://git.example/y.git"))
    api.client.call(projects.REMOVE, slug="x")
    with pytest.raises(NotFound):
        api.client.call(projects.SHOW, slug="x")


# --- the server, and what is no request at all --------------------------------------------------------------


def test_the_server_examines_itself(api: Api) -> None:
    checks = {check["code"]: check for check in api.client.call(server.DOCTOR)}
    assert len(checks) >= 3
    assert {check["state"] for check in checks.values()} <= {"OK", "WARN", "FAIL"}
    assert all({"code", "state", "what", "found", "fix"} <= set(check) for check in checks.values())


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


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/api/v1/nothing", 404), ("DELETE", "/api/v1/orders", 405), ("POST", "/api/v1/whoami", 405)],
)
def test_an_address_or_method_that_is_not_there_is_a_problem_too(api: Api, method: str, path: str, status: int) -> None:
    with api.http() as http:
        answer = http.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert set(answer.json()) >= {"type", "title", "status", "detail", "instance", "code", "why", "next", "help"}


@pytest.mark.parametrize(
    "body", [b"{ no json", b"[]", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"prompt": "\\ud800"}']
)
def test_a_body_that_is_no_order_is_refused_in_one_sentence(work: Api, body: bytes) -> None:
    with work.http() as http:
        answer = http.post("/api/v1/orders", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}
    assert answer.json()["detail"]
