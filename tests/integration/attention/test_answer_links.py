"""One-use answer links over HTTP, without a log-in: each answers one question once, as its user, and then nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import pytest

from control_plane.attention.collecting import COLLECT_FOR
from control_plane.contract.declarations import plans
from control_plane.contract.declarations.plans import EditPlanRequest
from control_plane.contract.declarations.steering import ApproveRequest
from control_plane.contract.declarations.users import UserEdit
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.attention import AnswerLink
from control_plane.db.audit import AuditRecord
from control_plane.db.waits import Wait
from control_plane.operations.access import users
from control_plane.operations.orders.steering import approve
from shared.plans import AgentPlan, PlanPoint
from tests.support.attention import COMMAND, SECRET, Notifying, asks, questions
from tests.support.fleet import PlayedRun

APPROVE, DENY = {"decision": "approve"}, {"decision": "deny", "text": "not on a Friday"}


@pytest.fixture
def run(notifying: Notifying) -> PlayedRun:
    """A run that asked for an approval, of which the user `ada` was mailed."""
    notifying.user()
    run = notifying.run()
    asks(run, until=notifying.clock.now() + timedelta(hours=2))
    notifying.round()
    return run


@pytest.fixture
def stranger(notifying: Notifying) -> Iterator[httpx.Client]:
    """A browser without a log-in."""
    with notifying.api.http(None, **{"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}) as client:
        yield client


def answer_of(notifying: Notifying, run: PlayedRun | None = None) -> str | None:
    """The answer to what this run asked, or to the only question."""
    with notifying.core.database.read() as db:
        waits = db.query(Wait) if run is None else db.query(Wait).filter(Wait.run_id == run.id)
        return waits.one().answer


def test_the_page_shows_the_whole_question_and_a_post_answers_once_as_the_user_and_leaves_no_secret(
    notifying: Notifying, run: PlayedRun, stranger: httpx.Client
) -> None:
    """A page of another site cannot press the button, and of many presses at once one answers."""
    path = notifying.link()
    pages = [stranger.get(path) for _ in range(2)]
    assert {each.status_code for each in pages} == {200}
    for part in ("Fix the log-in", COMMAND, "Publishes commits", "You answer as ada", "Approve", "Deny"):
        assert part in pages[0].text
    headers = [pages[0].headers[name] for name in ("referrer-policy", "cache-control", "x-robots-tag")]
    assert headers == ["same-origin", "no-store", "noindex, nofollow"]
    assert "It is broken" not in pages[0].text
    for sent in ({}, {"decision": "maybe"}, {"decision": "APPROVE"}):
        assert "E-ANSWER-DECISION" in stranger.post(path, data=sent).text
    with notifying.api.http(None, **{"Sec-Fetch-Site": "cross-site"}) as other_site:
        assert other_site.post(path, data=APPROVE).status_code == 403
    assert answer_of(notifying) is None

    with ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(lambda _: stranger.post(path, data=DENY), range(8)))
    assert sum("You denied it" in each.text for each in pages) == 1
    assert {each.status_code for each in pages} <= {200, 409}
    again = stranger.post(path, data=APPROVE)
    assert (again.status_code, "E-ANSWER-LINK" in again.text) == (409, True)
    with notifying.core.database.read() as db:
        wait = db.query(Wait).one()
        assert (wait.answer, wait.answered_by, wait.comment) == ("deny", "ada", "not on a Friday")
        link = db.query(AnswerLink).one()
        record = db.query(AuditRecord).filter(AuditRecord.action == "deny").one()
    who = (record.door, record.actor_kind, record.actor, record.actor_id)
    assert who == ("answer link", "answer link", "ada", link.id)
    stranger.get(path + "0")
    secret = path.rpartition("_")[2].encode()
    stored = b"".join(each.read_bytes() for each in notifying.api.log.parent.glob("**/*") if each.is_file())
    assert (len(stored) > 1000, secret in stored) == (True, False)


def test_an_unexpected_error_leaves_no_secret_of_a_link_in_the_log(
    notifying: Notifying, run: PlayedRun, stranger: httpx.Client
) -> None:
    path = notifying.link()
    with notifying.core.database.write() as db:
        db.connection().exec_driver_sql("UPDATE organizations SET created_at = 'no time at all'")
    assert stranger.get(path).status_code == 500
    log = notifying.api.log.read_text()
    assert ("unexpected error" in log, SECRET.search(log)) == (True, None)


def test_a_question_is_answered_by_a_choice_or_a_text_and_an_invalid_answer_leaves_the_link_usable(
    notifying: Notifying, stranger: httpx.Client
) -> None:
    notifying.user()
    questions(notifying.run())
    notifying.round()
    page = stranger.get(notifying.link()).text
    assert ("SQLite" in page, "PostgreSQL" in page, "Deny" in page) == (True, True, False)
    for text in ("", "7", "   ", "x" * 10_001):
        refused = stranger.post(notifying.link(), data={"text": text})
        assert (refused.status_code in {413, 422}, f">\n{text}</textarea>" in refused.text) == (True, True)
    assert stranger.post(notifying.link(), data={"text": "2"}).status_code == 200
    assert answer_of(notifying) == "PostgreSQL"


def test_a_link_whose_question_somebody_else_answered_names_them_and_changes_nothing(
    notifying: Notifying, run: PlayedRun, stranger: httpx.Client
) -> None:
    path = notifying.link()
    approve(notifying.core, notifying.user("bob"), run.order_id, ApproveRequest())
    for answer in (stranger.get(path), stranger.post(path, data=DENY)):
        assert ("Already answered by bob: approve" in answer.text, answer.status_code) == (True, 200)
    assert answer_of(notifying) == "approve"


def test_a_link_ends_with_its_question_and_at_the_latest_after_a_day(
    notifying: Notifying, run: PlayedRun, stranger: httpx.Client
) -> None:
    path = notifying.link()
    notifying.clock.sleep(2 * 3600 + 1)
    assert "E-ANSWER-LINK" in stranger.post(path, data=APPROVE).text
    questions(notifying.run("without a limit"))
    notifying.round()
    later = notifying.link()
    notifying.clock.sleep(24 * 3600)
    assert "has expired" in stranger.post(later, data={"text": "x"}).text


def test_a_link_does_not_answer_a_call_that_was_asked_anew(
    notifying: Notifying, run: PlayedRun, stranger: httpx.Client
) -> None:
    notifying.clock.sleep(1)
    asks(run, command="rm -rf /")
    answer = stranger.post(notifying.link(), data=APPROVE)
    assert (answer.status_code, answer_of(notifying)) == (409, None)


def test_a_link_has_only_the_rights_that_its_user_has_now(notifying: Notifying, stranger: httpx.Client) -> None:
    admin, changes = system_caller(notifying.core), {"ada": {"disabled": True}, "bob": {"role": "viewer"}, "eve": None}
    for name in changes:
        notifying.user(name)
    asks(notifying.run())
    notifying.round()
    links = {
        str(mail["To"]): SECRET.search(mail.get_body(("plain",)).get_content()) for mail in notifying.mail.received
    }
    for name, change in changes.items():
        email = f"{name}@example.org"
        if change is None:
            users.remove(notifying.core, admin, email)
        else:
            users.edit(notifying.core, admin, email, UserEdit.model_validate(change))
        link = links[email]
        assert link is not None
        assert stranger.post(link[0], data=APPROVE).status_code in {403, 409}, name
        assert answer_of(notifying) is None, name


def test_unknown_links_are_404_and_attempts_are_limited(notifying: Notifying, stranger: httpx.Client) -> None:
    for path in ("", "x/y", "%00", "%F0%9F", "../orders", "x" * 5000):
        assert stranger.get(f"/answer/{path}").status_code in {303, 404, 422}, path
    statuses = [stranger.get(f"/answer/fq_{number:064x}").status_code for number in range(31)]
    assert (set(statuses), statuses[30]) == ({404, 429}, 429)


def test_texts_of_the_question_are_marked_and_escaped(notifying: Notifying, stranger: httpx.Client) -> None:
    notifying.user()
    asks(notifying.run("<b>bold</b> \u202e"), command="ls \u202e; rm\r <script>alert(1)</script>", why="<img src=x>")
    notifying.round()
    page = stranger.get(notifying.link()).text
    assert ("<script>alert" in page, "<img src=x" in page, "<b>" in page, "\u202e" in page) == (False,) * 4
    assert "⟨U+202E⟩; rm␍" in page
    assert "You approved it" in stranger.post(notifying.link(), data=APPROVE).text


PLAN = AgentPlan(title="Mend the log-in", points=(PlanPoint(text="Check the token"), PlanPoint(text="Test it")))


def test_a_plan_is_shown_whole_and_approved_or_sent_back_with_words_but_not_approved_if_it_was_edited_since(
    notifying: Notifying, stranger: httpx.Client
) -> None:
    notifying.user()
    drone = notifying.api.add_drone("mila")
    first, second = (drone.take(notifying.api.submit("Fix the log-in", plan_first=True)) for _ in range(2))
    first.presents(PLAN)
    notifying.round()
    page = stranger.get(notifying.link()).text
    assert ("Mend the log-in" in page, "Check the token" in page) == (True, True)
    assert stranger.post(notifying.link(), data={**APPROVE, "revision": "0"}).status_code == 200
    assert answer_of(notifying, first) == "approve"

    second.presents(PLAN)
    notifying.clock.sleep(COLLECT_FOR.total_seconds())
    notifying.round()
    path = notifying.link()
    edited = EditPlanRequest(text="# Theirs\n\n1. Other work")
    notifying.api.client.call(plans.EDIT, edited, order_id=second.order_id)
    outdated = stranger.post(path, data={**APPROVE, "revision": "0", "text": "\nOnly <b>this"})
    assert (outdated.status_code, ">\n\nOnly &lt;b&gt;this</textarea>" in outdated.text) == (409, True)
    assert stranger.post(path, data={"decision": "deny"}).status_code == 422
    assert answer_of(notifying, second) is None
    assert "Other work" in stranger.get(path).text
    assert stranger.post(path, data=DENY).status_code == 200
    assert answer_of(notifying, second) == "send back"
