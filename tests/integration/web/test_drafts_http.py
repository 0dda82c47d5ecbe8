"""Drafts over HTTP, as a page saves them: two windows of one user, and the 409 that carries the stored text."""

from __future__ import annotations

from tests.support.fleet import Api

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


def test_what_is_no_subject_is_refused(api: Api) -> None:
    with api.http() as script:
        assert script.put("/api/v1/drafts/a b", json={"text": "x"}).status_code == 422
        assert script.put(f"/api/v1/drafts/{'x' * 101}", json={"text": "x"}).status_code == 422


def test_a_viewer_cannot_save_a_draft(api: Api) -> None:
    with api.http(api.token_for("viewer")) as viewer:
        assert viewer.put(PATH, json={"text": "x"}).status_code == 403
