"""Request a pull request manually, for an order or for a task."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import pull_requests as declared
from control_plane.contract.declarations.pull_requests import PullRequestRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.contract.validation.checks import check_text, shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.tasks import find_task
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.operations.gateway import performs
from control_plane.operations.orders.reading import order_summary
from control_plane.services import pull_requests as services
from shared.errors import Conflict, FleetError, NotFound, Precondition
from shared.states import ENDED

MAX_TITLE = 250
"""Characters; hosts accept 255."""
DEFAULT = PullRequestRequest()


@performs(declared.FOR_ORDER)
def for_order(core: Core, caller: Caller, order_id: str, request: PullRequestRequest = DEFAULT) -> OrderSummary:
    """Request a pull request for an order.

    The order's `pull_request` is `asked` first, and later holds the outcome. A pull request that is already open from
    that branch is updated. Raises NotFound, Conflict while it is too early, Precondition without a branch on the
    remote.
    """
    return _ask(core, caller, lambda db: _order(db, caller, order_id), request)


@performs(declared.FOR_TASK)
def for_task(core: Core, caller: Caller, task_id: str, request: PullRequestRequest = DEFAULT) -> OrderSummary:
    """The same from the newest branch of a task's runs; returns the order of that branch."""
    return _ask(core, caller, lambda db: _newest(db, caller, task_id), request)


def _ask(core: Core, caller: Caller, find: Callable[[Session], Order], request: PullRequestRequest) -> OrderSummary:
    title = _title(request.title)

    def work(db: Session) -> tuple[str, str]:
        order = find(db)
        _check(db, order)
        asked = services.wording(db, order, title=title, draft=request.draft)
        return order.id, services.ask(db, core, order, asked, caller.user).id

    order_id, service_id = core.database.transact(work)
    core.broker.changed(service_id)
    core.broker.changed(order_id)
    return order_summary(core, caller, order_id)


def _title(text: str | None) -> str | None:
    return " ".join(check_text("the title", text, limit=MAX_TITLE).split()) if text is not None else None


def _order(db: Session, caller: Caller, order_id: str) -> Order:
    """The order, locked. Raises NotFound."""
    orders = select(Order).where(Order.organization_id == caller.organization_id).with_for_update()
    order = db.scalar(orders.where(Order.id == order_id))
    if order is None:
        raise NotFound(f"order {shown(order_id)} not found", code="E-ORDER-404", next="fleet orders")
    return order


def _newest(db: Session, caller: Caller, task_id: str) -> Order:
    """The task's newest order with a branch, locked. Raises NotFound and Precondition."""
    task = find_task(db, caller, task_id)
    turns = select(Order).where(Order.task_id == task.id, Order.head_commit.is_not(None), Order.purpose == "work")
    order = db.scalar(turns.order_by(Order.number.desc()).limit(1).with_for_update())
    if order is None:
        raise Precondition(
            f"task {task.id} has no branch yet",
            code="E-PULL-REQUEST-BRANCH",
            why="none of its completed runs changed files",
            next=f"fleet task show {task.id}",
        )
    return order


def _check(db: Session, order: Order) -> None:
    """Return if the order has a branch on the remote, and no pull request for it is about to be opened.

    Raises Conflict and Precondition.
    """
    if order.purpose != "work":
        raise Precondition(f"order {order.id} is a service order and has no branch", code="E-PULL-REQUEST-BRANCH")
    if order.status not in ENDED:
        raise Conflict(
            f"order {order.id} is {order.status}; a pull request requires an order that has ended",
            code="E-PULL-REQUEST-EARLY",
            next=f"fleet follow {order.id}",
        )
    if order.head_commit is None or not order.pushed:
        raise _no_branch(order)
    if db.get_one(Project, order.project_id).removed_at is not None:
        raise Precondition("the order's project was removed", code="E-PROJECT-REMOVED", next="fleet project ls")
    there = order.pull_request or {}
    if there.get("state") == "asked":
        service = db.get(Order, there.get("order"))
        if service is not None and service.status not in ENDED:
            raise Conflict(
                f"the pull request of order {order.id} is being opened: order {service.id} is {service.status}",
                code="E-PULL-REQUEST-EARLY",
                why=service.reason,
                next=f"fleet follow {service.id}",
            )


def _no_branch(order: Order) -> FleetError:
    if order.head_commit is None:
        return Precondition(
            f"order {order.id} changed no files; nothing to open a pull request for",
            code="E-PULL-REQUEST-BRANCH",
            next=f"fleet show {order.id}",
        )
    return Precondition(
        f"the branch of order {order.id} is not on the remote",
        code="E-PULL-REQUEST-BRANCH",
        why=order.push_error or "it was not pushed",
        next=f"fleet session checkout {order.session_id}    fetches the work; then push it yourself",
    )
