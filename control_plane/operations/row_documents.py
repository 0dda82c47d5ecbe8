"""Convert rows to documents, as users and scripts see them. Nothing here queries the database."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from control_plane.contract.declarations.drones import DroneDocument, MachineDocument
from control_plane.contract.documents.base import Document
from control_plane.contract.documents.orders import (
    OrderSummary,
    PlacementDocument,
    RunDocument,
    StatsDocument,
    SteeringMessageDocument,
    StepDocument,
    WaitingDocument,
)
from control_plane.contract.documents.plans import PlanDocument, plan_document
from control_plane.core.lookups.drones import EVERY
from control_plane.core.lookups.users import owner_text
from control_plane.db.base import Row
from control_plane.db.drones import Drone
from control_plane.db.orders import Order, SteeringMessage
from control_plane.db.runs import Run, Step
from control_plane.db.waits import Wait
from control_plane.drones.condition import Load, status_of, why_not_starting
from control_plane.operations.orders import progress
from control_plane.orders.outcomes import outcome_of
from control_plane.orders.plan_waits import PLAN, edit_of
from control_plane.orders.waits import digest_of
from shared.durations import duration_label
from shared.events import Stats
from shared.plans import PlanProgress
from shared.reason_text import placed_text
from shared.reasons import DroneChoice
from shared.states import DroneStatus
from shared.titles import title

D = TypeVar("D", bound=Document)


@dataclass(frozen=True)
class OrderClocks:
    """How long an order has waited for users, and since when it has worked, as if without a pause."""

    waited: timedelta = timedelta()
    working_since: datetime | None = None
    """None: it does not work now."""


NO_CLOCKS = OrderClocks()


@dataclass(frozen=True)
class OrderNames:
    """The names of the objects that an order references."""

    organization: str
    project: str | None
    provider: str
    drone: str | None
    agent: str | None
    group_kind: str | None = None
    """`graph`, `race` or `batch`, if it belongs to one."""
    winner: str | None = None
    """The order that won, of a race."""
    reviewer: str | None = None
    """The name of its provider."""
    session_title: str = ""


@dataclass(frozen=True)
class Visibility:
    """What a caller may see of a drone that serves several organizations."""

    organization_id: str
    """The caller's own."""
    organizations: Mapping[str, str]
    """ID to name, for the organizations that the caller may see."""
    runs: Container[str]
    """IDs of the current runs of the caller's organization."""
    members: Mapping[str, str]
    """ID to e-mail address, for the members of the caller's organization."""
    pools: Mapping[str, str]
    """ID to name, for the pools of the caller's organization; also removed ones."""

    def owner(self, drone: Drone) -> str | None:
        """The drone's owner, if it belongs to the caller's organization."""
        return owner_text(drone.user_id, self.members) if drone.organization_id == self.organization_id else None


def served_names(serves: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """The names of the served organizations that the caller knows; the number of others is not revealed."""
    return [name for each in serves if (name := EVERY if each == EVERY else known.get(each))]


def drone_document(drone: Drone, load: Load, now: datetime, visibility: Visibility) -> DroneDocument:
    """The drone with its status. Run activity is from its last heartbeat, for the caller's organization's runs only."""
    # A run in the last heartbeat may have ended since; it is then no longer in `visibility.runs`.
    runs = [run for run in (drone.beat or {}).get("runs", []) if run.get("run_id") in visibility.runs]
    age = now - drone.last_seen_at if drone.last_seen_at else timedelta()
    state = why_not_starting(drone, load, now)
    return DroneDocument(
        id=drone.id,
        name=drone.name,
        organization=visibility.organizations.get(drone.organization_id),
        owner=visibility.owner(drone),
        pool=visibility.pools.get(drone.pool_id) if drone.pool_id is not None else None,
        serves=served_names(drone.serves, visibility.organizations),
        status=status_of(drone, load, now),
        labels=drone.labels,
        concurrency=drone.concurrency,
        running=load.running,
        queued=load.waiting,
        sandbox=drone.sandbox,
        network=(drone.beat or {}).get("network", ""),
        version=drone.version,
        host=drone.host,
        draining=drone.draining,
        registered_at=drone.registered_at,
        keys_made_at=drone.keys_made_at or drone.registered_at,
        keys_revoked_at=drone.keys_revoked_at,
        keys_replacing=drone.rotation_asked_at is not None,
        last_seen_at=drone.last_seen_at,
        stopped_at=drone.stopped_at,
        condition=state.code if state else "",
        condition_detail=state.detail if state else "",
        note=_note(drone, status_of(drone, load, now)),
        machine=None if status_of(drone, load, now) is DroneStatus.OFFLINE else _machine(drone),
        doing=[{**run, "in_words": progress.of_beat(run, age)} for run in runs if not run.get("ended")],
    )


def _note(drone: Drone, status: DroneStatus) -> str:
    return "; ".join(filter(None, (_remark(drone, status), open_network_text(drone))))


def open_network_text(drone: Drone) -> str:
    """That its commands use the machine's own network, and what to do; empty if they do not."""
    why = (drone.beat or {}).get("open_network")
    return f"its commands use the machine's own network: {why} (next, there: drone doctor)" if why else ""


def _remark(drone: Drone, status: DroneStatus) -> str:
    if drone.over_quota_at is not None:
        return "it filled more of the broker's memory than its quota and may not write there (E-DRONE-QUOTA)"
    if status is DroneStatus.DRAINING and (drone.beat or {}).get("leaving"):
        return "stops after its current run"
    if status is not DroneStatus.OFFLINE and (drone.beat or {}).get("stream_full"):
        return "its reports are paused until the control plane has read the earlier ones"
    machine = (drone.beat or {}).get("machine_id", drone.machine_id)
    return "" if machine == drone.machine_id else "runs on a different machine than the one it was registered on"


def _machine(drone: Drone) -> MachineDocument | None:
    said = (drone.beat or {}).get("machine")
    return MachineDocument.model_validate(said) if said else None


def document_of(kind: type[D], row: Row, **others: Any) -> D:
    """The document of a row: fields are copied from columns of the same name, except those given in `others`."""
    same = {name: getattr(row, name) for name in kind.model_fields if name not in others}
    return kind.model_validate({**same, **others})


def order_summary(
    order: Order, names: OrderNames, stats: Stats, clocks: OrderClocks, waiting: Wait | None = None
) -> OrderSummary:
    """The order's summary. `waiting`: the call that has been waiting longest for a user, if any."""
    return OrderSummary(
        id=order.id,
        status=order.status,
        reason=order.reason,
        exit_status=order.exit_status,
        outcome=outcome_of(order, may_push=names.group_kind != "race" or names.winner == order.id),
        attempt=order.attempt,
        max_attempts=order.max_attempts,
        generation=order.generation,
        organization=names.organization,
        user=order.user,
        drone=names.drone,
        project=names.project,
        session=order.session_id,
        provider=names.provider,
        model=order.model,
        mode=order.mode,
        thinking=order.thinking,
        profile=order.profile,
        reviewer=names.reviewer,
        priority=order.priority,
        labels=order.wanted_labels,
        after=order.after,
        merge_only=order.merge_only,
        graph=order.group_id if names.group_kind == "graph" else None,
        race=order.group_id if names.group_kind == "race" else None,
        batch=order.group_id if names.group_kind == "batch" else None,
        key=order.group_key,
        created_at=order.created_at,
        started_at=order.started_at,
        ended_at=order.ended_at,
        title=title(order.prompt),
        session_title=title(names.session_title),
        prompt=order.prompt,
        response=order.response,
        asks=order.ended_at is not None and order.follow_up == "question",
        branch=order.branch,
        base_commit=order.base_commit,
        head_commit=order.head_commit,
        files_changed=order.files_changed,
        lines_added=order.lines_added,
        lines_removed=order.lines_removed,
        pushed=order.pushed,
        push_error=order.push_error,
        left_out=order.left_out,
        late_refs=order.late_refs,
        receipt=order.receipt,
        ticket=order.ticket,
        approve=order.approve,
        allow=order.allow,
        verify=order.verify,
        verification=order.verification if order.ended_at else None,
        agent=names.agent,
        task=order.task_id,
        purpose=order.purpose,
        pull_request=order.pull_request,
        waiting_for=waiting_document(waiting) if waiting else None,
        stats=stats_document(stats, clocks),
    )


def waiting_document(wait: Wait) -> WaitingDocument:
    """What the order of this wait waits for."""
    return WaitingDocument(
        kind=wait.kind,
        text=wait.text,
        choices=wait.choices,
        default=wait.default,
        deadline=wait.deadline,
        call_id=wait.subject,
        tool=wait.details["tool"],
        why=wait.details["why"],
        command=wait.details.get("command", ""),
        until=wait.deadline,
        limit=wait.details.get("limit", "") if wait.kind == "limit" else "",
        plan=_waiting_plan(wait) if wait.kind == PLAN else None,
        digest=digest_of(wait),
    )


def _waiting_plan(wait: Wait) -> PlanDocument:
    number = int(wait.subject.rpartition("-")[2])
    return plan_document(PlanProgress(state="presented", rounds=number), edit_of(wait))


def run_document(run: Run, drone: str | None, choice: DroneChoice | None, flower: str | None) -> RunDocument:
    """`flower`: the run's page there."""
    return RunDocument(
        id=run.id,
        attempt=run.attempt,
        drone=drone,
        status=run.status,
        exit_status=run.exit_status,
        reason=run.reason,
        started_at=run.started_at,
        ended_at=run.ended_at,
        cost_usd=run.shown_cost_usd,
        doing=run.doing,
        doing_since=run.doing_since,
        progress_at=run.progress_at,
        waits_for=run.waits_for,
        late=run.late,
        resumed_from=run.resumed_run_id,
        placement=PlacementDocument(because=placed_text(choice.placed), scores=choice.scores, scored=choice.scored)
        if choice
        else None,
        flower=flower,
    )


def step_document(step: Step, *, undone: bool = False, resumed: Mapping[str, Any] | None = None) -> StepDocument:
    """The step's own fields, overridden by the fields common to all steps.

    `resumed`: fields that describe the point from which a `resumed` step continued.
    """
    own: dict[str, Any] = {**step.body, **(resumed or {}), "late": step.late, "undone": undone}
    return StepDocument(**{**own, "seq": step.seq, "kind": step.kind, "run": step.run_id, "at": step.at})


def word_document(word: SteeringMessage) -> SteeringMessageDocument:
    return SteeringMessageDocument(
        id=str(word.number),
        text=word.text,
        after=word.after,
        interrupt=word.interrupt,
        alone=word.alone,
        state="queued" if word.take_back_at is None else "taken_back" if word.taken_back else "taking_back",
        user=word.user,
        at=word.at,
    )


def stats_document(stats: Stats, clocks: OrderClocks = NO_CLOCKS) -> StatsDocument:
    waited = round(clocks.waited.total_seconds() * 1000)
    return StatsDocument(
        **stats.model_dump(),
        duration_label=duration_label(stats.duration_ms),
        working_since=clocks.working_since,
        waiting_ms=waited,
        waiting_label=duration_label(waited) if waited else "",
    )
