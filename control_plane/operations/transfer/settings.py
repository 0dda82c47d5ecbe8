"""What the API would refuse, an import refuses: the settings in a line are checked as a request for them is.

What no request has, such as a step, is checked by the model that it is read with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter

from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.batches import BatchRowRequest
from control_plane.contract.declarations.memory import MemoryRequest
from control_plane.contract.declarations.modes import ModeRequest
from control_plane.contract.declarations.orders import OrderRequest
from control_plane.contract.declarations.prices import PriceRequest
from control_plane.contract.declarations.profiles import ProfileRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.pull_requests import PullRequestDocument
from control_plane.contract.declarations.reviews import ReviewCommentRequest
from control_plane.contract.declarations.schedules import ScheduleRequest
from control_plane.contract.declarations.sessions import SessionRequest
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.contract.declarations.triggers import TriggerRequest
from control_plane.contract.declarations.webhooks import WebhookRequest
from control_plane.contract.documents.base import Request
from control_plane.contract.validation.checks import (
    check_agent,
    check_commands,
    check_labels,
    check_text,
    check_variable,
)
from control_plane.contract.validation.git_urls import parse_git_url
from control_plane.core.settings import FleetSettings
from control_plane.db.teams import Agent
from control_plane.db.waits import Wait
from control_plane.operations import memory, modes, prices, profiles, projects, providers
from control_plane.operations.agents.fields import INSTRUCTIONS, fill_own
from control_plane.operations.automation import schedules, triggers, webhooks
from control_plane.operations.reviews.commenting import MAX_TEXT
from control_plane.operations.sessions.changing import check_session
from control_plane.orders.plan_waits import PLAN, edit_of
from control_plane.services.checks import NOTHING
from control_plane.teams import new_task
from shared.errors import Invalid
from shared.events import Body, Receipt
from shared.limits import checked_limits
from shared.plans import AgentPlan

Line = Mapping[str, Any]
_BODY: TypeAdapter[Body] = TypeAdapter(Body)
_NO_PROVIDER = {"name": NOTHING, "model": NOTHING, "protocol": "auto", "thinking": "auto", "rotation": "off"}
_NO_PROJECT = {"slug": NOTHING, "name": NOTHING, "pull_requests": "never"}
_UNSET = frozenset({"id", "created_at", "removed_at", "run_s", "clone_s"})
"""Columns that no request sets."""
R = TypeVar("R", bound=Request)


class Import(NamedTuple):
    """What the checks have to know besides the line."""

    settings: FleetSettings
    now: datetime


def check_settings(kind: str, line: Line, to: Import) -> None:
    """Raise Invalid, or ValueError as pydantic does, if the API would not have accepted, or cannot show, this line."""
    if check := _CHECKS.get(kind):
        check(line, to)


def _request(model: type[R], line: Line, **more: Any) -> R:
    """The request for what the line contains."""
    given = {name: line[name] for name in model.model_fields if line.get(name) is not None}
    return model.model_validate({**given, **more})


def _stands_for_none(line: Line, only: Line) -> bool:
    """Whether this is the removed row of orders that have no project, or no provider: it sets nothing else."""
    return line["removed_at"] is not None and only == {
        name: value for name, value in line.items() if value and name not in _UNSET
    }


def _is_history(line: Line) -> bool:
    """Whether it was removed: its address may be one that is not allowed here, and cannot be changed any more."""
    return line["removed_at"] is not None


def _provider(line: Line, _: Import) -> None:
    if _stands_for_none(line, _NO_PROVIDER):
        return
    providers.columns_of(_request(ProviderRequest, line))
    if line["key_variable"] is not None:
        check_variable(line["key_variable"])


def _project(line: Line, to: Import) -> None:
    if _stands_for_none(line, _NO_PROJECT):
        return
    # The ids in these columns are not the names that a request has.
    projects.columns_of(_request(ProjectRequest, line))
    files_allowed = to.settings.file_urls_allowed or _is_history(line)
    if parse_git_url(line["git_url"], files_allowed=files_allowed).secret is not None:
        raise Invalid("the git URL has a password", code="E-GIT-URL")


def _agent(line: Line, _: Import) -> None:
    request = _request(AgentRequest, line)
    check_agent(request.name)
    fill_own(Agent(name=request.name), request, request.model_fields_set | INSTRUCTIONS)


def _mode(line: Line, _: Import) -> None:
    modes.check_mode(line["name"], _request(ModeRequest, line))


def _session(line: Line, _: Import) -> None:
    # Approvals add to the allowed commands of a session, and an order has those of its session besides its own: the
    # limits of a request hold for neither.
    check_session(_request(SessionRequest, line, project="").name, ())


def _task(line: Line, _: Import) -> None:
    new_task.check_request(_request(TaskRequest, {**line, **(checked_limits(line["limits"]) or {})}))


def _order(line: Line, _: Import) -> None:
    request = _request(OrderRequest, {**line, "after": None}, labels=line["wanted_labels"])
    check_labels(request.labels)
    check_commands("verify", request.verify or ())
    if line["pull_request"] is not None:
        PullRequestDocument.model_validate(line["pull_request"])
    if line["receipt"] is not None:
        Receipt.model_validate(line["receipt"])


def _step(line: Line, _: Import) -> None:
    _BODY.validate_python(line["body"])


def _wait(line: Line, _: Import) -> None:
    details = line["details"]
    if line["kind"] == PLAN:
        AgentPlan.model_validate(details.get(PLAN))
        edit_of(Wait(details=details))
    if approved := details.get("approved"):
        AgentPlan.model_validate(approved)


def _batch_row(line: Line, _: Import) -> None:
    BatchRowRequest.model_validate(line["request"])


def _review_comment(line: Line, _: Import) -> None:
    check_text("the comment", _request(ReviewCommentRequest, line).text, limit=MAX_TEXT)


def _profile(line: Line, _: Import) -> None:
    request = ProfileRequest.model_validate({**line["settings"], "name": line["name"]})
    profiles.check_profile(request.name, line["description"], request)


def _memory_note(line: Line, _: Import) -> None:
    memory.checked_note(_request(MemoryRequest, line))


def _schedule(line: Line, to: Import) -> None:
    schedules.columns_of(_request(ScheduleRequest, line), to.now)


def _trigger(line: Line, _: Import) -> None:
    request = _request(TriggerRequest, line)
    triggers.columns_of(request, request.events)


def _webhook(line: Line, to: Import) -> None:
    inside_allowed = to.settings.webhook_private or _is_history(line)
    webhooks.columns_of(_request(WebhookRequest, line), inside_allowed=inside_allowed)


def _price(line: Line, _: Import) -> None:
    prices.check_price(line["model"], _request(PriceRequest, line))


_CHECKS: Mapping[str, Callable[[Line, Import], None]] = {
    "provider": _provider,
    "project": _project,
    "agent": _agent,
    "mode": _mode,
    "session": _session,
    "task": _task,
    "order": _order,
    "step": _step,
    "wait": _wait,
    "batch_row": _batch_row,
    "review_comment": _review_comment,
    "profile": _profile,
    "memory_note": _memory_note,
    "schedule": _schedule,
    "trigger": _trigger,
    "webhook": _webhook,
    "price": _price,
}
