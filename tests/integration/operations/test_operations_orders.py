"""Orders: submitting them, naming them, and reading their documents, steps, patches, trajectories and lists."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy import select, text, update

from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.users import UserRequest
from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.db.orders import Dispatch, Order, Turn
from control_plane.db.runs import Run, Step
from control_plane.db.sessions import ChatSession
from control_plane.operations import agents, organizations, providers, sessions
from control_plane.operations.access import users
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.orders.trajectories import trajectory_of
from control_plane.operations.runs.blobs import put_blob
from control_plane.orders.assignment import place_and_dispatch
from shared.blobs import digest
from shared.errors import Invalid, Precondition
from shared.events import (
    MAX_COUNT,
    MAX_DOLLARS,
    AssistantStep,
    Body,
    Prepared,
    RunEnded,
    ToolResultStep,
    Usage,
    UserStep,
)
from shared.messages import ToolCall
from tests.support.made import later, make_drone, make_project, start_run, submit
from tests.support.refusals import code_of
from tests.support.spending import reserve
from tests.support.turns import end, order_as_sent

PATCH = "diff --git a/x b/x\n+ü\n".encode()


@pytest.fixture
def order_id(core: Core, admin: Caller) -> str:
    """An order on drone anna, of project web."""
    make_project(core, admin)
    make_drone(core, admin)
    return submit(core, admin).id


@pytest.mark.dialects
def test_an_order_is_assigned_to_the_only_drone_and_has_a_turn_and_an_outbox_row(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    drone = make_drone(core, admin)
    prompt = "Grüße 🛸 'quoted' \"too\" \\ \x1b[31m %s $1 ; DROP TABLE orders\n"
    order = submit(core, admin, prompt)
    with core.database.read() as db:
        dispatch, turn = db.scalars(select(Dispatch)).one(), db.scalars(select(Turn)).one()
    assert (order.status, order.drone, order.generation) == ("assigned", "anna", 1)
    assert (dispatch.order_id, dispatch.drone_id, dispatch.published_at) == (order.id, drone.drone_id, None)
    assert (turn.order_id, turn.prompt, turn.status) == (order.id, prompt, "processing")
    assert reading.show_order(core, admin, order.id).prompt == prompt


def test_an_order_may_have_other_checks_than_its_project(core: Core, admin: Caller) -> None:
    make_project(core, admin, verify=["pytest -q"])
    make_drone(core, admin, concurrency=3)
    given: list[list[str] | None] = [None, ["make 'it'"], []]
    orders = [submit(core, admin, verify=verify) for verify in given]
    assert [order.verify for order in orders] == given
    sent = [order_as_sent(core, order.id).project.verify for order in orders]
    assert sent == [("pytest -q",), ("make 'it'",), ()]


def test_a_request_that_is_refused_leaves_nothing_behind(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_project(core, admin, slug="shop")
    session = submit(core, admin, project="shop").session
    before = reading.list_orders(core, admin)
    bad: list[tuple[str, dict[str, Any]]] = [
        ("E-EMPTY", {"verify": [""]}),
        ("E-TOO-LONG", {"verify": ["x" * 10_001]}),
        ("E-COMMANDS", {"verify": ["x"] * 51}),
        ("E-ORDER-PROMPT", {"prompt": "  \n\t "}),
        *(("E-TEXT", {"prompt": prompt}) for prompt in ("a\0b", "half of a pair: \ud83d")),
        ("E-ORDER-PROMPT-SIZE", {"prompt": "x" * 200_001}),
        ("E-ORDER-PLACE", {"drone": "anna", "labels": {"gpu": "yes"}}),
        ("E-ORDER-LIMIT", {"cost_limit": float("inf")}),
        ("E-DRONE-404", {"drone": "nobody"}),
        ("E-PROVIDER-404", {"provider": "locla"}),
        ("E-PROJECT-404", {"project": "x" * 10_000}),
        ("E-SESSION-404", {"session": "000000000000"}),
        ("E-SESSION-PROJECT", {"session": session}),
        ("E-TOO-LONG", {"key": "k" * 256}),
    ]
    for code, given in bad:
        assert code_of(lambda given=given: submit(core, admin, **given)) == code, given
    assert reading.list_orders(core, admin) == before
    with core.database.read() as db:
        assert len(db.scalars(select(Turn)).all()) == 1


def test_the_projects_provider_goes_before_the_others(core: Core, admin: Caller) -> None:
    """Without it, the organization's only provider is taken, and of several one has to be named."""
    make_project(core, admin)
    order = submit(core, admin)
    assert (order.provider, order.model) == ("local", "openai/scripted")
    providers.add(core, admin, ProviderRequest(name="other", model="openai/y"))
    with pytest.raises(Precondition, check=lambda refusal: refusal.exit_code == 2):
        submit(core, admin)
    make_project(core, admin, "shop", provider="other")
    assert submit(core, admin, project="shop").provider == "other"
    assert submit(core, admin, project="shop", provider="local").provider == "local"


def test_the_same_key_with_the_same_request_gives_the_same_order_for_seven_days(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first = submit(core, admin, key="k1")
    assert submit(core, admin, key="k1") == first
    assert len(reading.list_orders(core, admin)) == 1
    for other in ({"prompt": "something else"}, {"verify": []}):
        assert code_of(lambda other=other: submit(core, admin, key="k1", **other)) == "E-ORDER-IDEMPOTENCY"
    later(core, seconds=timedelta(days=7).total_seconds() - 1)
    assert submit(core, admin, key="k1").id == first.id
    later(core, seconds=1)
    assert submit(core, admin, prompt="something else", key="k1").id != first.id


@pytest.mark.dialects
def test_orders_submitted_at_once_stand_in_one_line_and_one_key_makes_one(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    session = submit(core, admin).session
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: submit(core, admin, session=session), range(4)))
        same = set(pool.map(lambda _: submit(core, admin, key="k1").id, range(6)))
    orders = reading.list_orders(core, admin)
    assert same == {orders[0].id}
    assert sorted(order.status for order in orders[1:]) == ["assigned", *["queued"] * 4]
    with core.database.read() as db:
        assert db.scalars(select(Order.number).order_by(Order.number)).all() == [1, 2, 3, 4, 5, 6]


def add_step(core: Core, order_id: str, run_id: str, number: int, **body: Any) -> None:
    """A step as the collector would store it."""
    with core.database.write() as db:
        organization_id = db.get_one(Order, order_id).organization_id
        now = core.clock.now()
        numbers = {"order_id": order_id, "run_id": run_id, "seq": number, "run_seq": number, "at": now, "drone_at": now}
        db.add(Step(organization_id=organization_id, kind=body["kind"], body=body, **numbers))


@pytest.mark.dialects
def test_steps_are_shown_in_order_with_the_fields_of_their_kind(core: Core, admin: Caller, order_id: str) -> None:
    """A step cannot pretend to be another, odd characters can be stored, and steps can be had from any one on."""
    run_id = start_run(core, order_id, doing="a\0b", reason="half \ud83d pair")
    add_step(core, order_id, run_id, 2, kind="tool_result", call_id="c1", output="ok", return_code=0, is_error=False)
    add_step(core, order_id, run_id, 1, kind="tool_call", call_id="c1", tool="shell", arguments={"command": "ls"})
    add_step(core, order_id, run_id, 3, kind="comment", text="a\0b \ud83d", seq=99, run="other", at="never", late=True)
    first, second, third = (step.model_dump() for step in reading.show_order(core, admin, order_id).steps)
    assert (first["seq"], first["kind"], first["run"], first["tool"]) == (1, "tool_call", run_id, "shell")
    assert (first["call_id"], first["arguments"]) == ("c1", {"command": "ls"})
    assert (second["output"], second["return_code"], second["is_error"]) == ("ok", 0, False)
    assert (third["seq"], third["run"], third["late"], third["at"]) == (3, run_id, False, core.clock.now())
    with core.database.read() as db:
        run = db.get_one(Run, run_id)
    assert (run.doing, run.reason) == ("a\ufffdb", "half \ufffd pair")

    assert [step.seq for step in reading.steps_after(core, admin, order_id, 1)] == [2, 3]
    assert [step.seq for step in reading.steps_after(core, admin, order_id, 0, 2)] == [1, 2]
    assert reading.steps_after(core, admin, order_id, 3) == []


@pytest.mark.dialects
def test_the_figures_of_an_order_are_the_sum_over_its_runs(core: Core, admin: Caller, order_id: str) -> None:
    """What a lost run may have spent counts until its drone reports, and one unknown price makes the cost unknown."""
    tokens = {"input_tokens": 100, "output_tokens": 10, "thinking_tokens": 5, "cached_tokens": 80}
    figures = {"tool_calls": 2, **tokens, "duration_ms": 36_000}
    assert costs_everywhere(core, admin, order_id) == ([], 0, 0)
    lost = start_run(core, order_id, cost_usd=0.25, **figures)
    reserve(core, lost, 0.75)
    managing.remove_drone(core, admin, "anna")
    make_drone(core, admin, "berta")
    with core.database.write() as db:
        place_and_dispatch(db, core, db.get_one(Order, order_id))
    start_run(core, order_id, attempt=2, cost_usd=1.0, **figures)

    order = reading.show_order(core, admin, order_id)
    runs = [(run.attempt, run.drone, run.status) for run in order.runs]
    assert runs == [(1, "anna", "lost"), (2, "berta", "running")]
    sums = {"tool_calls": 4, "duration_ms": 72_000, **{name: 2 * count for name, count in tokens.items()}}
    assert order.stats.model_dump(include=set(sums)) == sums
    assert order.stats.duration_label == "1 min 12 s"
    assert reading.order_summary(core, admin, order_id).stats == order.stats
    assert costs_everywhere(core, admin, order_id) == ([0.75, 1.0], 1.75, 1.75)

    for spent, costs in ((0.375, ([0.375, 1.0], 1.375, 1.375)), (None, ([None, 1.0], None, 1.0))):
        with core.database.write() as db:
            run = db.get_one(Run, lost)
            run.cost_usd, run.assumed_usd = spent, 0.0
        assert costs_everywhere(core, admin, order_id) == costs

    # As much as a drone can report.
    with core.database.write() as db:
        db.execute(update(Run).values(cost_usd=MAX_DOLLARS, input_tokens=MAX_COUNT, duration_ms=MAX_COUNT))
    stats = reading.show_order(core, admin, order_id).stats
    assert (stats.input_tokens, stats.duration_ms, stats.cost_usd) == (MAX_COUNT, MAX_COUNT, MAX_DOLLARS)


def costs_everywhere(core: Core, admin: Caller, order_id: str) -> tuple[list[float | None], float | None, float | None]:
    """The costs of the order's runs, of the order, and of its organization, which has no other."""
    order = reading.show_order(core, admin, order_id)
    everything = organizations.show(core, admin, "default").totals.cost_usd
    return [run.cost_usd for run in order.runs], order.stats.cost_usd, everything


def test_a_patch_over_a_megabyte_is_given_whole_and_not_shown(core: Core, admin: Caller, order_id: str) -> None:
    assert code_of(lambda: reading.patch_of(core, admin, order_id)) == "E-ORDER-PATCH"
    run_id = start_run(core, order_id)
    drone = managing.show_drone(core, admin, "anna")
    identity = AuthenticatedDrone(drone.id, admin.organization_id, drone.name)
    for patch, shown in ((b"+" * 1_000_001, None), (PATCH, PATCH.decode())):
        put_blob(core, identity, run_id, digest(patch), io.BytesIO(patch))
        with core.database.write() as db:
            db.execute(update(Order).values(result_run_id=run_id, patch_sha256=digest(patch), patch_bytes=len(patch)))
        assert reading.show_order(core, admin, order_id).patch == shown
        assert reading.patch_of(core, admin, order_id) == patch

    core.blobs.path(digest(PATCH)).unlink()
    assert reading.show_order(core, admin, order_id).patch is None
    assert code_of(lambda: reading.patch_of(core, admin, order_id)) == "E-BLOB-404"


STEPS: tuple[Body, ...] = (
    Prepared(base_commit="a" * 40),
    UserStep(text="mend it", source="prompt"),
    AssistantStep(
        text="I look.",
        tool_calls=(ToolCall(id="c1", name="shell", arguments='{"command": "ls"}'),),
        usage=Usage(cost_usd=None),
    ),
    ToolResultStep(call_id="c1", output="a\n(return code 0)", return_code=0),
    RunEnded(status="success", exit_status="stopped", reason="Done.", response="All is well."),
)


def test_a_run_at_work_has_a_trajectory_so_far(core: Core, admin: Caller, order_id: str) -> None:
    """In the order of its steps, and at its end a whole one."""
    assert code_of(lambda: trajectory_of(core, admin, order_id)) == "E-ORDER-TRAJECTORY"

    run_id = start_run(core, order_id)
    for numbers, roles in (((3, 2, 1), ["user", "assistant"]), ((5, 4), ["user", "assistant", "tool", "exit"])):
        for number in numbers:
            add_step(core, order_id, run_id, number, **STEPS[number - 1].model_dump(mode="json"))
        document = trajectory_of(core, admin, order_id)
        assert [message["role"] for message in document["messages"]] == roles
        assert document["info"]["model_stats"]["api_calls"] == 1
    told = document["info"]["dronefleet"]
    assert (told["order"], told["run"], told["exit_status"]) == (order_id, run_id, "stopped")
    assert document["info"]["submission"] == "All is well."
    assert document == trajectory_of(core, admin, order_id, run_id)
    other = submit(core, admin, "something else").id
    assert code_of(lambda: trajectory_of(core, admin, order_id, other)) == "E-ORDER-RUN"


def ids(core: Core, admin: Caller, **filters: Any) -> list[str]:
    return [order.id for order in reading.list_orders(core, admin, **filters)]


@pytest.mark.dialects
def test_orders_are_listed_newest_first_and_narrowed(core: Core, admin: Caller) -> None:
    """A text finds those with all of its words in any case, and signs mean themselves."""
    make_project(core, admin)
    make_project(core, admin, slug="shop")
    make_drone(core, admin)
    agents.create(core, admin, AgentRequest(name="lead", instructions_path="lead.md"))
    old = submit(core, admin, "Fix the 100% test: Übersicht").id
    new = submit(core, admin, "Fix the test_it", project="shop", labels={"gpu": "yes"}).id
    now, kim = core.clock.now(), users.add(core, admin, UserRequest(email="kim@example.org", name="Kim", role="viewer"))
    with core.database.write() as db:
        agent_id = db.execute(text("select id from agents")).scalar_one()
        before = {"created_at": now - timedelta(days=2), "model": "m/1", "agent_id": agent_id}
        before |= {"user": kim.name, "user_id": kim.id}
        db.execute(update(Order).where(Order.id == old).values(**before))
    today, day = now.date(), timedelta(days=1)
    found: list[tuple[dict[str, Any], list[str]]] = [
        ({}, [new, old]),
        ({"limit": 1}, [new]),
        ({"before": new[:10]}, [old]),
        ({"status": "queued"}, [new]),
        ({"project": "shop"}, [new]),
        ({"drone": "anna"}, [old]),
        ({"project": "shop", "drone": "anna"}, []),
        ({"since": today}, [new]),
        ({"until": today - day}, [old]),
        ({"since": today - 2 * day, "until": today}, [new, old]),
        ({"since": date.min, "until": date.max}, [new, old]),
        *(({name: value}, [old]) for name, value in (("model", "m/1"), ("agent", "lead"))),
        *(({"user": value}, [old]) for value in ("Kim", "Kim@Example.org", kim.id)),
        ({"text": "TEST fix"}, [new, old]),
        ({"text": "100%"}, [old]),
        ({"text": "0%t"}, []),
        ({"text": "t_it"}, [new]),
        ({"text": "übersicht"}, [old]),
        ({"text": old[:8]}, [old]),
    ]
    assert [(given, ids(core, admin, **given)) for given, _ in found] == found
    unknown = {"E-ORDER-STATUS": {"status": "done"}, "E-PROJECT-404": {"project": "x"}, "E-DRONE-404": {"drone": "x"}}
    for code, given in unknown.items():
        assert code_of(lambda given=given: ids(core, admin, **given)) == code
    other = Caller("000000000000", "other", "admin", "u")
    assert code_of(lambda: ids(core, other, before=new)) == "E-ORDER-404"

    end(core, old, steps=())
    managing.remove_drone(core, admin, "anna")
    assert ids(core, admin, drone="anna") == [old]


def test_a_unique_prefix_names_an_order_an_ambiguous_one_its_candidates_and_last_the_callers_newest(
    core: Core, admin: Caller
) -> None:
    make_project(core, admin)
    # Of 17 orders, at least two begin with the same of 16 digits.
    ids = [submit(core, admin, prompt=f"Task {number}\nwith details").id for number in range(17)]

    def beginning(prefix: str) -> list[str]:
        return [each for each in ids if each.startswith(prefix)]

    wanted = ids[0]
    prefix = next(wanted[:size] for size in range(1, 13) if beginning(wanted[:size]) == [wanted])
    assert [reading.show_order(core, admin, each).id for each in (prefix, prefix.upper())] == [wanted] * 2
    assert cancel(core, admin, wanted[:11]).id == wanted

    shared = next(each[0] for each in ids if len(beginning(each[0])) > 1)
    named = [f"{each} (Task {ids.index(each)})" for each in reversed(beginning(shared))]
    with pytest.raises(Invalid) as refused:
        reading.show_order(core, admin, shared)
    assert refused.value.code == "E-ID-AMBIGUOUS"
    assert refused.value.why == ", ".join(named[:5]) + (" and more" if len(named) > 5 else "")

    stranger = replace(admin, organization_id="0" * 12, organization="elsewhere")
    unknown = [(stranger, wanted[:11]), *((admin, each) for each in ("g", "%", "_", "aaaa11111111x", ""))]
    codes = [code_of(lambda who=who, name=name: reading.show_order(core, who, name)) for who, name in unknown]
    assert codes == ["E-ORDER-404"] * len(unknown)
    assert reading.show_order(core, admin, "@last").id == ids[-1]
    for other in (replace(admin, user="mila"), stranger):
        assert code_of(lambda other=other: reading.show_order(core, other, "@last")) == "E-ORDER-LAST"


def test_a_session_is_named_by_a_prefix_too(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    session = submit(core, admin).session
    assert sessions.show(core, admin, session[:6]).id == submit(core, admin, session=session[:6]).session == session
    with core.database.write() as db:
        old = db.get_one(ChatSession, session)
        copy = {column.key: getattr(old, column.key) for column in ChatSession.__table__.columns}
        db.add(ChatSession(**{**copy, "id": f"{session[:6]}000000"}))
    assert code_of(lambda: sessions.show(core, admin, session[:6])) == "E-ID-AMBIGUOUS"
