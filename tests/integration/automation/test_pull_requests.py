"""Pull requests as the control plane sees them: asked for, noted on their order, one for one line of work."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.contract.declarations.projects import ProjectEdit
from control_plane.contract.declarations.pull_requests import PullRequestRequest
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.operations import projects
from control_plane.operations.orders import pull_requests, reading
from control_plane.services import pull_requests as services
from control_plane.services.pull_request_text import quiet, title_of
from shared.errors import Conflict, Precondition
from shared.events import PullRequestStep
from shared.work_order import OpenPullRequest
from tests.support import turns
from tests.support.made import make_drone, make_project, start_run, submit
from tests.support.team_rows import add_agent, add_task, begin, end, order_of, play, say


def done(core: Core, order_id: str, **values: Any) -> Order:
    """The order after its run has ended and left a branch on the remote."""
    delivered = {"branch": f"fleet/{order_id}", "head_commit": "c0ffee" * 6, "base_commit": "beef" * 10, "pushed": True}
    left = {**delivered, "verification": "verified", "response": "I mended it.", **values}
    return row(core, turns.end(core, order_id, steps=(), **left))


def row(core: Core, order_id: str) -> Order:
    with core.database.read() as db:
        return db.get_one(Order, order_id)


@pytest.fixture
def fleet(core: Core, admin: Caller) -> None:
    """A project that wants pull requests, and a drone."""
    make_project(core, admin, pull_requests="open", verify=["make test"])
    make_drone(core, admin, concurrency=9)


def worked(core: Core, admin: Caller, **fields: Any) -> Order:
    """An order that is done."""
    return done(core, submit(core, admin, "# Mend the sum\n\nIt is wrong.").id, **fields)


def told(order: Order) -> dict[str, Any]:
    assert order.pull_request is not None
    return order.pull_request


def service_of(core: Core, order: Order) -> Order:
    return row(core, told(order)["order"])


def note(core: Core, service: Order, **said: Any) -> None:
    """What the drone reports."""
    asked = OpenPullRequest.model_validate(service.asked)
    step = {"state": "opened", "url": "https://host/o/r/pull/7", "number": 7, "via": "gh", "head": asked.head}
    with core.database.write() as db:
        services.noted(db, db.get_one(Order, service.id), PullRequestStep.model_validate({**step, **said}))


@pytest.mark.usefixtures("fleet")
def test_an_order_that_was_pushed_asks_for_a_pull_request_on_the_drone_that_pushed_it(
    core: Core, admin: Caller
) -> None:
    order = worked(core, admin, ticket="PAYM-12")
    service = service_of(core, order)
    asked = OpenPullRequest.model_validate(service.asked)
    assert (told(order)["state"], service.purpose, service.status) == ("asked", "pull_request", "assigned")
    assert service.wanted_drone_id == order.drone_id
    assert (asked.head, asked.base, asked.title, asked.replaces) == (order.branch, None, "Mend the sum", None)
    assert asked.body == (
        "I mended it.\n\n## Verification\n\nPassed: `make test`.\n\n"
        f"## Commits\n\nbeefbeefbeef..c0ffeec0ffee on `{order.branch}`\n\n"
        f"Order: {order.id}\n\nRefs: PAYM-12\nFleet-Order: {order.id}\n"
    )


@pytest.mark.usefixtures("fleet")
def test_without_a_branch_on_the_remote_there_is_none_and_one_that_is_ready_waits_for_a_user(
    core: Core, admin: Caller
) -> None:
    for values, state in (
        ({"pushed": False, "push_error": "The remote refused it."}, "failed"),
        ({"head_commit": None, "branch": None, "pushed": False}, None),
    ):
        order = worked(core, admin, **values)
        assert (order.pull_request or {}).get("state") == state
        with pytest.raises(Precondition):
            pull_requests.for_order(core, admin, order.id)
    wishes = ProjectEdit(pull_requests="ready", trailers=["Fleet-Order", "Assisted-by", "Fleet-Order"])
    assert projects.edit(core, admin, "web", wishes).trailers == ["Assisted-by", "Fleet-Order"]
    assert told(worked(core, admin))["state"] == "ready"
    assert {each.purpose for each in reading.list_orders(core, admin)} == {"work"}


@pytest.mark.usefixtures("fleet")
def test_one_that_is_open_is_brought_up_to_date_on_request_and_by_the_next_order_of_its_session(
    core: Core, admin: Caller
) -> None:
    order = worked(core, admin)
    service = service_of(core, order)
    with pytest.raises(Conflict) as refusal:
        pull_requests.for_order(core, admin, order.id)
    assert refusal.value.next == f"fleet follow {service.id}"
    # A service that ends without a word leaves a failure that says why.
    start_run(core, service.id)
    end(core, service.id, "lost")
    failed = told(row(core, order.id))
    assert (failed["state"], service.id in failed["why"], "has not reported" in failed["why"]) == ("failed", True, True)
    pull_requests.for_order(core, admin, order.id)
    service = service_of(core, row(core, order.id))
    note(core, service)
    shown = reading.order_summary(core, admin, order.id).pull_request or {}
    assert (shown["state"], shown["url"], shown["number"]) == ("opened", "https://host/o/r/pull/7", 7)
    start_run(core, service.id)
    end(core, service.id)
    pull_requests.for_order(core, admin, order.id)
    again = row(core, order.id)
    # It keeps its address meanwhile, and what the service before says late counts no more.
    assert (told(again)["state"], told(again)["number"]) == ("asked", 7)
    note(core, service, state="failed", why="late")
    assert told(row(core, order.id))["state"] == "asked"
    note(core, service_of(core, again), state="updated")
    assert told(row(core, order.id))["state"] == "updated"
    second = done(core, submit(core, admin, "And the test", session=order.session_id).id)
    assert (service_of(core, second).asked or {})["replaces"] == 7


def test_a_task_has_one_from_the_newest_branch_of_its_runs(core: Core, admin: Caller) -> None:
    make_project(core, admin, trailers=["Fleet-Order", "Assisted-by"])
    make_drone(core, admin, concurrency=9)
    lead = add_agent(core, admin, "lead")
    add_agent(core, admin, "tester", boss="lead")
    task = add_task(core, admin, lead, title="Mend the sum, please")
    first = order_of(core, task).id
    begin(core, first)
    with core.database.write() as db:
        order = db.get_one(Order, first)
        order.branch, order.head_commit, order.pushed = f"fleet/{first}", "c0ffee" * 6, True
    say(core, task, "Done, see `calc.py`. @tester please test, me@example.org knows")
    end(core, first)
    play(core, task, "It works. @user")
    pull_requests.for_task(core, admin, task.lower(), PullRequestRequest(title="Fix\n sums", draft=True))
    asked = OpenPullRequest.model_validate(service_of(core, row(core, first)).asked)
    assert (asked.head, asked.title, asked.draft) == (f"fleet/{first}", "Fix sums", True)
    assert asked.body.startswith("It works. `@user`\n\n## Verification")
    assert "- lead (succeeded): `c0ffeec0ffee`\n- tester (succeeded): no changes" in asked.body
    assert asked.body.endswith(
        f"Task: {task}\nOrder: {first}\n\nAssisted-by: openai/scripted via Dronefleet\nFleet-Order: {first}\n"
    )


def test_a_title_is_the_first_line_in_one_line() -> None:
    expected = {
        "\n\n  Fix it\nmore": "Fix it",
        "## Fix   it": "Fix it",
        "- --force is ignored": "--force is ignored",
        "--force is ignored": "--force is ignored",
        "x" * 10_000: "x" * 71 + "…",
        "\n \n": "",
    }
    assert {about: title_of(about) for about in expected} == expected


def test_tags_call_nobody_on_a_code_host() -> None:
    said = "@tester and (@lead), me@example.org, `@kept`\n```\n@in_code\n```\n@user"
    assert quiet(said) == "`@tester` and (`@lead`), me@example.org, `@kept`\n```\n@in_code\n```\n`@user`"
    cases = {
        "`npm i @types/node` by @kim": "`npm i @types/node` by `@kim`",
        "``a ` @b``@c": "``a ` @b`` `@c`",
        "> ```\n> @in_code\n> ```\n@user": "> ```\n> @in_code\n> ```\n`@user`",
        "````\n```\n@in_code\n````\n@user": "````\n```\n@in_code\n````\n`@user`",
        # A run of backticks without a second one is text, and does not pair with those around a tag.
        "a ` @b": "a ` ``@b``",
        "`@b": "` ``@b``",
        "- a ` b\n- @c ` d": "- a ` b\n- ``@c`` ` d",
        "-@a /@b @@c @_d é@e": "-`@a` /`@b` @`@c` `@_d` é`@e`",
        "a\r\n@b\r": "a\n`@b`\n",
        "[it](https://npmjs.com/package/@types/node) by @kim": "[it](https://npmjs.com/package/@types/node) by `@kim`",
    }
    assert {text: quiet(text) for text in cases} == cases
