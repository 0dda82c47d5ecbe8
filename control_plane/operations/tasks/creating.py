"""Create tasks: each gets an id from the organization's counter, a separate workspace and an assignee."""

from __future__ import annotations

from sqlalchemy.orm import Session as Db

from control_plane.core import Caller, Core
from control_plane.db.audit_chain import concerns
from control_plane.declarations import tasks as declared
from control_plane.declarations.task_documents import TaskDocument, TaskRequest
from control_plane.operations.gateway import performs
from control_plane.operations.tasks import reading
from control_plane.teams.new_task import check_request, create_within


@performs(declared.ADD)
def create(core: Core, caller: Caller, request: TaskRequest) -> TaskDocument:
    """Create a task; its first run begins as soon as the limits permit (S-022). For operators.

    Raises Invalid and TooLarge for the texts, NotFound for project and assignee, Precondition without a project or an
    agent to choose.
    """
    check_request(request)

    def work(db: Db) -> tuple[str, str | None]:
        task = create_within(db, core, caller, request)
        concerns(task.id)
        return task.id, task.order_id

    task_id, order_id = core.database.transact(work)
    if order_id is not None:
        core.broker.changed(order_id)
    return reading.answer(core, caller, task_id)
