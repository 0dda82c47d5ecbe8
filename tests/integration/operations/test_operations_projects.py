"""Projects and providers, on each kind of database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from control_plane.core import Caller, Core
from control_plane.db.projects import Project, Provider
from control_plane.declarations.projects import ProjectEdit, ProjectRequest
from control_plane.declarations.providers import ProviderEdit, ProviderRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations import projects, providers
from shared.errors import Conflict, Forbidden, Invalid, NotFound, Refused
from tests.support.canaries import Canaries
from tests.support.database import CoreFactory
from tests.support.made import make_project, submit

SECRET_URL = "https://user:hunter2@git.example/web.git"


def add_project(core: Core, caller: Caller, slug: str = "web", **fields: Any) -> Any:
    return projects.add(core, caller, ProjectRequest(**{"slug": slug, "git_url": "https://h/r.git", **fields}))


def add_provider(core: Core, caller: Caller, name: str = "local", **fields: Any) -> Any:
    return providers.add(core, caller, ProviderRequest(**{"name": name, "model": "openai/x", **fields}))


def stored(core: Core, model: Any) -> str:
    """Everything that the database has of these rows."""
    with core.database.read() as db:
        return repr([list(row) for row in db.execute(select(model.__table__))])


# --- projects -----------------------------------------------------------------------------


def test_a_project_comes_back_as_it_was_added(core: Core, admin: Caller) -> None:
    add_provider(core, admin)
    fields = {
        "description": "The shop, front and back.",
        "branch": "trunk",
        "setup": ["make"],
        "verify": ["make test"],
        "provider": "local",
        "budget_usd_day": 2.5,
    }
    added = add_project(core, admin, **fields)
    assert projects.show(core, admin, "web") == added == projects.list_(core, admin)[0]
    assert added.model_dump(include=set(fields)) == fields


def test_a_password_in_a_git_url_is_never_shown_again_and_not_stored_in_clear(core: Core, admin: Caller) -> None:
    added = add_project(core, admin, git_url=SECRET_URL)
    assert "hunter2" not in added.model_dump_json()
    assert "hunter2" not in stored(core, Project)
    with core.database.read() as db:
        sealed = db.scalars(select(Project.sealed_git_url)).one()
    assert core.vault.open_at_rest(str(sealed)) == SECRET_URL


def test_a_new_git_url_without_a_password_forgets_the_old_one(core: Core, admin: Caller) -> None:
    add_project(core, admin, git_url=SECRET_URL)
    projects.edit(core, admin, "web", ProjectEdit(git_url="ssh://git@git.example/web.git"))
    with core.database.read() as db:
        row = db.scalars(select(Project)).one()
    assert (row.git_url, row.sealed_git_url) == ("ssh://git@git.example/web.git", None)


def test_a_slug_that_is_taken_is_a_conflict_and_free_again_after_its_project_is_removed(
    core: Core, admin: Caller
) -> None:
    first = add_project(core, admin)
    with pytest.raises(Conflict) as refusal:
        add_project(core, admin)
    assert refusal.value.code == "E-PROJECT-SLUG"
    projects.remove(core, admin, "web")
    assert add_project(core, admin).id != first.id


@pytest.mark.parametrize("slug", ["", "Web", "a b", "../etc", "-x", "x" * 10_000, "wéb", "a\n"])
def test_a_slug_that_is_none_is_refused_and_cut_short(core: Core, admin: Caller, slug: str) -> None:
    with pytest.raises(Invalid) as refusal:
        add_project(core, admin, slug=slug)
    assert refusal.value.code == "E-NAME"
    assert len(refusal.value.what) < 150


def test_only_what_is_given_changes_and_null_takes_away(core: Core, admin: Caller) -> None:
    add_provider(core, admin)
    add_project(core, admin, branch="trunk", provider="local", setup=["make"], budget_usd_day=1)
    projects.edit(core, admin, "web", ProjectEdit(name="The web"))
    changed = projects.edit(core, admin, "web", ProjectEdit(branch=None, provider=None, budget_usd_day=None))
    assert (changed.name, changed.setup) == ("The web", ["make"])
    assert (changed.branch, changed.provider, changed.budget_usd_day) == (None, None, None)


def test_a_project_with_an_unknown_provider_is_refused(core: Core, admin: Caller) -> None:
    with pytest.raises(NotFound, match="provider 'lokal' not found"):
        add_project(core, admin, provider="lokal")
    assert projects.list_(core, admin) == []


def test_a_project_with_an_unfinished_order_cannot_be_removed(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    order = submit(core, admin)
    with pytest.raises(Conflict, match=order.id):
        projects.remove(core, admin, "web")


def test_an_unknown_project_is_answered_with_the_near_ones(core: Core, admin: Caller) -> None:
    add_project(core, admin)
    with pytest.raises(NotFound) as refusal:
        projects.show(core, admin, "wbe")
    assert refusal.value.next == "did you mean web? Otherwise: fleet project ls"


def test_a_file_url_is_refused_where_the_control_plane_is_not_on_loopback(
    core_factory: CoreFactory, sqlite_url: str
) -> None:
    core = core_factory(sqlite_url, host="0.0.0.0")
    caller = system_caller(core)
    with pytest.raises(Invalid) as refusal:
        add_project(core, caller, git_url="file:///srv/web.git")
    assert refusal.value.code == "E-GIT-FILE"


def test_a_file_url_is_taken_there_where_the_settings_allow_it(core_factory: CoreFactory, sqlite_url: str) -> None:
    core = core_factory(sqlite_url, host="0.0.0.0", allow_file_urls=True)
    caller = system_caller(core)
    assert add_project(core, caller, git_url="/srv/a b/web.git").git_url == "file:///srv/a b/web.git"


@pytest.mark.parametrize("branch", ["-x", "a..b", "a b", "a~1", "x.lock", "/x", "x/", "@{u}", ""])
def test_a_branch_that_git_would_not_take_is_refused(core: Core, admin: Caller, branch: str) -> None:
    with pytest.raises(Invalid) as refusal:
        add_project(core, admin, branch=branch)
    assert refusal.value.code == "E-BRANCH"


def test_an_operator_reads_projects_and_does_not_change_them(core: Core, admin: Caller) -> None:
    operator = Caller(admin.organization_id, "default", "operator", "u")
    add_project(core, admin)
    assert projects.show(core, operator, "web").slug == "web"
    with pytest.raises(Forbidden):
        projects.edit(core, operator, "web", ProjectEdit(name="x"))
    with pytest.raises(Forbidden):
        projects.remove(core, operator, "web")
    with pytest.raises(Forbidden):
        add_project(core, operator, slug="shop")


# --- providers ------------------------------------------------------------------------------


def test_a_provider_comes_back_as_it_was_added(core: Core, admin: Caller) -> None:
    add_provider(core, admin, "backup")
    fields = {"api_base": "http://127.0.0.1:9/v1", "params": {"temperature": 0, "x": ["ä"]}, "fallbacks": ["backup"]}
    added = add_provider(core, admin, **fields)
    assert providers.show(core, admin, "local") == added
    assert added.model_dump(include=set(fields)) == fields
    assert added.key == "none"


def test_models_take_turns_as_long_as_there_is_another_one(core: Core, admin: Caller) -> None:
    add_provider(core, admin, "backup")
    assert add_provider(core, admin).rotation == "off"
    edited = providers.edit(core, admin, "local", ProviderEdit(fallbacks=["backup"], rotation="random"))
    assert (edited.rotation, edited.fallbacks) == ("random", ["backup"])
    with pytest.raises(Invalid, match="no fallback to take turns with"):
        providers.edit(core, admin, "local", ProviderEdit(fallbacks=[]))
    assert providers.show(core, admin, "local").fallbacks == ["backup"]
    ended = providers.edit(core, admin, "local", ProviderEdit(fallbacks=[], rotation="off"))
    assert (ended.rotation, ended.fallbacks) == ("off", [])


def test_a_provider_s_limits_are_set_changed_and_removed(core: Core, admin: Caller) -> None:
    unlimited = add_provider(core, admin)
    assert (unlimited.rpm, unlimited.tpm) == (0, 0)
    set_ = providers.edit(core, admin, "local", ProviderEdit(rpm=60, tpm=90_000))
    assert (set_.rpm, set_.tpm) == (60, 90_000)
    changed = providers.edit(core, admin, "local", ProviderEdit(rpm=0))
    assert (changed.rpm, changed.tpm) == (0, 90_000)


@pytest.mark.parametrize("value", [-1, 1.5, "many", 10**9 + 1, float("inf")])
@pytest.mark.parametrize("field", ["rpm", "tpm"])
def test_a_limit_that_is_none_is_refused(core: Core, admin: Caller, field: str, value: object) -> None:
    for request in (ProviderRequest, ProviderEdit):
        with pytest.raises(ValidationError, match=field):
            request.model_validate({"name": "local", "model": "openai/x", field: value})


def test_a_provider_key_is_sealed_and_never_shown(core: Core, admin: Caller) -> None:
    added = add_provider(core, admin, api_key="sk-very-secret")
    assert added.key == "sealed"
    assert "very-secret" not in added.model_dump_json()
    assert Canaries("sk-very-secret").found_in(stored(core, Provider).encode()) == set()


def test_a_key_that_stays_on_the_drone_is_named_only(core: Core, admin: Caller) -> None:
    assert add_provider(core, admin, key_variable="OPENAI_API_KEY").key == "on drone: OPENAI_API_KEY"


@pytest.mark.parametrize("variable", ["", "1X", "A-B", "A B", "A=1", "x" * 129])
def test_a_variable_that_cannot_be_one_is_refused(core: Core, admin: Caller, variable: str) -> None:
    with pytest.raises(Invalid) as refusal:
        add_provider(core, admin, key_variable=variable)
    assert refusal.value.code == "E-VARIABLE"


def test_two_keys_at_once_are_refused(core: Core, admin: Caller) -> None:
    with pytest.raises(Invalid, match="give only one of"):
        add_provider(core, admin, api_key="sk-x", key_variable="X")


def test_a_new_key_takes_the_place_of_the_old_kind(core: Core, admin: Caller) -> None:
    add_provider(core, admin, api_key="sk-very-secret")
    assert providers.edit(core, admin, "local", ProviderEdit(key_variable="X")).key == "on drone: X"
    assert providers.edit(core, admin, "local", ProviderEdit(api_key="sk-y")).key == "sealed"
    assert providers.edit(core, admin, "local", ProviderEdit(model="openai/z")).key == "sealed"
    assert providers.edit(core, admin, "local", ProviderEdit(no_key=True)).key == "none"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"fallbacks": ["nobody"]}, "E-PROVIDER-404"),
        ({"fallbacks": ["local"]}, "E-FALLBACK"),
        ({"rotation": "alternate"}, "E-ROTATION"),
        ({"params": {"api_key": "sk-x"}}, "E-PARAM"),
        ({"params": {"x": float("nan")}}, "E-JSON"),
        ({"params": {"x": "y" * 64_001}}, "E-TOO-LONG"),
        ({"model": "two words"}, "E-MODEL"),
        ({"model": ""}, "E-EMPTY"),
        ({"api_base": "ftp://h/v1"}, "E-API-BASE"),
        ({"api_base": "http://key@h/v1"}, "E-API-BASE"),
        ({"api_base": "http://[::1/v1"}, "E-API-BASE"),
        ({"api_key": "  "}, "E-EMPTY"),
    ],
)
def test_what_a_provider_cannot_have_is_refused_and_nothing_is_stored(
    core: Core, admin: Caller, fields: dict[str, Any], code: str
) -> None:
    with pytest.raises(Refused) as refusal:
        add_provider(core, admin, **fields)
    assert refusal.value.code == code
    assert providers.list_(core, admin) == []


def test_a_provider_name_that_is_taken_is_a_conflict(core: Core, admin: Caller) -> None:
    add_provider(core, admin)
    with pytest.raises(Conflict) as refusal:
        add_provider(core, admin)
    assert refusal.value.code == "E-PROVIDER-NAME"


def test_a_provider_that_is_needed_cannot_be_removed_and_says_by_whom(core: Core, admin: Caller) -> None:
    add_provider(core, admin)
    add_provider(core, admin, "other", fallbacks=["local"])
    add_project(core, admin, provider="local")
    order = submit(core, admin)
    with pytest.raises(Conflict, match=f"project web, provider other, order {order.id}"):
        providers.remove(core, admin, "local")


def test_a_removed_provider_is_gone_with_its_key_and_its_name_is_free(core: Core, admin: Caller) -> None:
    add_provider(core, admin, api_key="sk-x")
    providers.remove(core, admin, "local")
    assert providers.list_(core, admin) == []
    with core.database.read() as db:
        assert db.scalars(select(Provider.sealed_key)).one() is None
    assert add_provider(core, admin).key == "none"


def test_a_file_url_needs_a_token_for_all_organizations(core: Core, admin: Caller) -> None:
    limited = replace(admin, everywhere=False)
    add_project(core, limited)
    with pytest.raises(Forbidden) as adding:
        add_project(core, limited, slug="local", git_url="file:///srv/web.git")
    with pytest.raises(Forbidden) as editing:
        projects.edit(core, limited, "web", ProjectEdit(git_url="/srv/web.git"))

    assert (adding.value.code, editing.value.code) == ("E-GIT-FILE-SCOPE", "E-GIT-FILE-SCOPE")
    assert projects.edit(core, admin, "web", ProjectEdit(git_url="/srv/web.git")).git_url == "file:///srv/web.git"
