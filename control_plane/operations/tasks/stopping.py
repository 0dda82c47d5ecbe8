"""Preempt and cancel: take a task away from its current run (S-110, S-114).

The task and the order of its run change in one transaction, so that a crash cannot change one without the other.
Before it, as with every cancel, the run's key is withdrawn, so that no drone can claim the run after the record. If
this process dies in between, the task is still in progress, and the supervisor finds the withdrawn run and queues its
order again. The order ends with its drone's receipt, and only then does the task's next run begin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sqlalchemy.orm import Session

from control_plane.contract.declarations import tasks as declared
from control_plane.contract.declarations.task_documents import TaskCancelRequest, TaskDocument
from control_plane.contract.validation.checks import check_text
from control_plane.core import Caller, Core, EndedRun
from control_plane.core.lookups import tasks
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.teams import Agent, Task
from control_plane.operations.gateway import performs
from control_plane.operations.tasks import acting, reading
from control_plane.orders.cancel import MOVED, Observed, asked_by, record_cancel, until_unmoved, withdraw_key
from control_plane.orders.lost import announce
from control_plane.teams import system_notes
from control_plane.teams.claiming import claim_tasks, give_to_user
from shared.errors import Conflict
from shared.reasons import CancelAsked
from shared.states import ENDED, OrderStatus, TaskStatus

MAX_REASON = 1000
_T = TaskStatus


@dataclass(frozen=True)
class _Stopped:
    """The effect of an action on the run, if there was one."""

    note: str = ""
    run_id: str | None = None
    ended_run: EndedRun | None = None
    begun: tuple[str, ...] = ()


@performs(declared.PREEMPT)
def preempt(core: Core, caller: Caller, task_id: str) -> TaskDocument:
    """Assign a task in progress to the user immediately, and ask its run to stop (S-110). For operators.

    The answer names the run. Raises NotFound; Conflict if the task is not in progress.
    """

    def work(db: Session, task: Task, run_id: str | None) -> None:
        if task.status != _T.IN_PROGRESS:
            raise tasks.refused(task, "only a task in progress can be preempted")
        agent = db.get_one(Agent, task.assignee_id)
        give_to_user(db, core, task, _T.OPEN, system_notes.preempted(caller.user, agent.name), run_id)

    return _stop(core, caller, task_id, work, "the task was preempted")


@performs(declared.CANCEL)
def cancel(core: Core, caller: Caller, task_id: str, request: TaskCancelRequest) -> TaskDocument:
    """Cancel the task permanently, together with its run (S-114). For operators.

    Raises NotFound; Conflict for a task that is done or canceled.
    """
    reason = check_text("the reason", request.reason, limit=MAX_REASON, empty=True)

    def work(db: Session, task: Task, run_id: str | None) -> None:
        if task.status in {_T.DONE, _T.CANCELED}:
            raise tasks.refused(task, "only a task that has not ended can be canceled")
        acting.end(db, core, task, _T.CANCELED, system_notes.canceled(caller.user, reason), run_id)

    return _stop(core, caller, task_id, work, "the task was canceled")


Work = Callable[[Session, Task, str | None], None]
"""Changes the task; the id is that of its previous run, if any."""


def _stop(core: Core, caller: Caller, task_id: str, work: Work, why: str) -> TaskDocument:
    """In one transaction: do `work` on the task, cancel the order of its run, begin the tasks that may begin now."""

    def attempt() -> tuple[str | None, _Stopped]:
        order_id = _order_at_work(core, caller, task_id)
        seen = withdraw_key(core, order_id) if order_id is not None else None
        at_work = _Order(order_id, seen, why)
        return order_id, core.database.transact(partial(_write, core, caller, task_id, work, at_work))

    order_id, stopped = until_unmoved(attempt)
    announce(core, filter(None, (order_id, *stopped.begun)), [stopped.ended_run] if stopped.ended_run else [])
    document = reading.show(core, caller, task_id)
    note = "; ".join(filter(None, (stopped.note, reading.next_for(document))))
    return document.model_copy(update={"note": note, "stopped_run": stopped.run_id})


@dataclass(frozen=True)
class _Order:
    """The order of the current run when the run's key was withdrawn; without a run, `id` and `seen` are None."""

    id: str | None
    seen: Observed | None
    why: str


def _order_at_work(core: Core, caller: Caller, task_id: str) -> str | None:
    with core.database.read() as db:
        task = tasks.find_task(db, caller, task_id)
        return task.order_id if task.status == _T.IN_PROGRESS else None


def _write(core: Core, caller: Caller, task_id: str, work: Work, at_work: _Order, db: Session) -> _Stopped:  # noqa: PLR0913, PLR0917 - bound by `partial`
    """One transaction. It locks the order's row before the organization's, as does the intake of a run's end."""
    order = db.get_one(Order, at_work.id, with_for_update=True) if at_work.id is not None else None
    task = tasks.locked_task(db, caller, task_id)
    if task.status != _T.IN_PROGRESS:
        order = None
    elif order is None or order.id != task.order_id or (order.status, order.run_id) != _seen(at_work):
        raise Conflict(f"task {task.id} changed in the meantime", code=MOVED, next=f"fleet task show {task.id}")
    run_id = order.run_id if order is not None else None
    work(db, task, run_id)
    note, ended_run = _cancel_order(db, core, order, at_work, asked_by(caller, at_work.why)) if order else ("", None)
    begun = claim_tasks(db, core, caller.organization_id)
    return _Stopped(note, run_id, ended_run, tuple(begun))


def _seen(at_work: _Order) -> tuple[str, str | None] | None:
    return (at_work.seen.status, at_work.seen.run_id) if at_work.seen is not None else None


def _cancel_order(
    db: Session, core: Core, order: Order, at_work: _Order, asked: CancelAsked
) -> tuple[str, EndedRun | None]:
    """Cancel the order of the run. Returns a note for users, and the ended run for Flower."""
    ended_run = None
    if at_work.seen is not None and order.status not in {*ENDED, OrderStatus.CANCELING}:
        ended_run = record_cancel(db, core, order, at_work.seen.taken_back, asked)
    if order.status in ENDED:
        return f"run {order.run_id or f'of order {order.id}'} had not started and will not start", ended_run
    drone = db.get(Drone, order.drone_id) if order.drone_id else None
    where = f" on {drone.name}" if drone else ""
    return f"run {order.run_id}{where} is being stopped; the next run starts when it has ended", ended_run
