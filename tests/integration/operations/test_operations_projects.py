"""Projects and providers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import select, update

from control_plane.contract.declarations.projects import ProjectEdit, ProjectRequest
from control_plane.contract.declarations.providers import ProviderEdit, ProviderRequest
from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Run
from control_plane.operations import projects, providers
from control_plane.operations.doctor import doctor
from control_plane.operations.orders import retrying
from control_plane.operations.orders.canceling import cancel
from shared.errors import Conflict
from tests.support.canaries import Canaries
from tests.support.database import CoreFactory
from tests.support.made import later, make_drone, make_project, run_of, start_run, submit
from tests.support.refusals import code_of
from tests.support.turns import lose

SECRET_URL = "https://user:hunter2@git.example/web.git"


def add_project(core: Core, caller: Caller, slug: str = "web", **fields: Any) -> Any:
    return projects.add(core, caller, ProjectRequest(**{"slug": slug, "git_url": "https://h/r.git", **fields}))


def add_provider(core: Core, caller: Caller, name: str = "local", **fields: Any) -> Any:
    return providers.add(core, caller, ProviderRequest(**{"name": name, "model": "openai/x", **fields}))


def stored(core: Core, model: Any) -> str:
    """Everything that the database has of these rows."""
    with core.database.read() as db:
        return repr([list(row) for row in db.execute(select(model.__table__))])


def test_a_project_and_a_provider_come_back_as_they_were_added(core: Core, admin: Caller) -> None:
    add_provider(core, admin, "backup")
    fields = {"api_base": "http://127.0.0.1:9/v1", "params": {"temperature": 0, "x": ["ä"]}, "fallbacks": ["backup"]}
    added = add_provider(core, admin, **fields)
    assert providers.show(core, admin, "local") == added
    assert added.model_dump(include=set(fields)) == fields
    assert (added.key, added.rotation, added.rpm, added.tpm) == ("none", "off", 0, 0)

    fields = {
        "description": "The shop, front and back.",
        "branch": "trunk",
        "setup": ["make"],
        "verify": ["make test"],
        "provider": "local",
        "budget_usd_day": 2.5,
    }
    project = add_project(core, admin, **fields)
    assert projects.show(core, admin, "web") == project == projects.list_(core, admin)[0]
    assert project.model_dump(include=set(fields)) == fields


def test_a_password_in_a_git_url_is_never_shown_again_and_not_stored_in_clear(core: Core, admin: Caller) -> None:
    added = add_project(core, admin, git_url=SECRET_URL)
    assert "hunter2" not in added.model_dump_json()
    assert "hunter2" not in stored(core, Project)
    with core.database.read() as db:
        sealed = db.scalars(select(Project.sealed_git_url)).one()
    assert core.vault.open_at_rest(str(sealed), "projects.sealed_git_url") == SECRET_URL

    projects.edit(core, admin, "web", ProjectEdit(git_url="ssh://git@git.example/web.git"))
    with core.database.read() as db:
        row = db.scalars(select(Project)).one()
    assert (row.git_url, row.sealed_git_url) == ("ssh://git@git.example/web.git", None)


def test_a_provider_key_is_sealed_and_never_shown(core: Core, admin: Caller) -> None:
    """A new key takes the place of the old kind."""
    added = add_provider(core, admin, api_key="sk-very-secret")
    assert added.key == "sealed"
    assert "very-secret" not in added.model_dump_json()
    assert Canaries("sk-very-secret").found_in(stored(core, Provider).encode()) == set()
    edits = [{"key_variable": "X"}, {"api_key": "sk-y"}, {"model": "openai/z"}, {"no_key": True}]
    kinds = [providers.edit(core, admin, "local", ProviderEdit.model_validate(each)).key for each in edits]
    assert kinds == ["on drone: X", "sealed", "sealed", "none"]


def test_what_a_project_or_provider_cannot_have_is_refused_and_nothing_is_stored(core: Core, admin: Caller) -> None:
    bad_projects: list[tuple[str, dict[str, Any]]] = [
        *(("E-NAME", {"slug": slug}) for slug in ("Web", "../etc", "a\n", "x" * 65)),
        *(("E-BRANCH", {"branch": name}) for name in ("-x", "a..b", "a b", "a~1", "x.lock", "/x", "x/", "@{u}", "")),
        ("E-PROVIDER-404", {"provider": "lokal"}),
    ]
    bad: list[tuple[str, dict[str, Any]]] = [
        ("E-PROVIDER-404", {"fallbacks": ["nobody"]}),
        ("E-FALLBACK", {"fallbacks": ["local"]}),
        ("E-ROTATION", {"rotation": "alternate"}),
        ("E-PARAM", {"params": {"api_key": "sk-x"}}),
        ("E-JSON", {"params": {"x": float("nan")}}),
        ("E-TOO-LONG", {"params": {"x": "y" * 64_001}}),
        ("E-MODEL", {"model": "two words"}),
        ("E-EMPTY", {"model": ""}),
        *(("E-API-BASE", {"api_base": base}) for base in ("ftp://h/v1", "http://key@h/v1", "http://[::1/v1")),
        ("E-EMPTY", {"api_key": "  "}),
        ("E-PROVIDER-KEY", {"api_key": "sk-x", "key_variable": "X"}),
        *(("E-VARIABLE", {"key_variable": name}) for name in ("", "1X", "A-B", "A B", "A=1", "x" * 129)),
    ]
    for add, table in ((add_project, bad_projects), (add_provider, bad)):
        found = [(code_of(lambda add=add, given=given: add(core, admin, **given)), given) for _, given in table]
        # NaN is not equal to itself.
        assert repr(found) == repr(table)
    assert projects.list_(core, admin) == providers.list_(core, admin) == []
    for request, field, value in product((ProviderRequest, ProviderEdit), ("rpm", "tpm"), (-1, 1.5, 10**9 + 1)):
        with pytest.raises(ValidationError, match=field):
            request.model_validate({"name": "local", "model": "openai/x", field: value})


def test_only_what_is_given_changes_and_null_takes_away(core: Core, admin: Caller) -> None:
    """Models take turns as long as there is another one."""
    add_provider(core, admin, "backup")
    add_provider(core, admin, rpm=60, tpm=90_000)
    limited = providers.edit(core, admin, "local", ProviderEdit(rpm=0, fallbacks=["backup"], rotation="random"))
    assert (limited.rpm, limited.tpm, limited.rotation, limited.fallbacks) == (0, 90_000, "random", ["backup"])
    assert code_of(lambda: providers.edit(core, admin, "local", ProviderEdit(fallbacks=[]))) == "E-ROTATION"
    assert providers.show(core, admin, "local").fallbacks == ["backup"]
    ended = providers.edit(core, admin, "local", ProviderEdit(fallbacks=[], rotation="off"))
    assert (ended.rotation, ended.fallbacks) == ("off", [])

    add_project(core, admin, branch="trunk", provider="local", setup=["make"], budget_usd_day=1)
    projects.edit(core, admin, "web", ProjectEdit(name="The web"))
    changed = projects.edit(core, admin, "web", ProjectEdit(branch=None, provider=None, budget_usd_day=None))
    assert (changed.name, changed.setup) == ("The web", ["make"])
    assert (changed.branch, changed.provider, changed.budget_usd_day) == (None, None, None)


def test_what_is_needed_is_not_removed_and_what_is_removed_frees_its_name(core: Core, admin: Caller) -> None:
    """A refusal says by whom it is needed, and a provider's key goes with it."""
    add_provider(core, admin, api_key="sk-x")
    add_provider(core, admin, "other", fallbacks=["local"])
    first = add_project(core, admin, provider="local")
    order = submit(core, admin)
    with pytest.raises(Conflict, match=f"project web, provider other, order {order.id}"):
        providers.remove(core, admin, "local")
    with pytest.raises(Conflict, match=order.id):
        projects.remove(core, admin, "web")

    cancel(core, admin, order.id)
    providers.remove(core, admin, "other")
    assert code_of(lambda: add_project(core, admin)) == "E-PROJECT-SLUG"
    projects.remove(core, admin, "web")
    assert code_of(lambda: add_provider(core, admin)) == "E-PROVIDER-NAME"
    providers.remove(core, admin, "local")
    assert providers.list_(core, admin) == []
    with core.database.read() as db:
        assert [*db.scalars(select(Provider.sealed_key))] == [None, None]
    assert add_provider(core, admin).key == "none"
    assert add_project(core, admin).id != first.id


def test_a_file_url_needs_rights_everywhere_and_beyond_loopback_the_setting(
    core: Core, admin: Caller, core_factory: CoreFactory, sqlite_url: str
) -> None:
    limited = replace(admin, everywhere=False)
    add_project(core, limited)
    for act in (
        lambda: add_project(core, limited, slug="local", git_url="file:///srv/web.git"),
        lambda: projects.edit(core, limited, "web", ProjectEdit(git_url="/srv/web.git")),
    ):
        assert code_of(act) == "E-GIT-FILE-SCOPE"
    assert projects.edit(core, admin, "web", ProjectEdit(git_url="/srv/web.git")).git_url == "file:///srv/web.git"

    refusing, allowing = (core_factory(sqlite_url, host="0.0.0.0", allow_file_urls=each) for each in (False, True))
    assert code_of(lambda: add_project(refusing, admin, "shop", git_url="file:///srv/web.git")) == "E-GIT-FILE"
    assert add_project(allowing, admin, "shop", git_url="/srv/a b/web.git").git_url == "file:///srv/a b/web.git"


def checked(core: Core, admin: Caller, code: str) -> dict[str, Any]:
    """What the doctor says with this code."""
    return next(each for each in doctor(core, admin) if each["code"] == code)


def test_the_doctor_warns_of_what_is_missing_with_its_fix_and_of_each_weakness_of_drones(
    core: Core, admin: Caller
) -> None:
    def states() -> list[str]:
        found = [checked(core, admin, code) for code in ("D-PROVIDERS", "D-PROJECTS", "D-DRONES")]
        return [" ".join((each["fix"] or each["state"]).split(" ")[:2]) for each in found]

    nothing = ["fleet provider", "fleet project", "fleet token"]
    assert states() == nothing
    add_provider(core, admin)
    add_project(core, admin)
    assert states() == ["OK", "OK", "fleet token"]
    projects.remove(core, admin, "web")
    providers.remove(core, admin, "local")
    assert states() == nothing

    weak: dict[str, tuple[dict[str, Any], str, str]] = {
        "none": ({"sandbox": "none"}, "without a sandbox: none", "install bubblewrap there"),
        "open": (
            {"beat": {"open_network": "nsenter is not installed"}},
            "commands use the machine's own network: open",
            "there: drone doctor",
        ),
        "broken": (
            {"beat": {"policy_broken": True, "withheld": "no"}},
            "a policy that cannot be read or enforced: broken",
            "there: drone policy",
        ),
    }
    for name, (values, found, fix) in weak.items():
        make_drone(core, admin, name, **{"sandbox": "bwrap", **values})
        check = checked(core, admin, "D-DRONES")
        assert (check["state"], found in check["found"], fix in check["fix"]) == ("WARN", True, True)
    with core.database.write() as db:
        db.execute(update(Drone).values(sandbox="bwrap", beat={}))
    assert checked(core, admin, "D-DRONES")["state"] == "OK"


def test_the_doctor_names_orders_that_stand_still_with_what_they_wait_for(core: Core, admin: Caller) -> None:
    def said() -> tuple[str, str]:
        check = checked(core, admin, "D-ORDERS")
        return check["state"].upper(), check["found"]

    make_project(core, admin)
    assert said() == ("OK", "0 unended, none stands still")
    drone = make_drone(core, admin, concurrency=4)
    waits, works, money = (submit(core, admin, drone=drone.name).id for _ in range(3))
    now = core.clock.now()
    start_run(core, works, doing="shell: make", doing_since=now, progress_at=now)
    start_run(core, money, doing="waiting for money: the budget", waits_for="provider", doing_since=now)
    later(core, minutes=9)
    with core.database.write() as db:
        for order_id in (works, money):
            db.get_one(Run, run_of(core, order_id)).progress_at = core.clock.now()
    assert said() == ("OK", "3 unended, none stands still")
    later(core, minutes=2)
    state, found = said()
    assert (state, found.partition(" stand still: ")[0], works in found) == ("WARN", "2 of 3 unended ones", False)
    assert f"{money} for 11 min (waiting for money: the budget)" in found
    assert f"{waits} for 11 min (" in found

    # Those that were queued again, or went to a drone again, have just moved.
    canceled = submit(core, admin).id
    cancel(core, admin, canceled)
    later(core, minutes=11)
    retrying.retry(core, admin, canceled)
    lose(core, money)
    with core.database.write() as db:
        db.get_one(Dispatch, run_of(core, waits)).created_at = core.clock.now()
    state, found = said()
    assert (state, found.partition(" stand still: ")[0]) == ("WARN", "1 of 4 unended ones")
    assert f"{works} for 13 min (shell: make)" in found
