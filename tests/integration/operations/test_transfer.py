"""An organization as a file and back: nothing is lost, nothing secret gets out."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import QueuePool, func, select, update

from control_plane.contract.declarations.budgets import BudgetRequest
from control_plane.contract.declarations.drafts import DraftEdit
from control_plane.contract.declarations.prices import PriceRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.schedules import ScheduleRequest
from control_plane.contract.declarations.steering import SayRequest
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.contract.declarations.triggers import TriggerRequest
from control_plane.contract.declarations.users import UserRequest
from control_plane.contract.declarations.webhooks import WebhookRequest
from control_plane.contract.documents.orders import OrderDocument
from control_plane.core import Caller, Core
from control_plane.core.blob_store import DirectoryStore
from control_plane.core.lookups.organizations import in_organization, system_caller
from control_plane.db.automation import Schedule, Trigger, Webhook
from control_plane.db.drones import Drone
from control_plane.db.engine import sqlite_url_of
from control_plane.db.groups import OrderGroup
from control_plane.db.installation import Organization
from control_plane.db.metadata import METADATA
from control_plane.db.orders import Dispatch, Order, SteeringMessage, Turn
from control_plane.db.projects import Project
from control_plane.db.reviews import ReviewComment
from control_plane.db.runs import Blob, Run, Step
from control_plane.db.sessions import ChatSession
from control_plane.operations import budgets, costs, drafts, organizations, prices, projects, providers, transfer
from control_plane.operations.access import users
from control_plane.operations.automation import schedules, triggers, webhooks
from control_plane.operations.orders import steering
from control_plane.operations.orders.reading import order_summary, show_order
from control_plane.operations.tasks import acting
from control_plane.operations.transfer.kinds import BY_NAME, OLDEST, ORGANIZATION, VERSION
from control_plane.orders.plan_waits import keep_edit
from control_plane.orders.waits import close_all, open_wait
from control_plane.supervisor.groups import decide_races
from control_plane.supervisor.restacking import restack
from shared.amounts import NANODOLLARS
from shared.blobs import digest
from shared.errors import FleetError
from shared.events import ApprovalStep, CommentStep, UserStep
from shared.names import branch
from shared.plans import AgentPlan
from shared.reasons import CanceledEnd, OrderFacts, RunEnd
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory, core_on
from tests.support.made import make_drone, make_project, submit
from tests.support.many_tasks import fill
from tests.support.organizations import add_organization
from tests.support.refusals import code_of
from tests.support.spending import reserve, spend_so_far
from tests.support.team_rows import add_agent, add_task, begin, comments_of, kinds_of, order_of, play, task_of
from tests.support.turns import end

SECRETS = ("sk-provider-secret", "hunter2", "trigger-secret", f"whsec_{'webhooksecret' * 4}")
Line = dict[str, Any]
ID = re.compile(r"\b[0-9a-f]{12}\b")
EXPORTS = Path(__file__).parents[2] / "contract" / "examples" / "exports"
"""The columns of each kind of line by format."""


@pytest.fixture
def payments(core: Core, admin: Caller) -> Caller:
    return made_payments(core, admin)


@pytest.fixture(scope="module")
def kept(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Core, list[str]]]:
    """An installation that tests leave as it was, and what it exported."""
    directory = tmp_path_factory.mktemp("kept")
    (directory / "fleet.db").write_bytes(sqlite_template.read_bytes())
    core = core_on(sqlite_url_of(directory / "fleet.db"), directory, clock=HandClock())
    yield core, text_of(exported(core, made_payments(core, system_caller(core))))
    core.database.dispose()


def made_payments(core: Core, admin: Caller) -> Caller:
    """An organization with a row of each kind: a task in progress, and one that waits."""
    caller = add_organization(core, admin, description="Keeps the money.")
    providers.add(core, caller, ProviderRequest(name="paid", model="openai/x", api_key=SECRETS[0]))
    url = f"https://kim:{SECRETS[1]}@git.example/shop.git"
    core.clock.sleep(1)
    projects.add(core, caller, ProjectRequest(slug="shop", git_url=url, provider="paid", trailers=["Assisted-by"]))
    lead = add_agent(core, caller, "lead")
    core.clock.sleep(1)
    add_agent(core, caller, "tester", boss="lead")
    make_drone(core, caller, concurrency=9)
    play(core, add_task(core, caller, lead), "I planned it. @tester")
    core.clock.sleep(1)
    with core.database.write() as db:
        organization = db.get_one(Organization, caller.organization_id)
        organization.concurrency, organization.limits = 1, {"max_iterations": 7}
        organization.project_id, organization.reviewer_id = db.execute(select(Project.id, Project.provider_id)).one()
    waiting = acting.create(core, caller, TaskRequest(title="Waits", assignee="tester"))
    assert waiting.status == "open"
    _more(core, caller, order_of(core, "PAYM-0001"))
    core.clock.sleep(1)
    providers.try_out(core, caller, "paid")
    core.clock.sleep(1)
    projects.try_out(core, caller, "shop")
    return caller


def _more(core: Core, caller: Caller, order: Order) -> None:
    """Rows of the kinds that a played task does not bring along."""
    now, own = core.clock.now(), {"organization_id": caller.organization_id}
    begun = begin(core, order.id)
    core.blobs.path(digest(b"log")).parent.mkdir(parents=True, exist_ok=True)
    core.blobs.path(digest(b"log")).write_bytes(b"log")
    with core.database.write() as db:
        db.get_one(Run, begun).input_tokens, db.get_one(Run, begun).cost_usd = 1000, 0.25
        body = {"kind": "resumed", "run_id": begun, "seq": 1, "text": "half \ud83d\ude00 a pair, \0", "\0": 1}
        times = {"at": now, "drone_at": now}
        db.add(Step(order_id=order.id, run_id=begun, seq=1, run_seq=1, kind="resumed", body=body, **times, **own))
        db.add(SteeringMessage(order_id=order.id, text="Hurry up", run_id=begun, at=now, **own))
        plan = AgentPlan(title="Plan")
        asked = ApprovalStep(about="plan", call_id="plan-1", tool="plan", why="Plan", command="\0", plan=plan)
        keep_edit(open_wait(db, core, db.get_one(Run, begun), asked, now), AgentPlan(title="Better plan"), "kim")
        for number, sent in ((1, now), (2, None)):
            place = {"path": "calc.py", "side": "new", "quote": "+x", "text": f"review {number}", "user": "kim"}
            shown = {"order_id": order.id, "sent_order_id": order.id if sent else None, "sent_at": sent}
            answer = {"verdict": "done", "answer_order_id": order.id, "answer_run_id": begun, "answer_seq": 1}
            dates = {"created_at": now, "updated_at": now, "author": "a" * 12}
            db.add(ReviewComment(id=str(number) * 12, **place, **shown, **(answer if sent else {}), **dates, **own))
        db.add(Blob(run_id=begun, sha256=digest(b"log"), size=3, created_at=now, **own))
    nightly = TaskRequest(title="Nightly")
    schedules.create(core, caller, ScheduleRequest(name="nightly", cron="0 3 * * *", task=nightly))
    with core.database.write() as db:
        db.query(Schedule).update({"last_task_id": "PAYM-0001"})
    triggers.create(core, caller, TriggerRequest(name="issues", kind="github", secret=SECRETS[2], task=nightly))
    webhooks.create(core, caller, WebhookRequest(name="chat", url="https://hooks.example/in", secret=SECRETS[3]))
    drafts.save(core, caller, "new-order", DraftEdit(text="half a thought", version=0))
    prices.set_(core, caller, "openai/x", PriceRequest(discount_percent=5))
    budgets.set_(core, caller, "project", "shop", BudgetRequest(usd=20, per="month", zone="Asia/Kathmandu"))
    core.clock.sleep(1)
    with core.database.write() as db:
        close_all(db, core, begun)
        question = ApprovalStep(about="question", call_id="c1", tool="ask", why="Which?")
        open_wait(db, core, db.get_one(Run, begun), question, now)
    budgets.set_(core, caller, "organization", "payments", BudgetRequest(usd=2000, per="total"))
    reserve(core, begun, 1.0)
    spend_so_far(core, begun, 0.25)


def exported(core: Core, caller: Caller) -> list[Line]:
    return [json.loads(line) for line in transfer.export_lines(core, caller, caller.organization)]


def text_of(lines: list[Line]) -> list[str]:
    return [json.dumps(line) + "\n" for line in lines]


def imported(core: Core, admin: Caller, lines: list[Line], name: str = "moved") -> Caller:
    transfer.import_lines(core, admin, text_of(lines), name)
    return in_organization(core, admin, name)


def comparable(lines: list[Line], acronym: str) -> list[str]:
    """The lines with ids replaced by the order in which they appear, without names, acronyms and messages' numbers."""
    seen: dict[str, str] = {}
    text = json.dumps(lines[1:]).replace(f"{acronym}-", "TASK-")
    plain = ID.sub(lambda found: seen.setdefault(found[0], f"id{len(seen)}"), text)
    document = json.loads(plain)
    document[0]["row"] |= {"name": "", "acronym": "", "paused_at": None}
    for row in named(document, "word"):
        row["number"] = 0
    return [json.dumps(line, sort_keys=True) for line in document]


def counted(core: Core) -> dict[str, int]:
    """How many rows every table has, except the audit log, which also grows by what is refused."""
    with core.database.read() as db:
        return {
            table.name: db.execute(select(func.count()).select_from(table)).scalar_one()
            for table in METADATA.sorted_tables
            if not table.name.startswith("audit_")
        }


def named(lines: list[Line], kind: str) -> list[Line]:
    """The rows of a kind."""
    return [line["row"] for line in lines if line.get("kind") == kind]


@pytest.mark.dialects
def test_what_was_exported_and_imported_exports_as_the_same(core: Core, admin: Caller, payments: Caller) -> None:
    """Only what was under way and what has a secret comes in otherwise, and only the first time."""
    before = exported(core, payments)
    first = exported(core, imported(core, admin, before, "first"))
    second = exported(core, imported(core, admin, first, "second"))
    changed = set(comparable(before, "PAYM")) ^ set(comparable(first, first[0]["acronym"]))
    assert {json.loads(line)["kind"] for line in changed} == {
        *("task", "order", "turn", "dispatch", "run", "wait", "block", "trigger", "webhook", "comment", "end")
    }
    assert before[-1]["totals"] == first[-1]["totals"] != {}
    assert comparable(second, second[0]["acronym"]) == comparable(first, first[0]["acronym"])
    assert second[0]["acronym"] != first[0]["acronym"]
    assert list(dict.fromkeys(line["kind"] for line in before[1:])) == [
        *("organization", "drone", "provider", "project", "agent", "session", "task", "order", "turn", "entry"),
        *("dispatch", "run", "word", "step", "wait", "comment", "schedule", "trigger", "webhook", "price"),
        *("budget", "block", "review_comment", "blob", "end"),
    ]


def test_no_secret_is_in_the_file_and_its_end_names_what_is_missing(kept: tuple[Core, list[str]]) -> None:
    whole = "".join(kept[1])
    assert [secret for secret in SECRETS if secret in whole] == []
    assert "sealed" not in whole.replace('"sealed": false', "")
    left_out = json.loads(kept[1][-1])["left_out"]
    assert any("1 blobs" in each for each in left_out)
    assert {
        "provider keys: paid",
        "passwords in git URLs of projects: shop",
        "trigger secrets: issues",
        "1 pending review comments",
        "1 drafts of users",
    } <= set(left_out)


def test_ids_stay_in_another_installation_and_are_made_anew_where_they_are_in_use(  # noqa: PLR0917 - two installations
    core: Core, admin: Caller, payments: Caller, core_factory: CoreFactory, sqlite_template: Path, tmp_path: Path
) -> None:
    lines = exported(core, payments)
    ids = [line["id"] for line in named(lines, "order")]
    path = tmp_path / "other.db"
    path.write_bytes(sqlite_template.read_bytes())
    other = core_factory(f"sqlite:///{path}", blob_dir=tmp_path / "other blobs")
    made = transfer.import_lines(other, system_caller(other), text_of(lines))
    again = exported(other, in_organization(other, system_caller(other), "payments"))
    assert (made.name, made.acronym, made.paused) == ("payments", "PAYM", True)
    assert [line["id"] for line in named(again, "order")] == ids
    assert [line["id"] for line in named(again, "task")] == ["PAYM-0001", "PAYM-0002"]
    assert named(again, "blob") == []
    lines[0]["organization_id"] = "f" * 12
    here = exported(core, imported(core, admin, lines))
    assert set(ids).isdisjoint(line["id"] for line in named(here, "order"))


@pytest.mark.dialects
def test_the_blob_store_is_asked_before_the_transaction_begins(core: Core, admin: Caller, payments: Caller) -> None:
    class AskedBefore(DirectoryStore):
        """As a bucket that answers slowly: a transaction that waits for it is ended."""

        def has(self, *given: Any, **named: Any) -> bool:
            connections.append(pool.checkedout())
            return super().has(*given, **named)

    connections: list[int] = []
    pool = core.database.engine.pool
    assert isinstance(pool, QueuePool)
    lines = exported(core, payments)
    moved = imported(replace(core, blobs=AskedBefore(core.blobs.root)), admin, lines)
    assert [row["sha256"] for row in named(exported(core, moved), "blob")] == [digest(b"log")]
    assert connections == [0]


@pytest.mark.dialects
def test_messages_that_the_agent_has_read_come_in_as_read_also_from_files_without_their_numbers(
    core: Core, admin: Caller
) -> None:
    caller = add_organization(core, admin)
    make_project(core, caller)
    make_drone(core, caller)
    order = submit(core, caller, "fix it")
    for text in ("read", "withheld", "unread"):
        steering.say(core, caller, order.id, SayRequest(text=text))
    read, withheld, _ = show_order(core, caller, order.id).unheard
    shown = UserStep(text="read", source="steer", message=read.id)
    dropped = CommentStep(text="It was taken back.", taken_back=(withheld.id,))
    end(core, order.id, steps=[UserStep(text="fix it", source="prompt"), shown, dropped])
    with core.database.write() as db:
        db.get_one(Order, order.id).ended_because = RunEnd(unheard=2, session=order.session)
    lines = exported(core, caller)

    def came_in(name: str) -> tuple[list[str], list[str], bool]:
        """The unread messages of the order, the texts of those taken back, and whether it names its own session."""
        moved = exported(core, imported(core, admin, lines, name))
        (row,) = named(moved, "order")
        texts = {str(word["number"]): word["text"] for word in named(moved, "word")}
        (comment,) = (step["body"] for step in named(moved, "step") if step["kind"] == "comment")
        unread = show_order(core, in_organization(core, admin, name), row["id"]).unheard
        names_own = row["ended_because"]["session"] == row["session_id"]
        return [each.text for each in unread], [texts[each] for each in comment["taken_back"]], names_own

    assert came_in("moved") == (["withheld", "unread"], ["withheld"], True)
    for row in named(lines, "word"):
        del row["number"]
    assert came_in("older") == (["withheld", "unread"], [], True)


def test_what_comes_in_is_paused_without_drones_or_secrets_and_nothing_is_under_way_or_reserved(
    core: Core, admin: Caller, payments: Caller
) -> None:
    users.add(core, payments, UserRequest(email="kim@example.org", name="Kim", role="viewer"))
    budgets.set_(core, payments, "user", "kim@example.org", BudgetRequest(usd=1, per="day"))
    assert task_of(core, "PAYM-0001").status == "in_progress"
    lines = exported(core, payments)
    made = transfer.import_lines(core, admin, text_of(lines), "moved")
    caller = in_organization(core, admin, "moved")

    def moved(model: Any, *only: Any) -> Any:
        with core.database.read() as db:
            return db.scalars(select(model).where(model.organization_id == made.id, *only)).one()

    assert organizations.show(core, admin, "moved").paused
    assert any("fleet organization resume moved" in warning for warning in made.warnings)
    task, order = task_of(core, "MOVE-0001"), order_of(core, "MOVE-0001")
    assert (task.status, task.assignee_id, task_of(core, "MOVE-0002").status) == ("open", None, "open")
    assert comments_of(core, "MOVE-0001")[:1] == comments_of(core, "PAYM-0001")[:1]
    assert kinds_of(core, "MOVE-0001")[-1] == "imported"
    assert (order.status, order.exit_status) == ("canceled", "canceled")
    assert order.facts == OrderFacts(ended=CanceledEnd(code="exported", detail="running"))
    with core.database.read() as db:
        assert db.get_one(Run, order.run_id).status == "preempted"
        assert db.scalars(select(Turn.status).where(Turn.order_id == order.id)).one() == "aborted"
        closed = select(Dispatch).where(Dispatch.order_id == order.id, Dispatch.closed_at.is_(None))
        assert db.scalars(closed).all() == []
    assert add_task(core, caller, None, claim=False, project="shop") == "MOVE-0003"

    drone, project = moved(Drone), moved(Project, Project.removed_at.is_(None))
    assert (drone.name, drone.public_key, drone.machine_id, drone.removed_at is None) == ("anna", "", "", False)
    assert (moved(Trigger).enabled, moved(Webhook).enabled) == (False, False)
    assert (project.sealed_git_url, project.git_url) == (None, "https://git.example/shop.git")

    assert "1 budgets of users" in lines[-1]["left_out"]
    assert [(each.kind, each.limit_usd, each.spent_usd, each.reserved_usd) for each in budgets.list_(core, caller)] == [
        ("project", 20, 0.25, 0),
        ("organization", 2000, 0.25, 0),
    ]
    assert [each.reserved_usd for each in budgets.list_(core, payments) if each.kind != "user"] == [0.75, 0.75]
    assert prices.list_(core, caller)[0].discount_percent == 5
    assert [each.spent_usd for each in costs.list_(core, caller, by="project")] == [0.25]


def test_no_order_is_created_to_judge_a_race_that_comes_in_or_to_merge_new_work_into_a_session(
    core: Core, admin: Caller, payments: Caller
) -> None:
    def worked(head: str, **fields: Any) -> OrderDocument:
        order = submit(core, payments, project="shop", **fields)
        left = {"branch": branch(order.id), "base_commit": "e" * 40, "head_commit": head * 40, "pushed": True}
        end(core, order.id, steps=(), **left)
        return order

    lower, candidate = worked("a"), worked("b")
    upper = worked("c", after=[lower.id])
    submit(core, payments, project="shop", session=upper.session)
    worked("d", session=lower.session)
    race = {"kind": "race", "name": "race", "pick": "judge", "created_at": core.clock.now()}
    with core.database.write() as db:
        db.add(OrderGroup(id="f" * 12, organization_id=payments.organization_id, **race))
        db.flush()
        for order_id, letter in ((candidate.id, "A"), (order_of(core, "PAYM-0001").id, "B")):
            order = db.get_one(Order, order_id)
            order.group_id, order.group_key = "f" * 12, letter
    lines = exported(core, payments)
    assert [row["due"] for row in named(lines, "stack")] == [True]
    caller = imported(core, admin, lines)
    decide_races(core), restack(core)
    moved = exported(core, caller)
    assert len(named(moved, "order")) == len(named(lines, "order"))
    assert [row["pick"] for row in named(moved, "group")] == ["person"]
    assert [row["due"] for row in named(moved, "stack")] == [False]


def test_each_column_of_an_organization_is_exported_or_made_again() -> None:
    assert set(METADATA.tables["organizations"].columns.keys()) - set(ORGANIZATION) == {"id", "created_at"}


def test_more_and_longer_allowed_commands_than_a_request_may_have_come_in(
    core: Core, admin: Caller, payments: Caller
) -> None:
    allowed = {"session": ["x" * 2500], "order": [f"make {number}" for number in range(200)]}
    with core.database.write() as db:
        db.execute(update(ChatSession).values(allow=allowed["session"]))
        db.execute(update(Order).values(allow=allowed["order"]))
    moved = exported(core, imported(core, admin, exported(core, payments)))
    for kind, allow in allowed.items():
        assert [row["allow"] for row in named(moved, kind)] == [allow] * len(named(moved, kind)) != []


def test_what_users_wrote_in_waits_comes_in_and_how_long_orders_waited(
    core: Core, admin: Caller, payments: Caller
) -> None:
    before = exported(core, payments)
    caller = imported(core, admin, before)
    plan, question = named(exported(core, caller), "wait")
    assert plan["details"] == named(before, "wait")[0]["details"]
    assert (plan["details"]["edited"]["title"], question["closed_at"]) == ("Better plan", before[0]["made_at"])
    own, moved = order_of(core, "PAYM-0001").id, order_of(core, "MOVE-0001").id
    core.clock.sleep(5)
    assert order_summary(core, caller, moved).stats.waiting_ms == 3000
    assert order_summary(core, payments, own).stats.waiting_ms == 8000


def test_only_an_admin_everywhere_imports_and_nobody_exports_what_is_anothers(kept: tuple[Core, list[str]]) -> None:
    core, whole = kept
    stranger = replace(in_organization(core, system_caller(core), "payments"), everywhere=False)
    assert code_of(lambda: transfer.import_lines(core, stranger, whole, "moved")) == "E-EVERYWHERE"
    assert code_of(lambda: transfer.export_lines(core, stranger, "default")) == "E-ORGANIZATION-404"
    operator = replace(stranger, role="operator")
    assert code_of(lambda: transfer.export_lines(core, operator, "payments")) == "E-ROLE"


Breaking = Callable[[list[Line]], None]


def at(number: int, **values: Any) -> Breaking:
    return lambda lines: lines[number - 1].update(values)


def in_kind(of: str, /, **values: Any) -> Breaking:
    return lambda lines: named(lines, of)[0].update(values)


def in_last(of: str, /, **values: Any) -> Breaking:
    return lambda lines: named(lines, of)[-1].update(values)


def without(kind: str) -> Breaking:
    return lambda lines: lines.remove(next(line for line in lines if line.get("kind") == kind))


def broken(whole: list[str], breaking: Breaking) -> list[str]:
    """The file, broken like this."""
    lines = [json.loads(line) for line in whole]
    breaking(lines)
    return text_of(lines)


BROKEN: list[tuple[Breaking, str]] = [
    (at(1, dronefleet_export="one"), "line 1 "),
    (at(2, kind="drone"), "line 2 "),
    (at(2, row={}), "line 2 "),
    (in_kind("organization", name="No Name"), "line 2 "),
    (in_kind("organization", project_id=7), "line 2 "),
    (in_kind("organization", reviewer_id="paid"), "line 2 "),
    (at(5, more=1), "must have exactly a kind and a row"),
    (in_kind("project", git_url="ext::sh -c id"), "invalid git URL"),
    (in_kind("project", setup="make"), "has an invalid setup"),
    (in_kind("provider", name="../x"), "invalid provider name"),
    (in_kind("provider", api_key="sk"), "has an unknown field: 'api_key'"),
    (in_kind("agent", name="user"), "invalid agent name"),
    (in_kind("task", status="odd"), "has an unknown status"),
    (in_kind("task", number=7), "does not match its number"),
    (in_kind("task", title="a\0b"), "an invalid title"),
    (in_kind("task", created_at="yesterday"), "an invalid created_at"),
    (in_kind("order", project_id="f" * 12), "refers to a project that does not precede it"),
    (in_kind("run", cost_usd="much"), "has an invalid cost_usd"),
    (in_kind("budget", kind="user"), "has an unknown kind or period of budgets"),
    (in_kind("budget", zone="Mars"), "unknown time zone"),
    (in_kind("block", spent_nusd=-1), "has an invalid amount"),
    (in_kind("price", model="a b"), "invalid model name"),
    (in_kind("run", input_tokens=True), "has an invalid input_tokens"),
    (in_kind("run", last_seq=2**31), "has an invalid last_seq"),
    (in_kind("organization", concurrency=2**31), "has an invalid concurrency"),
    (at(9, kind="mystery"), "has an unknown kind"),
    (without("drone"), "refers to a drone that does not precede it"),
    (without("comment"), "has wrong line counts"),
    (in_kind("run", input_tokens=1), "has totals that differ"),
    (lambda lines: lines.append({"kind": "end"}), "follows the end line"),
    (lambda lines: lines.insert(8, lines[4]), "repeats the "),
]


REFUSED_BY_THE_API: list[Breaking] = [
    in_kind("provider", api_base="file:///etc/passwd"),
    in_kind("provider", api_base="https://user:pass@host/v1"),
    in_kind("provider", model="a b"),
    in_kind("provider", params={"api_key": "sk"}),
    in_kind("provider", protocol="smoke"),
    in_kind("provider", thinking="hard"),
    in_kind("provider", rpm=-1),
    in_kind("provider", key_variable="A B"),
    in_kind("project", branch="--upload-pack=touch /tmp/x"),
    in_kind("project", setup=["a\0b"]),
    in_kind("project", setup=["x"] * 1000),
    in_kind("project", trailers=["Signed-off-by"]),
    in_kind("project", pull_requests="always"),
    in_kind("project", description="x" * 2001),
    # The rows that checks have in place of a project and a provider.
    in_last("provider", removed_at=None),
    in_last("provider", api_base="https://models.example/v1"),
    in_last("project", removed_at=None),
    in_last("project", git_url="https://git.example/shop.git"),
    in_last("project", setup=["make"]),
    in_kind("agent", instructions=None, instructions_path="../../etc/x.md"),
    in_kind("agent", labels={"a b": "c"}),
    in_kind("agent", concurrency=-1),
    in_kind("agent", cost_limit=-1.0),
    in_kind("session", allow=["a\0b"]),
    in_kind("session", approve="never"),
    in_kind("session", mode="A mode"),
    in_kind("task", title="two\nlines"),
    in_kind("task", limits={"x": 1}),
    in_kind("task", priority=101),
    in_kind("order", allow=["a\0b"]),
    in_kind("order", approve="never"),
    in_kind("order", verify=["x" * 100_001]),
    in_kind("order", wanted_labels={"a b": "c"}),
    in_kind("order", on_limit="never"),
    in_kind("order", pull_request={"state": 7}),
    in_kind("order", receipt={"found": "some"}),
    in_kind("step", body={"kind": "mystery"}),
    in_kind("wait", details={}),
    in_kind("wait", details={"plan": {"title": "Plan"}, "edited": {"title": 1}}),
    in_kind("wait", details={"plan": {"title": "Plan"}, "approved": {"title": 1}}),
    in_kind("wait", details={"plan": {"title": "Plan"}, "revision": "one"}),
    in_kind("entry", kind="label", data={}),
    in_kind("entry", kind="branch_summary", data={"text": 1}),
    in_kind("schedule", cron="* * * *"),
    in_kind("schedule", cron="0 0 30 2 *"),
    in_kind("schedule", timezone="Mars"),
    in_kind("schedule", missed="never"),
    in_kind("schedule", task={}),
    in_kind("schedule", task={"title": 7}),
    in_kind("trigger", kind="svn"),
    in_kind("trigger", events=["a b"]),
    in_kind("trigger", task={"title": "{{ payload.x"}),
    in_kind("webhook", url="file:///etc/passwd"),
    in_kind("webhook", url="https://127.0.0.1/"),
    in_kind("webhook", events=["order.odd"]),
    in_kind("budget", limit_nusd=0),
    in_kind("budget", limit_nusd=1_000_000 * NANODOLLARS + 1),
    in_kind("block", granted_nusd=1_000_000 * NANODOLLARS + 1),
    in_kind("price", discount_percent=200.0),
    in_kind("price", input_usd=-1.0),
    in_kind("review_comment", side="up"),
    in_kind("review_comment", text=" "),
]


def test_what_the_api_refuses_an_import_refuses(kept: tuple[Core, list[str]]) -> None:
    core, whole = kept
    before = counted(core)
    for number, breaking in enumerate(REFUSED_BY_THE_API):
        assert refusal_of(core, broken(whole, breaking))[0] == "E-IMPORT-LINE", number
    assert counted(core) == before


def test_the_address_of_what_was_removed_keeps_no_organization_out_and_is_never_used(
    core_factory: CoreFactory, sqlite_url: str, kept: tuple[Core, list[str]]
) -> None:
    core, lines = core_factory(sqlite_url, allow_file_urls=False), [json.loads(line) for line in kept[1]]
    project, webhook = named(lines, "project")[0], named(lines, "webhook")[0]
    for row, address in ((project, {"git_url": "file:///srv/shop.git"}), (webhook, {"url": "https://127.0.0.1/"})):
        row.update(address)
        assert refusal_of(core, text_of(lines))[0] == "E-IMPORT-LINE"
        row["removed_at"] = lines[0]["made_at"]
    moved = exported(core, imported(core, system_caller(core), lines))
    assert (named(moved, "project")[0]["git_url"], named(moved, "webhook")[0]["enabled"]) == ("file:///-", False)


def test_a_json_column_holds_what_its_model_declares(kept: tuple[Core, list[str]]) -> None:
    """Lists of numbers where texts belong made every list of the organization answer 500."""
    core, whole = kept
    there = {json.loads(line).get("kind") for line in whole}
    columns = [(kind, name) for kind in BY_NAME.values() if kind.name in there for name in kind.shapes]
    for kind, name in columns:
        for value in ([1, [2]], {"a": {"b": [1]}}) if "list" in str(kind.shapes[name]) else ([], ["x"]):
            lines = broken(whole, in_kind(kind.name, **{name: value}))
            assert refusal_of(core, lines)[0] == "E-IMPORT-LINE", (kind.name, name, value)
    assert len(columns) > 20


def test_a_broken_file_is_refused_by_its_line_and_changes_nothing(kept: tuple[Core, list[str]]) -> None:
    core, whole = kept
    before = counted(core)
    for breaking, said in BROKEN:
        code, what = refusal_of(core, broken(whole, breaking))
        assert (code, said in what, bool(re.match(r"line \d+ ", what))) == ("E-IMPORT-LINE", True, True), said
    assert counted(core) == before


def test_a_foreign_a_cut_off_a_newer_and_a_too_old_file_and_one_for_an_organization_that_is_there_are_refused(
    kept: tuple[Core, list[str]],
) -> None:
    core, whole = kept
    before = counted(core)
    for lines in ([], ["{}\n"], ["[1]\n"], ["not json"], ["\0\n"], ["{" * 100_000]):
        assert refusal_of(core, lines)[0] in {"E-IMPORT-LINE", "E-IMPORT-CUT"}
    assert refusal_of(core, whole[:-1])[0] == "E-IMPORT-CUT"
    for other, code in ((VERSION + 1, "E-IMPORT-NEWER"), (OLDEST - 1, "E-IMPORT-OLDER")):
        header = whole[0].replace(f'"dronefleet_export": {VERSION}', f'"dronefleet_export": {other}')
        assert refusal_of(core, [header, *whole[1:]])[0] == code
    assert refusal_of(core, whole, None)[0] == "E-ORGANIZATION-NAME"
    assert counted(core) == before


def refusal_of(core: Core, lines: list[str], name: str | None = "moved") -> tuple[str, str]:
    with pytest.raises(FleetError) as refusal:
        transfer.import_lines(core, system_caller(core), lines, name)
    return refusal.value.code, refusal.value.what


def test_a_file_in_the_format_of_the_previous_version_comes_in(core: Core, admin: Caller, payments: Caller) -> None:
    """Without the columns that are gone, and with those that were added."""
    lines = exported(core, payments)
    (organization,) = named(lines, "organization")
    organization["reviewer_id"] = None
    first = exported(core, imported(core, admin, lines, "first"))
    lines[0]["dronefleet_export"] = OLDEST
    del organization["reviewer_id"]
    for kind, columns in json.loads((EXPORTS / f"{OLDEST}.json").read_text()).items():
        for row in named(lines, kind):
            values = {name: row.get(name) for name in columns}
            row.clear()
            row.update(values)
    named(lines, "project")[0]["budget_usd_day"] = 2.5
    second = exported(core, imported(core, admin, lines, "second"))
    assert comparable(second, second[0]["acronym"]) == comparable(first, first[0]["acronym"])


def test_the_first_files_of_this_format_lack_the_columns_that_were_added_since(
    core: Core, admin: Caller, kept: tuple[Core, list[str]]
) -> None:
    lines = [json.loads(line) for line in kept[1]]
    rows = [(kind, row) for kind in BY_NAME.values() if kind.added for row in named(lines, kind.name)]
    for kind, row in rows:
        for name in kind.added:
            del row[name]
    imported(core, admin, lines)
    assert rows


@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_thousand_tasks_travel_in_a_memory_that_does_not_grow_with_their_text(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    providers.add(core, caller, ProviderRequest(name="local", model="openai/x"))
    projects.add(core, caller, ProjectRequest(slug="shop", git_url="https://git.example/shop.git"))
    make_drone(core, caller)
    agents = [add_agent(core, caller, name) for name in ("lead", "backend", "tester")]
    fill(core, caller, agents, tasks=10_000, each=3)
    file = core.blobs.root.parent / "export.jsonl"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with file.open("w") as out:
        out.writelines(transfer.export_lines(core, caller, "payments"))
    with file.open() as source:
        made = transfer.import_lines(core, admin, source, "moved")
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 120_000_000
    old = organizations.show(core, admin, "payments")
    assert (made.totals, made.tasks) == (old.totals, old.tasks)
    assert sum(made.tasks.values()) == 10_000
