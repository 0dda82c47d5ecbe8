"""Who gets in: tokens, sessions, roles, organizations, other sites, and how much may be sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from control_plane.declarations import tokens
from tests.support.fleet import Api


def test_a_stranger_is_told_nothing_but_what_to_do_next(api: Api) -> None:
    with api.http(None) as stranger, api.http("fa_wrong") as wrong:
        # An address that does not exist, and a body that is not even read.
        answers = [stranger.get("/api/v1/nonsense"), stranger.put("/nonsense")]
        answers.append(stranger.post("/api/v1/orders", content=b"{ no json"))
        answer = wrong.get("/api/v1/drones")
    assert [each.status_code for each in (*answers, answer)] == [401] * 4
    assert (answer.json()["code"], "fleet api-token add" in answer.json()["next"]) == ("E-TOKEN-UNKNOWN", True)
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_health_says_that_database_and_broker_answer_and_is_degraded_without_the_broker(api: Api) -> None:
    with api.http(None) as stranger:
        health = stranger.get("/api/v1/health").json()
        api.broker.stop()
        answer = stranger.get("/api/v1/health")
    assert (health["status"], health["database"], health["broker"]) == ("ok", True, True)
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")


def test_a_drone_cannot_act_as_a_person_nor_a_person_as_a_drone(api: Api) -> None:
    drone = api.add_drone()
    with api.http(drone.token) as as_drone, api.http() as as_person:
        refused = as_drone.get("/api/v1/orders"), as_person.post("/api/v1/runs/000000000000/push-grant")
    assert [answer.json()["code"] for answer in refused] == ["E-TOKEN-KIND", "E-TOKEN-KIND"]


def test_a_body_over_two_megabytes_is_refused_also_if_it_hides_its_length(api: Api) -> None:
    bodies: list[bytes | Iterator[bytes]] = [b"x" * 2_200_000, (b"x" * 100_000 for _ in range(30))]
    with api.http() as http:
        answers = [http.post("/api/v1/orders", content=each) for each in bodies]
    assert [(each.status_code, each.json()["code"]) for each in answers] == [(413, "E-BODY-SIZE")] * 2


def test_a_name_with_a_nul_is_refused_and_breaks_nothing(api: Api) -> None:
    with api.http() as http:
        assert http.get("/api/v1/drones/a%00b").status_code == 422
        assert http.get("/api/v1/orders?project=a%00b").status_code == 422


def test_no_header_but_a_bearer_token_spares_a_cookie_the_check_of_the_site(api: Api) -> None:
    headers = [{"Authorization": each} for each in ("Basic eDp5", "Bearer", "Digest username=x", "fa_x", "")]
    for authorization in ({}, *headers):
        with api.browser() as browser:
            for site in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
                answer = browser.post("/logout", headers={**authorization, **site})
                assert (answer.status_code, answer.json()["code"]) == (403, "E-OTHER-SITE"), authorization
            # A proxy that asks for a password has the browser send it with every request.
            own = browser.post("/logout", headers={**authorization, "Sec-Fetch-Site": "same-origin", "Origin": api.url})
            assert (own.status_code, browser.get("/api/v1/whoami").status_code) == (303, 401)


def test_a_wrong_bearer_token_does_not_fall_back_to_the_cookie(api: Api) -> None:
    with api.browser() as browser:
        answer = browser.get("/api/v1/whoami", headers={"Authorization": "Bearer fa_wrong"})
    assert (answer.status_code, answer.json()["code"]) == (401, "E-TOKEN-UNKNOWN")


def test_a_token_in_the_header_needs_no_origin(api: Api) -> None:
    with api.http() as http:
        answer = http.post("/api/v1/login-links", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 201


def test_every_answer_forbids_foreign_scripts_and_frames(api: Api) -> None:
    with api.http(None) as stranger:
        answers = [stranger.get(path) for path in ("/login", "/api/v1/drones", "/static/js/app.js", "/static/none")]
    policies = [answer.headers["content-security-policy"] for answer in answers]
    assert all("default-src 'none'" in policy and "unsafe" not in policy for policy in policies)
    assert all(answer.headers["x-content-type-options"] == "nosniff" for answer in answers)


def test_an_unexpected_error_shows_a_number_and_not_its_text(api: Api) -> None:
    # A row that nothing of ours writes, so that nothing of ours expects it.
    with api.core.database.write() as db:
        db.connection().exec_driver_sql("UPDATE organizations SET created_at = 'no time at all'")
    with api.http() as http:
        answer = http.get("/api/v1/whoami")
    number = re.search(r"[0-9a-f]{12}", answer.json()["detail"])
    assert (answer.status_code, answer.json()["code"]) == (500, "E-UNEXPECTED")
    assert number is not None
    assert number.group() in api.log.read_text()
    assert "no time at all" not in answer.text


def test_pages_lead_a_stranger_to_the_log_in_and_back(api: Api) -> None:
    with api.http(None, Accept="text/html") as browser:
        answer = browser.get("/orders/abc?all=1")
        back = browser.post("/login", data={"token": api.token, "next": "/orders/abc?all=1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/orders/abc%3Fall%3D1")
    assert back.headers["location"] == "/orders/abc?all=1"


def test_a_pasted_api_token_starts_a_session(api: Api) -> None:
    with api.browser() as browser:
        cookie = next(iter(browser.cookies.jar))
        assert browser.get("/").status_code == 200
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite") == "lax"
    assert not cookie.secure


def test_looking_at_a_one_use_address_does_not_use_it(api: Api) -> None:
    link = api.client.call(tokens.CREATE_LOGIN_LINK)
    with api.http(None) as preview, api.http(None) as browser, api.http(None) as thief:
        assert link["secret"] in preview.get(link["url"]).text
        assert browser.post("/login", data={"link": link["secret"]}).status_code == 303
        assert browser.get("/").status_code == 200
        assert thief.post("/login", data={"link": link["secret"]}).status_code == 401


def test_the_openapi_document_names_every_error_as_a_problem(api: Api) -> None:
    with api.http(None) as stranger:
        document = stranger.get("/openapi.json").json()
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    failures = [
        answer["content"]
        for operation in operations
        for status, answer in operation["responses"].items()
        if status in {"401", "403", "404", "409", "413", "422"}
    ]
    assert all(list(content) == ["application/problem+json"] for content in failures)
    assert all(operation["summary"] and operation["tags"] for operation in operations)
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_every_route_that_takes_an_organization_documents_and_answers_that_there_is_none(api: Api) -> None:
    with api.http() as http:
        paths = http.get("/openapi.json").json()["paths"]
        taking = {
            (method, path): operation
            for path, item in paths.items()
            for method, operation in item.items()
            if {each["name"] for each in operation.get("parameters", ())} & {"org", "organization"}
        }
        lists = [path for method, path in taking if method == "get" and "{" not in path]
        answers = {path: http.get(path, params={"org": "nowhere"}).json()["code"] for path in lists}
    assert [route for route, operation in taking.items() if "404" not in operation["responses"]] == []
    assert answers == dict.fromkeys(lists, "E-ORGANIZATION-404")
    assert (len(taking) > 70, len(lists) > 14) == (True, True)


def test_the_pages_load_nothing_from_other_servers_and_no_template_has_a_script_or_a_style_of_its_own(api: Api) -> None:
    with api.browser() as browser:
        texts = [browser.get(path).text for path in ("/", "/login", "/static/js/app.js", "/static/css/base.css")]
    assert not [text for text in texts if re.search(r"(?:src|href|url|import)\s*[=(]\s*[\"']?(?:https?:)?//", text)]
    templates = Path(__file__).parents[3] / "control_plane" / "web" / "templates"
    templated = "".join(path.read_text() for path in templates.glob("*.html"))
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src=)|\| *safe", templated)
