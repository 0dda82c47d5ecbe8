"""Projects and providers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
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
from shared.errors import Conflict, Invalid
from tests.support.canaries import Canaries
from tests.support.database import CoreFactory
from tests.support.made import submit
from tests.support.refusals import code_of

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


@pytest.mark.dialects
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

    projects.edit(core, admin, "web", ProjectEdit(git_url="ssh://git@git.example/web.git"))
    with core.database.read() as db:
        row = db.scalars(select(Project)).one()
    assert (row.git_url, row.sealed_git_url) == ("ssh://git@git.example/web.git", None)


def test_a_slug_that_is_taken_is_a_conflict_and_free_again_after_its_project_is_removed(
    core: Core, admin: Caller
) -> None:
    first = add_project(core, admin)
    assert code_of(lambda: add_project(core, admin)) == "E-PROJECT-SLUG"
    projects.remove(core, admin, "web")
    assert add_project(core, admin).id != first.id


def test_what_a_project_cannot_have_is_refused_and_nothing_is_stored(core: Core, admin: Caller) -> None:
    bad: list[tuple[str, dict[str, Any]]] = [
        *(("E-NAME", {"slug": slug}) for slug in ("Web", "../etc", "a\n", "x" * 65)),
        *(("E-BRANCH", {"branch": name}) for name in ("-x", "a..b", "a b", "a~1", "x.lock", "/x", "x/", "@{u}", "")),
        ("E-PROVIDER-404", {"provider": "lokal"}),
    ]
    assert [(code_of(lambda given=given: add_project(core, admin, **given)), given) for _, given in bad] == bad
    assert projects.list_(core, admin) == []


def test_only_what_is_given_changes_and_null_takes_away(core: Core, admin: Caller) -> None:
    add_provider(core, admin)
    add_project(core, admin, branch="trunk", provider="local", setup=["make"], budget_usd_day=1)
    projects.edit(core, admin, "web", ProjectEdit(name="The web"))
    changed = projects.edit(core, admin, "web", ProjectEdit(branch=None, provider=None, budget_usd_day=None))
    assert (changed.name, changed.setup) == ("The web", ["make"])
    assert (changed.branch, changed.provider, changed.budget_usd_day) == (None, None, None)


# --- providers ------------------------------------------------------------------------------


@pytest.mark.dialects
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
    with pytest.raises(Invalid, match="fallback"):
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
    for request, field, value in product((ProviderRequest, ProviderEdit), ("rpm", "tpm"), (-1, 1.5, 10**9 + 1)):
        with pytest.raises(ValidationError, match=field):
            request.model_validate({"name": "local", "model": "openai/x", field: value})


def test_a_provider_key_is_sealed_and_never_shown(core: Core, admin: Caller) -> None:
    added = add_provider(core, admin, api_key="sk-very-secret")
    assert added.key == "sealed"
    assert "very-secret" not in added.model_dump_json()
    assert Canaries("sk-very-secret").found_in(stored(core, Provider).encode()) == set()


def test_a_new_key_takes_the_place_of_the_old_kind(core: Core, admin: Caller) -> None:
    add_provider(core, admin, api_key="sk-very-secret")
    assert providers.edit(core, admin, "local", ProviderEdit(key_variable="X")).key == "on drone: X"
    assert providers.edit(core, admin, "local", ProviderEdit(api_key="sk-y")).key == "sealed"
    assert providers.edit(core, admin, "local", ProviderEdit(model="openai/z")).key == "sealed"
    assert providers.edit(core, admin, "local", ProviderEdit(no_key=True)).key == "none"


def test_what_a_provider_cannot_have_is_refused_and_nothing_is_stored(core: Core, admin: Caller) -> None:
    bad: list[tuple[str, dict[str, Any]]] = [
        ("E-PROVIDER-404", {"fallbacks": ["nobody"]}),
        ("E-FALLBACK", {"fallbacks": ["local"]}),
        ("E-ROTATION", {"rotation": "alternate"}),
        ("E-PARAM", {"params": {"api_key": "sk-x"}}),
        ("E-JSON", {"params": {"x": float("nan")}}),
        ("E-TOO-LONG", {"params": {"x": "y" * 64_001}}),
        ("E-MODEL", {"model": "two words"}),
        ("E-EMPTY", {"model": ""}),
        ("E-API-BASE", {"api_base": "ftp://h/v1"}),
        ("E-API-BASE", {"api_base": "http://key@h/v1"}),
        ("E-API-BASE", {"api_base": "http://[::1/v1"}),
        ("E-EMPTY", {"api_key": "  "}),
        ("E-PROVIDER-KEY", {"api_key": "sk-x", "key_variable": "X"}),
        *(("E-VARIABLE", {"key_variable": name}) for name in ("", "1X", "A-B", "A B", "A=1", "x" * 129)),
    ]
    found = [(code_of(lambda given=given: add_provider(core, admin, **given)), given) for _, given in bad]
    # NaN is not equal to itself.
    assert repr(found) == repr(bad)
    assert providers.list_(core, admin) == []


def test_a_project_or_provider_that_is_needed_cannot_be_removed_and_says_by_whom(core: Core, admin: Caller) -> None:
    add_provider(core, admin)
    add_provider(core, admin, "other", fallbacks=["local"])
    add_project(core, admin, provider="local")
    order = submit(core, admin)
    with pytest.raises(Conflict, match=f"project web, provider other, order {order.id}"):
        providers.remove(core, admin, "local")
    with pytest.raises(Conflict, match=order.id):
        projects.remove(core, admin, "web")


def test_a_removed_provider_is_gone_with_its_key_and_its_name_is_free(core: Core, admin: Caller) -> None:
    add_provider(core, admin, api_key="sk-x")
    assert code_of(lambda: add_provider(core, admin)) == "E-PROVIDER-NAME"
    providers.remove(core, admin, "local")
    assert providers.list_(core, admin) == []
    with core.database.read() as db:
        assert db.scalars(select(Provider.sealed_key)).one() is None
    assert add_provider(core, admin).key == "none"


def test_a_file_url_needs_a_token_for_all_organizations(core: Core, admin: Caller) -> None:
    limited = replace(admin, everywhere=False)
    add_project(core, limited)
    for act in (
        lambda: add_project(core, limited, slug="local", git_url="file:///srv/web.git"),
        lambda: projects.edit(core, limited, "web", ProjectEdit(git_url="/srv/web.git")),
    ):
        assert code_of(act) == "E-GIT-FILE-SCOPE"
    assert projects.edit(core, admin, "web", ProjectEdit(git_url="/srv/web.git")).git_url == "file:///srv/web.git"


def test_beyond_loopback_a_file_url_is_taken_if_the_settings_allow_it(
    core_factory: CoreFactory, sqlite_url: str
) -> None:
    refusing, allowing = (core_factory(sqlite_url, host="0.0.0.0", allow_file_urls=each) for each in (False, True))
    caller = system_caller(allowing)
    assert code_of(lambda: add_project(refusing, caller, git_url="file:///srv/web.git")) == "E-GIT-FILE"
    assert add_project(allowing, caller, git_url="/srv/a b/web.git").git_url == "file:///srv/a b/web.git"
