"""Races: submit, read, decide and cancel them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import races as declared
from control_plane.contract.declarations.orders import CancelRequest, SubmitRequest
from control_plane.contract.declarations.races import RaceDocument, RaceRequest, RaceStatus, RaceSummary, TakeRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.contract.validation.checks import check_text, shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.groups import find_group
from control_plane.core.lookups.ids import full_order_id
from control_plane.core.lookups.providers import find_provider_or_model
from control_plane.db.drones import Drone
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.money.spending.accounts import accounts_of, budgets_of
from control_plane.operations.gateway import performs
from control_plane.operations.groups import cancel_open, cost_of, submit_once
from control_plane.operations.orders.canceling import cancel_unfinished
from control_plane.operations.orders.next_turn import alive_project
from control_plane.operations.orders.reading import orders_of_groups
from control_plane.operations.orders.submitting import check_request, draft_of
from control_plane.orders.draft import create_order
from control_plane.orders.placement import fits
from control_plane.services import judging, stored_work
from shared.amounts import dollars, reserved
from shared.errors import Conflict, Invalid, NotFound, Precondition
from shared.outcome import OrderOutcome
from shared.states import OrderStatus
from shared.titles import title

_RACE = set(RaceRequest.model_fields) - set(SubmitRequest.model_fields)


@performs(declared.SUBMIT)
def submit(core: Core, caller: Caller, request: RaceRequest, idempotency_key: str | None = None) -> RaceDocument:
    """Submit a race; its orders are durable when this returns.

    Raises Invalid for a request that is no race, Precondition if the project has nothing that verifies work, if there
    are too few drones, or if a budget would not last for all orders; and as `submit` for a single order.
    """
    base = SubmitRequest(**request.model_dump(exclude=_RACE))
    check_request(base, idempotency_key)
    number = _number(request)
    if request.rubric is not None:
        check_text("the rubric", request.rubric, limit=declared.MAX_RUBRIC)

    def write(db: Db, race: OrderGroup) -> Sequence[str]:
        race.pick, race.rubric = request.pick, request.rubric
        providers: Sequence[str | None] = [
            find_provider_or_model(db, caller.organization_id, each).name for each in request.models
        ] or [request.provider] * number
        orders = []
        for index, provider in enumerate(providers):
            draft = draft_of(db, core, caller, base.model_copy(update={"provider": provider}))
            key = chr(ord("A") + index)
            draft.session.name = f"{title(request.prompt)} ({key})"
            orders.append(create_order(db, core, replace(draft, group_id=race.id, group_key=key)))
        _check_verify(db.get_one(Project, orders[0].project_id), request)
        _check_drones(db, orders[0])
        _check_budgets(db, core, orders)
        return [order.id for order in orders]

    race_id = submit_once(core, caller, ("race", "", request, idempotency_key), write)
    return show(core, caller, race_id)


@performs(declared.LIST)
def list_(core: Core, caller: Caller, limit: int = 50) -> list[RaceSummary]:
    """The organization's races, newest first."""
    with core.database.snapshot() as db:
        wanted = select(OrderGroup).where(
            OrderGroup.organization_id == caller.organization_id, OrderGroup.kind == "race"
        )
        rows = db.scalars(wanted.order_by(OrderGroup.created_at.desc(), OrderGroup.id).limit(limit)).all()
        orders = orders_of_groups(db, core, caller, [row.id for row in rows])
        return [_summary(db, row, orders[row.id]) for row in rows]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, race_id: str) -> RaceDocument:
    """A race with its orders. Raises NotFound, and Invalid for an ambiguous prefix."""
    # What one transaction writes to a race, its orders and those that judge or push is read together.
    with core.database.snapshot() as db:
        row = find_group(db, caller, "race", race_id)
        orders = orders_of_groups(db, core, caller, [row.id])[row.id]
        return RaceDocument(race=_summary(db, row, orders), orders=orders)


@performs(declared.TAKE)
def take(core: Core, caller: Caller, race_id: str, request: TakeRequest) -> RaceDocument:
    """Make an order the winner: its branch is pushed, and the others, and the one that judges, are canceled.

    Taking the winner again has no effect. Raises NotFound, Conflict for an order without work, and if another order has
    won, and Precondition if the project was removed.
    """

    def work(db: Db) -> tuple[str, str, str | None]:
        race = find_group(db, caller, "race", race_id, lock=True)
        order = _order_of(db, caller, race, request.order)
        if race.winner_id != order.id:
            _refuse(db, race, order)
            judging.take(db, core, race, order, caller.user)
        return race.id, order.id, race.judge_id

    found, order_id, judge_id = core.database.transact(work)
    core.broker.changed(order_id)
    if judge_id is not None:
        cancel_unfinished(core, caller, judge_id, f"order {order_id} was taken")
    return show(core, caller, found)


@performs(declared.CANCEL)
def cancel(core: Core, caller: Caller, race_id: str, request: CancelRequest | None = None) -> RaceDocument:
    """Cancel the race's orders that have not ended, and the order that judges; a user may still take one.

    Raises as `show`.
    """

    def unjudge(db: Db) -> str | None:
        race = find_group(db, caller, "race", race_id, lock=True)
        if race.pick == "judge" and race.winner_id is None:
            race.pick = "person"
        return race.judge_id

    judge_id = core.database.transact(unjudge)
    found = show(core, caller, race_id)
    reason = request.reason if request is not None and request.reason else f"with race {found.race.id}"
    cancel_open(core, caller, found.orders, reason)
    if judge_id is not None:
        cancel_unfinished(core, caller, judge_id, reason)
    return show(core, caller, found.race.id)


def _number(request: RaceRequest) -> int:
    """How many orders the race has. Raises Invalid."""
    if request.models and request.count not in {None, len(request.models)}:
        raise Invalid(
            f"{len(request.models)} models and {request.count} orders were given",
            code="E-RACE-SIZE",
            next="name the models, or say how many orders to start",
        )
    number = len(request.models) or request.count or 0
    if number < 2 or len(set(request.models)) != len(request.models):
        raise Invalid(
            "a race needs at least two orders, each with another drone or another model",
            code="E-RACE-SIZE",
            next="fleet submit … --race 3    or: --models A,B",
        )
    if request.session is not None:
        raise Invalid(
            "the orders of a race have sessions of their own, so they cannot continue one",
            code="E-RACE-SESSION",
            next="fleet submit … --race 3 --after ORDER    starts from the work of an order",
        )
    if request.rubric is not None and request.pick != "judge":
        raise Invalid("only a judging order reads a rubric", code="E-RACE-RUBRIC", next="add --pick judge")
    return number


def _check_verify(project: Project, request: RaceRequest) -> None:
    if request.pick == "first" and not (project.verify if request.verify is None else request.verify):
        raise Precondition(
            f"project {project.slug} has no commands that verify work, so no order could win",
            code="E-RACE-VERIFY",
            next=f"fleet project edit {project.slug} --verify 'pytest -q'    or decide yourself: --pick person",
        )


def _check_drones(db: Db, order: Order) -> None:
    """Raise Precondition unless two orders could run at the same time on the drones that fit."""
    if order.wanted_drone_id is not None:
        drones: Sequence[Drone] = [db.get_one(Drone, order.wanted_drone_id)]
    else:
        living = db.scalars(select(Drone).where(Drone.removed_at.is_(None))).all()
        drones = [drone for drone in living if fits(drone, order)]
    slots = sum(drone.concurrency for drone in drones)
    if slots < 2:
        which = f"{drones[0].name} has one" if drones else "there is none"
        raise Precondition(
            f"a race needs two slots on drones that fit, and {which}",
            code="E-RACE-DRONES",
            why="its orders would run one after the other",
            next="register another drone: fleet token add    then on a workstation: drone register",
        )


def _check_budgets(db: Db, core: Core, orders: Sequence[Order]) -> None:
    """Raise Precondition if a budget has less left than all orders may cost together."""
    limits = [float(order.limits.get("cost_limit", 0.0)) for order in orders]
    needed = reserved(sum(limits))
    for account in accounts_of(db, budgets_of(db, orders[0]), core.clock.now()):
        if account.left < needed:
            kind, each = account.budget.kind, dollars(max(account.left, 0)) / len(orders)
            raise Precondition(
                f"the budget of the {kind} does not last for this race: {len(orders)} orders may cost "
                f"${sum(limits):.2f}, and ${dollars(account.left):.2f} are left",
                code="E-RACE-BUDGET",
                next=f"lower the limit of each order: --cost-limit {each:.2f}    or raise the budget: fleet budget ls",
            )


def _order_of(db: Db, caller: Caller, race: OrderGroup, written: str) -> Order:
    """The race's order with this id or letter. Raises NotFound."""
    orders = db.scalars(select(Order).where(Order.group_id == race.id)).all()
    by_letter = {order.group_key: order for order in orders}
    if written.upper() in by_letter:
        return by_letter[written.upper()]
    wanted = full_order_id(db, caller, written)
    for order in orders:
        if order.id == wanted:
            return order
    raise NotFound(
        f"order {shown(written)} is not in race {race.id}", code="E-ORDER-404", next=f"fleet race show {race.id}"
    )


def _refuse(db: Db, race: OrderGroup, order: Order) -> None:
    """Raise Conflict unless the order may be taken, Precondition if there is no project to push it to."""
    if order.head_commit is None or order.ended_at is None:
        raise Conflict(
            f"order {order.id} has no work that can be taken: it is {order.status}",
            code="E-RACE-TAKE",
            why="it changed nothing" if order.ended_at is not None else "it has not ended yet",
            next=f"fleet race show {race.id}",
        )
    winner = db.get(Order, race.winner_id) if race.winner_id is not None else None
    if winner is not None and not _failed_as_winner(race, winner):
        raise Conflict(
            f"race {race.id} is decided: order {winner.id} won",
            code="E-RACE-DECIDED",
            next=f"fleet patch {order.id} | git apply    uses the work of the other order",
        )
    alive_project(db, order)


def _summary(db: Db, race: OrderGroup, orders: Sequence[OrderSummary]) -> RaceSummary:
    status, reason = _state(db, race, orders)
    first = orders[0]
    return RaceSummary(
        id=race.id,
        status=status,
        outcome=_outcome(status, race, orders),
        reason=reason,
        title=first.title,
        project=first.project,
        pick=race.pick or "first",
        winner=race.winner_id,
        judge=race.judge_id,
        base_commit=race.base_commit or None,
        user=race.user,
        created_at=race.created_at,
        total=len(orders),
        cost_usd=cost_of(orders),
    )


def _outcome(status: RaceStatus, race: OrderGroup, orders: Sequence[OrderSummary]) -> OrderOutcome | None:
    if status == "won":
        return next(order.outcome for order in orders if order.id == race.winner_id)
    return {"failed": OrderOutcome.FAILED, "canceled": OrderOutcome.CANCELED}.get(status)


def _state(db: Db, race: OrderGroup, orders: Sequence[OrderSummary]) -> tuple[RaceStatus, str]:
    """The state of the race, and one sentence about it."""
    winner = next((order for order in orders if order.id == race.winner_id), None)
    if winner is not None:
        return _decided(db, race, winner, orders)
    open_ones = [order for order in orders if order.ended_at is None]
    if open_ones:
        waits = {"first": "the first verified work wins", "judge": "then they are judged"}
        return (
            "running",
            f"{len(open_ones)} of {len(orders)} orders run; {waits.get(race.pick or '', 'then you take one')}",
        )
    if all(order.status == OrderStatus.CANCELED for order in orders):
        return "canceled", "all orders were canceled"
    with_work = _to_take(orders)
    if not with_work:
        return "failed", "no order left work that can be taken"
    if _is_judged(db, race, with_work):
        judge = f"order {race.judge_id}" if race.judge_id is not None else "an order"
        return "judging", f"{judge} compares the work of {len(with_work)} orders"
    named = "" if race.pick == "person" else "no order was taken; "
    return "undecided", f"{named}take one (next: fleet race take {race.id} {with_work[0].key})"


def _to_take(orders: Iterable[OrderSummary]) -> list[OrderSummary]:
    """The orders whose work can be taken; those that succeeded come first."""
    with_work = (order for order in orders if order.head_commit is not None)
    return sorted(with_work, key=lambda order: order.status != OrderStatus.SUCCEEDED)


def _decided(db: Db, race: OrderGroup, winner: OrderSummary, orders: Sequence[OrderSummary]) -> tuple[RaceStatus, str]:
    left = sum(order.ended_at is None for order in orders if order.id != winner.id)
    ending = f"; {left} others are being canceled" if left else ""
    if winner.ended_at is None:
        return "running", f"order {winner.key} is verified, and delivers its work{ending}"
    if _failed_as_winner(race, winner):
        others = _to_take(order for order in orders if order.id != winner.id)
        advice = f" (next: fleet race take {race.id} {others[0].key})" if others else ""
        return "undecided" if others else "failed", f"order {winner.key} won, but {winner.status}{advice}"
    if _is_being_pushed(db, winner):
        return "running", f"order {winner.key} won, and its branch is being pushed{ending}"
    where = winner.branch if winner.pushed else winner.push_error or "its work is not pushed"
    return "won", f"order {winner.key} won: {where}{ending}"


def _failed_as_winner(race: OrderGroup, winner: Order | OrderSummary) -> bool:
    """Whether it failed or was canceled after its work had won. One that was taken had ended before."""
    return race.pick == "first" and winner.status in {OrderStatus.FAILED, OrderStatus.CANCELED}


def _is_being_pushed(db: Db, winner: OrderSummary) -> bool:
    """Whether the branch of a winner that was taken after its end is on its way."""
    if winner.pushed or winner.branch is None:
        return False
    return stored_work.is_being_pushed(db, db.get_one(Order, winner.id))


def _is_judged(db: Db, race: OrderGroup, with_work: Sequence[OrderSummary]) -> bool:
    """Whether an order compares the work of the race, or is about to be created for that."""
    if race.judge_id is None:
        return race.pick == "judge" and any(order.status == OrderStatus.SUCCEEDED for order in with_work)
    judge = db.get(Order, race.judge_id)
    return judge is not None and judge.ended_at is None
