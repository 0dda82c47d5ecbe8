"""Notes on the pages: with their project, or with the organization; proposals are in the inbox."""

from __future__ import annotations

from control_plane.declarations import memory
from control_plane.declarations.memory import MemoryRequest
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.access import tokens
from shared.events import RememberStep
from tests.support.fleet import Api

HTML = {"Accept": "text/html"}
SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


def proposed(api: Api) -> str:
    """The id of a note that an agent proposed."""
    api.add_work()
    run = api.add_drone("mila").take(api.submit("Mend it"))
    run.step(RememberStep(text="Use <b>make</b>", why="It is slow otherwise"))
    return str(api.client.call(memory.LIST)[0]["id"])


def test_a_proposal_is_kept_in_the_inbox_and_then_stands_with_its_project(api: Api) -> None:
    note = proposed(api)
    with api.browser() as browser:
        before = browser.get("/", headers=HTML).text
        answer = browser.post("/actions/accept_memory", data={"note_id": note}, headers=SAME_SITE)
        after, page = browser.get("/", headers=HTML).text, browser.get("/projects", headers=HTML).text
    assert ("Use &lt;b&gt;make&lt;/b&gt;" in before, "It is slow otherwise" in before) == (True, True)
    assert (answer.is_success or answer.is_redirect, note in after) == (True, False)
    assert (f'id="note-{note}"' in page, "1 kept" in page, "<b>make" in page) == (True, True, False)


def test_a_note_for_all_projects_stands_with_the_organization_and_a_viewer_cannot_change_it(api: Api) -> None:
    api.add_work()
    note = api.client.call(memory.ADD, MemoryRequest(text="Write British English"))["id"]
    viewer = tokens.create_api_token(api.core, system_caller(api.core), ApiTokenRequest(role="viewer"))
    with api.browser() as browser:
        page, projects = (browser.get(path, headers=HTML).text for path in ("/settings", "/projects"))
    with api.browser(token=str(viewer.token)) as browser:
        seen = browser.get("/settings", headers=HTML).text
    assert (f'id="note-{note}"' in page, note in projects, f'id="note-{note}"' in seen) == (True, False, True)
    assert ("edit_memory" in page, "edit_memory" in seen) == (True, False)
