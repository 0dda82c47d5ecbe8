"""Submitting a work order, on each kind of database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import select

from control_plane.core import Caller, Core
from control_plane.db.orders import Dispatch, Order, Turn
from control_plane.declarations.providers import ProviderRequest
from control_plane.documents.orders import SubmitRequest
from control_plane.operations import providers
from control_plane.operations.orders import reading
from shared.errors import Conflict, Forbidden, Invalid, NotFound, Precondition, TooLarge
from shared.reasons import DroneLabels, DroneState, EarlierOrder, InQueue, NoDrone, NoDroneFits, Waits
from tests.support.made import later, make_drone, make_project, submit
from tests.support.turns import order_as_sent


def test_an_order_is_assigned_to_the_only_drone_and_has_a_turn_and_an_outbox_row(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    drone = make_drone(core, admin)
    order = submit(core, admin)
    with core.database.read() as db:
        dispatch, turn = db.scalars(select(Dispatch)).one(), db.scalars(select(Turn)).one()
    assert (order.status, order.drone, order.generation) == ("assigned", "anna", 1)
    assert (dispatch.order_id, dispatch.drone_id, dispatch.published_at) == (order.id, drone.drone_id, None)
    assert (turn.order_id, turn.prompt, turn.status) == (order.id, "mend it", "processing")


def test_the_document_of_a_new_order_has_every_field_with_null_for_what_is_unknown(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    document = submit(core, admin, max_iterations=7).model_dump()
    assert document["project"] == "web"
    assert document["provider"] == "local"
    assert document["organization"] == "default"
    assert document["stats"]["cost_usd"] == 0
    assert [document[name] for name in ("patch", "branch", "response", "exit_status", "receipt", "drone")] == [None] * 6
    assert (document["runs"], document["steps"], document["late_refs"]) == ([], [], [])


def waits(core: Core, order_id: str) -> Waits | None:
    """What the order waits for."""
    with core.database.read() as db:
        return db.get_one(Order, order_id).facts.waits


def test_an_order_without_any_drone_waits_and_says_what_would_change_that(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    order = submit(core, admin)
    assert order.status == "queued"
    assert waits(core, order.id) == NoDrone()


def test_an_order_with_a_label_that_no_drone_has_is_taken_and_says_so(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    order = submit(core, admin, labels={"gpu": "yes"})
    assert order.status == "queued"
    assert waits(core, order.id) == NoDroneFits(labels=("gpu=yes",), fleet=(DroneLabels(drone="anna"),))


def test_an_order_for_a_drone_that_is_offline_waits_in_its_queue_and_says_so(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin, last_seen_at=None)
    order = submit(core, admin, drone="anna")
    assert (order.status, order.drone) == ("assigned", "anna")
    assert waits(core, order.id) == InQueue(state=DroneState(drone="anna", code="never_started"))


def test_a_later_order_of_a_session_waits_for_the_earlier_one(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    first = submit(core, admin)
    second = submit(core, admin, session=first.session)
    assert second.status == "queued"
    assert waits(core, second.id) == EarlierOrder(order=first.id)


def test_a_session_keeps_its_mode_and_an_order_may_have_another(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first = submit(core, admin, mode="plan")
    second = submit(core, admin, session=first.session)
    third = submit(core, admin, session=first.session, mode="test")
    assert (first.mode, second.mode, third.mode) == ("plan", "plan", "test")


@pytest.mark.parametrize(("verify", "sent"), [(None, ("pytest -q",)), (["make 'it'"], ("make 'it'",)), ([], ())])
def test_the_checks_of_an_order_replace_those_of_its_project(
    core: Core, admin: Caller, verify: list[str] | None, sent: tuple[str, ...]
) -> None:
    make_project(core, admin, verify=["pytest -q"])
    make_drone(core, admin)
    order = submit(core, admin, verify=verify)
    assert (order.verify, order_as_sent(core, order.id).project.verify) == (verify, sent)


@pytest.mark.parametrize(
    ("verify", "code"),
    [([""], "E-EMPTY"), (["a\0"], "E-TEXT"), (["x" * 10_001], "E-TOO-LONG"), (["x"] * 51, "E-COMMANDS")],
)
def test_checks_that_are_no_commands_are_refused(core: Core, admin: Caller, verify: list[str], code: str) -> None:
    make_project(core, admin)
    with pytest.raises((Invalid, TooLarge)) as refusal:
        submit(core, admin, verify=verify)
    assert refusal.value.code == code
    assert reading.list_orders(core, admin) == []


def test_no_checks_is_another_request_than_those_of_the_project(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    submit(core, admin, key="one")
    with pytest.raises(Conflict):
        submit(core, admin, key="one", verify=[])


@pytest.mark.parametrize("prompt", ["", "  \n\t "])
def test_an_empty_prompt_is_refused(core: Core, admin: Caller, prompt: str) -> None:
    make_project(core, admin)
    with pytest.raises(Invalid) as refusal:
        submit(core, admin, prompt=prompt)
    assert refusal.value.code == "E-ORDER-PROMPT"
    assert reading.list_orders(core, admin) == []


def test_a_prompt_of_a_megabyte_is_refused_with_the_limit_and_a_way_out(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    with pytest.raises(TooLarge, match="1,000,000 characters; 200,000 are allowed") as refusal:
        submit(core, admin, prompt="x" * 1_000_000)
    assert "in a file of the repository" in refusal.value.next
    assert refusal.value.exit_code == 2


def test_a_prompt_with_any_other_character_comes_back_as_it_was(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    prompt = "Grüße 🛸 'quoted' \"too\" \\ \x1b[31m %s $1 ; DROP TABLE orders\n" * 100
    order = submit(core, admin, prompt=prompt)
    assert reading.show_order(core, admin, order.id).prompt == prompt


@pytest.mark.parametrize("prompt", ["a\0b", "half of a pair: \ud83d"])
def test_a_prompt_that_is_no_text_is_refused(core: Core, admin: Caller, prompt: str) -> None:
    make_project(core, admin)
    with pytest.raises((Invalid, ValueError), match="contains a NUL character or an unpaired surrogate"):
        submit(core, admin, prompt=prompt)


@pytest.mark.parametrize("key", ["", " ", "k" * 256, "a\0b"])
def test_an_idempotency_key_that_cannot_be_stored_is_refused(core: Core, admin: Caller, key: str) -> None:
    make_project(core, admin)
    with pytest.raises((Invalid, TooLarge), match="the idempotency key"):
        submit(core, admin, key=key)


@pytest.mark.parametrize(
    ("fields", "code", "guess"),
    [
        ({"project": "wbe"}, "E-PROJECT-404", "did you mean web?"),
        ({"provider": "locla"}, "E-PROVIDER-404", "did you mean local?"),
        ({"drone": "ana"}, "E-DRONE-404", "did you mean anna?"),
        ({"session": "000000000000"}, "E-SESSION-404", "start a new session"),
    ],
)
def test_an_unknown_name_is_answered_with_the_near_ones(
    core: Core, admin: Caller, fields: dict[str, str], code: str, guess: str
) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    with pytest.raises(NotFound) as refusal:
        submit(core, admin, **fields)
    assert refusal.value.code == code
    assert guess in refusal.value.next


def test_of_an_endless_name_only_the_start_is_repeated(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    with pytest.raises(NotFound) as refusal:
        submit(core, admin, project="x" * 10_000)
    assert len(refusal.value.what) < 120


def test_a_session_of_another_project_is_refused(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_project(core, admin, slug="shop")
    other = submit(core, admin, project="shop")
    with pytest.raises(Conflict, match="belongs to project shop, not to web"):
        submit(core, admin, session=other.session)


def test_without_a_default_the_organizations_only_provider_is_taken(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    order = submit(core, admin)
    assert (order.provider, order.model) == ("local", "openai/scripted")


def test_the_projects_provider_goes_before_the_others(core: Core, admin: Caller) -> None:
    providers.add(core, admin, ProviderRequest(name="other", model="openai/y"))
    providers.add(core, admin, ProviderRequest(name="local", model="openai/x"))
    make_project(core, admin, provider="other")
    assert submit(core, admin).provider == "other"
    assert submit(core, admin, provider="local").provider == "local"


def test_with_two_providers_and_no_default_one_has_to_be_named(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    providers.add(core, admin, ProviderRequest(name="other", model="openai/y"))
    with pytest.raises(Precondition) as refusal:
        submit(core, admin)
    assert refusal.value.exit_code == 2
    assert "--provider" in refusal.value.next


def test_the_same_key_with_the_same_request_gives_the_same_order(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first, second = submit(core, admin, key="k1"), submit(core, admin, key="k1")
    assert first == second
    assert len(reading.list_orders(core, admin)) == 1


def test_one_key_sent_by_many_at_once_makes_one_order(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda _: submit(core, admin, key="k1").id, range(6)))
    assert len(set(made)) == 1
    assert len(reading.list_orders(core, admin)) == 1


def test_orders_of_one_session_submitted_at_once_stand_in_one_line(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    session = submit(core, admin).session
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: submit(core, admin, session=session), range(4)))
    assert sorted(order.status for order in reading.list_orders(core, admin)) == ["assigned", *["queued"] * 4]


def test_the_same_key_with_another_request_is_a_conflict(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first = submit(core, admin, key="k1")
    with pytest.raises(Conflict, match=first.id):
        submit(core, admin, prompt="something else", key="k1")


def test_a_key_may_be_used_again_after_seven_days(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first = submit(core, admin, key="k1")
    later(core, days=7)
    assert submit(core, admin, prompt="something else", key="k1").id != first.id


def test_one_second_before_seven_days_the_key_still_holds(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first = submit(core, admin, key="k1")
    later(core, seconds=timedelta(days=7).total_seconds() - 1)
    assert submit(core, admin, key="k1").id == first.id


def test_orders_are_numbered_in_the_order_of_their_submission(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    ids = [submit(core, admin).id for _ in range(3)]
    with core.database.read() as db:
        numbered = db.execute(select(Order.id, Order.number).order_by(Order.number)).all()
    assert numbered == list(zip(ids, (1, 2, 3), strict=True))


def test_a_request_that_is_refused_leaves_nothing_behind(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    with pytest.raises(NotFound):
        submit(core, admin, drone="nobody")
    with core.database.read() as db:
        assert db.scalars(select(Order)).all() == []
        assert db.scalars(select(Turn)).all() == []


def test_a_drone_and_labels_together_are_refused(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    with pytest.raises(Invalid) as refusal:
        submit(core, admin, drone="anna", labels={"gpu": "yes"})
    assert refusal.value.code == "E-ORDER-PLACE"


def test_an_endless_cost_limit_is_refused(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    with pytest.raises(Invalid, match="cost_limit must be a finite number"):
        submit(core, admin, cost_limit=float("inf"))


def test_a_viewer_cannot_submit_and_is_told_which_role_it_needs(core: Core, admin: Caller) -> None:
    viewer = Caller(admin.organization_id, admin.organization, "viewer", "someone")
    with pytest.raises(Forbidden, match="requires the role operator; your token has the role viewer"):
        reading.submit(core, viewer, SubmitRequest(prompt="p", project="web"))
