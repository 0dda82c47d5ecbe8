"""Run a failed or canceled order again: from its last checkpoint (`resume`), or from its beginning (`retry`)."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import or_, select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import orders as declared
from control_plane.contract.declarations.orders import ResumeRequest
from control_plane.contract.declarations.steering import SayRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.core import Caller, Core
from control_plane.db.orders import Order, SteeringMessage, Turn
from control_plane.db.sessions import ChatSession, SessionEntry
from control_plane.db.teams import Task
from control_plane.operations.gateway import performs
from control_plane.operations.orders.given_limits import own_limits
from control_plane.operations.orders.next_turn import alive_project, alive_provider
from control_plane.operations.orders.reading import order_summary
from control_plane.operations.orders.steering import check_said
from control_plane.orders.assignment import place_and_dispatch
from control_plane.orders.conversations.entries import locked
from control_plane.orders.conversations.history import way_to
from control_plane.orders.conversations.resumption import expected_resumption
from control_plane.orders.conversations.review_answers import send_turn_again
from control_plane.orders.reviewers import reviewer_again
from control_plane.orders.run_settings import set_limits
from control_plane.orders.status_changes import move_order, move_turn
from shared.errors import Conflict
from shared.reasons import AskedAgain, OrderFacts, Resumption
from shared.states import IN_HAND, OrderStatus, TaskStatus, TurnStatus

_MAY_RUN_AGAIN = (OrderStatus.FAILED, OrderStatus.CANCELED)
_HAS_BEGUN = (*IN_HAND, OrderStatus.CANCELING)


@performs(declared.RETRY)
def retry(core: Core, caller: Caller, order_id: str) -> OrderSummary:
    """Run a failed or canceled order from its beginning, in a fresh workspace.

    It stays the same order, with the same limits; the count of lost runs restarts. The retry is durable when this
    returns. Raises NotFound, Conflict for an order in another state or one that later turns of its session, or a fork,
    build on, and Precondition if the project or the provider was removed.
    """
    order_summary(core, caller, order_id)

    return _done(core, caller, order_id, lambda db: retry_within(db, core, caller, order_id))


def retry_within(db: Db, core: Core, caller: Caller, order_id: str) -> None:
    """As `retry`, in a transaction of the caller, who may see the order."""
    order = _of_the_ended(db, order_id, "retry")
    order.fresh_generation = order.generation
    _queue(db, core, order, AskedAgain(by=caller.user, from_start=True))


@performs(declared.RESUME)
def resume(core: Core, caller: Caller, order_id: str, request: ResumeRequest) -> OrderSummary:
    """Resume a failed or canceled order from its last checkpoint.

    Its limits count from zero again, and the request may change them; `say` is the first message to the run. If no
    checkpoint is available, the order starts from its beginning, and says so. Raises as `retry`, and Invalid for the
    contents of the request.
    """
    _check(request)
    order_summary(core, caller, order_id)

    def write(db: Db) -> None:
        order = _of_the_ended(db, order_id, "resume")
        order.renewed_generation = order.generation
        set_limits(order, own_limits(request))
        if request.say is not None:
            _say(db, core, caller, order, request.say)
        resumes = expected_resumption(db, order) or Resumption(why_not="nothing_done")
        _queue(db, core, order, AskedAgain(by=caller.user, resumes=resumes))

    return _done(core, caller, order_id, write)


def _of_the_ended(db: Db, order_id: str, what: str) -> Order:
    """The order, locked with its session. Raises Conflict or Precondition if it cannot run again.

    If its reviewer was removed, it gets the default one.
    """
    order = db.get_one(Order, order_id, with_for_update=True, populate_existing=True)
    if order.task_id is not None:
        raise _turn_of_a_task(order, db.get_one(Task, order.task_id), what)
    if order.status not in _MAY_RUN_AGAIN:
        raise _wrong_state(order, what)
    project = alive_project(db, order)
    # Services such as a push may have no provider, which is a removed one.
    if order.purpose == "work":
        alive_provider(db, order, project)
    _refuse_after_later_turns(db, order, project.slug, what)
    reviewer = reviewer_again(db, order, project)
    order.reviewer_id = reviewer.id if reviewer is not None else None
    return order


def _turn_of_a_task(order: Order, task: Task, what: str) -> Conflict:
    match task.status:
        case TaskStatus.OPEN:
            next_ = f"fleet task assign {task.id} AGENT    continues from the work of its last run"
        case TaskStatus.FAILED | TaskStatus.DONE:
            next_ = f"fleet task retry {task.id}    continues from the work of its last run"
        case _:
            next_ = f"fleet task show {task.id}"
    return Conflict(
        f"order {order.id} is a turn of task {task.id}; {what} is for orders submitted by users",
        code="E-ORDER-TASK",
        why="the task's thread decides whose turn is next; a retry is a new turn",
        next=next_,
    )


def _wrong_state(order: Order, what: str) -> Conflict:
    done = order.status == OrderStatus.SUCCEEDED
    follow = f"fleet cancel {order.id}" if order.status == OrderStatus.CANCELING else f"fleet follow {order.id}"
    return Conflict(
        f"order {order.id} is {order.status}; {what} is for orders that failed or were canceled",
        code="E-ORDER-STATE",
        why="it succeeded" if done else order.reason,
        next=f"fleet submit 'what remains to be done' --project … --session {order.session_id}" if done else follow,
    )


def _refuse_after_later_turns(db: Db, order: Order, project: str, what: str) -> None:
    """Turns of one session run in the order of submission: the history that a later turn saw must not change."""
    chat = locked(db, order.session_id)
    later = select(Order).where(Order.session_id == order.session_id, Order.number > order.number)
    seen = {entry.order_id for entry in way_to(db, chat.leaf_id)}
    in_the_way = [each for each in db.scalars(later.order_by(Order.number)) if each.id in seen or _begun(each)]
    fork = _fork_after(db, order)
    if in_the_way or fork is not None:
        follower, why = f"fork {fork}", "the conversation and the files of the fork would no longer fit together"
        if in_the_way:
            follower, why = f"order {in_the_way[0].id}", "that turn and its work would no longer be part of the session"
        raise Conflict(
            f"cannot {what} order {order.id}: its session has continued with {follower}",
            code="E-ORDER-LATER",
            why=why,
            next=f"fleet session fork {order.session_id} --at {order.id}    then: "
            f"fleet submit 'continue' --project {project} --session THE_FORK",
        )


def _fork_after(db: Db, order: Order) -> str | None:
    """A fork of the order's session that continues from the order's turn, or has a turn that did."""
    own = select(SessionEntry.id).where(SessionEntry.order_id == order.id, SessionEntry.kind == "turn")
    turns = select(SessionEntry.id).where(SessionEntry.session_id == ChatSession.id, SessionEntry.kind == "turn")
    continues = or_(ChatSession.leaf_id.in_(own), turns.where(SessionEntry.parent_id.in_(own)).exists())
    forks = select(ChatSession.id).where(ChatSession.forked_from_id.is_not(None), ChatSession.id != order.session_id)
    return db.scalar(forks.where(continues).order_by(ChatSession.created_at).limit(1))


def _begun(order: Order) -> bool:
    return order.status in _HAS_BEGUN or (order.status == OrderStatus.QUEUED and order.attempt > 0)


def _queue(db: Db, core: Core, order: Order, asked: AskedAgain) -> None:
    """Queue order and turn again. The results so far stay readable until the next run replaces them.

    Branch and head stay too: a push is compared with the last known state of the branch on the remote.
    """
    order.lost_runs = 0
    move_order(
        db,
        order,
        OrderStatus.QUEUED,
        OrderFacts(returned=asked),
        drone_id=None,
        run_id=None,
        grant_until=None,
        exit_status=None,
        verification=None,
        response=None,
        receipt=None,
        ended_at=None,
        run_again_at=core.clock.now(),
    )
    turn = db.scalar(select(Turn).where(Turn.order_id == order.id))
    if turn is not None and turn.status != TurnStatus.PROCESSING:
        move_turn(db, turn, TurnStatus.PROCESSING, response=None, stats={}, ended_at=None)
    send_turn_again(db, core, order)
    place_and_dispatch(db, core, order)


def _say(db: Db, core: Core, caller: Caller, order: Order, text: str) -> None:
    db.add(
        SteeringMessage(
            organization_id=order.organization_id, order_id=order.id, user=caller.user, text=text, at=core.clock.now()
        )
    )
    db.flush()


def _done(core: Core, caller: Caller, order_id: str, write: Callable[[Db], None]) -> OrderSummary:
    core.database.transact(write)
    core.broker.changed(order_id)
    return order_summary(core, caller, order_id)


def _check(request: ResumeRequest) -> None:
    own_limits(request)
    if request.say is not None:
        check_said(SayRequest(text=request.say))
