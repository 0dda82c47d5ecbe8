"""Texts that users typed and did not send: one per user and subject, and no window overwrites another silently."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from control_plane.core import Caller, Core
from control_plane.db.audit import AuditRecord
from control_plane.declarations.drafts import DraftDocument, DraftEdit
from control_plane.documents.orders import SayRequest, SubmitRequest
from control_plane.operations import drafts
from control_plane.operations.orders import reading, steering
from control_plane.supervisor.cleaning import clean
from control_plane.validation.stale_writes import StaleWrite
from tests.support.made import later, make_project, submit
from tests.support.organizations import add_organization
from tests.support.refusals import code_of

SUBJECT = "order:0123456789ab:message"


@pytest.fixture
def mila(admin: Caller) -> Caller:
    """An operator."""
    return replace(admin, role="operator", user="mila", user_id="a" * 12, everywhere=False)


def save(core: Core, caller: Caller, text: str, version: int = 0, subject: str = SUBJECT) -> DraftDocument:
    return drafts.save(core, caller, subject, DraftEdit(text=text, version=version))


def subjects(core: Core, caller: Caller) -> list[str]:
    return [each.subject for each in drafts.list_drafts(core, caller)]


@pytest.mark.dialects
def test_each_change_has_a_later_version_and_a_stale_one_is_refused_with_the_stored_text(
    core: Core, mila: Caller
) -> None:
    nothing = drafts.show(core, mila, SUBJECT)
    first = save(core, mila, "Mind the tésts\n")
    assert (nothing.text, nothing.version, nothing.updated_at) == ("", 0, None)
    assert (first.text, first.updated_at) == ("Mind the tésts\n", core.clock.now())
    second = save(core, mila, "two", first.version)
    assert second.version > first.version
    with pytest.raises(StaleWrite) as refusal:
        save(core, mila, "from the other window", first.version)
    assert (refusal.value.code, refusal.value.stored) == ("E-DRAFT-STALE", second.model_dump(mode="json"))
    with pytest.raises(StaleWrite):
        drafts.remove(core, mila, SUBJECT, version=first.version)
    assert drafts.show(core, mila, SUBJECT) == second
    assert drafts.remove(core, mila, SUBJECT).text == "two"
    assert drafts.remove(core, mila, SUBJECT).version == 0


def test_a_window_that_missed_that_the_draft_was_sent_and_begun_anew_is_refused(core: Core, mila: Caller) -> None:
    old = save(core, mila, "old")
    drafts.remove(core, mila, SUBJECT)
    with pytest.raises(StaleWrite):
        save(core, mila, "old and more", old.version)
    later(core, seconds=1)
    save(core, mila, "new")
    with pytest.raises(StaleWrite):
        save(core, mila, "old and more", old.version)
    assert drafts.show(core, mila, SUBJECT).text == "new"


@pytest.mark.dialects
def test_of_windows_that_begin_a_draft_at_once_one_wins_and_the_others_learn_its_text(core: Core, mila: Caller) -> None:
    def begin(number: int) -> str:
        try:
            return save(core, mila, f"window {number}").text
        except StaleWrite as refusal:
            return str(refusal.stored["text"])

    with ThreadPoolExecutor(6) as pool:
        known = set(pool.map(begin, range(6)))
    assert known == {drafts.show(core, mila, SUBJECT).text}


def test_drafts_of_other_users_and_organizations_are_not_seen(core: Core, admin: Caller, mila: Caller) -> None:
    oka = replace(mila, user="oka", user_id="b" * 12)
    script = replace(mila, user="script", user_id=None, token_id="c" * 12)
    there = replace(add_organization(core, admin), user_id=mila.user_id, user="mila")
    save(core, mila, "mine")
    assert [drafts.show(core, other, SUBJECT).text for other in (oka, script, there)] == ["", "", ""]
    save(core, script, "the script's")
    assert drafts.show(core, mila, SUBJECT).text == "mine"


def test_what_is_no_text_or_too_long_is_refused(core: Core, mila: Caller) -> None:
    for subject, text, code in (
        (SUBJECT, "x" * 64 * 1024, ""),
        (SUBJECT, "x" * (64 * 1024 + 1), "E-DRAFT-SIZE"),
        (SUBJECT, "ü" * 40_000, "E-DRAFT-SIZE"),
        ("new-order", "x" * 1_500_000, ""),
        ("new-order", "x" * 1_500_001, "E-DRAFT-SIZE"),
        (SUBJECT, "a\0b", "E-TEXT"),
        (SUBJECT, "\ud800", "E-TEXT"),
    ):
        version = drafts.show(core, mila, subject).version
        assert code_of(lambda given=(text, version, subject): save(core, mila, *given)) == code, (subject, len(text))
    assert [len(drafts.show(core, mila, subject).text) for subject in (SUBJECT, "new-order")] == [64 * 1024, 1_500_000]


def test_a_user_has_at_most_200_drafts_and_can_still_change_those(
    core: Core, mila: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "MAX_DRAFTS", 3)
    made = [save(core, mila, "x", subject=f"task:{number}:comment") for number in range(3)]
    assert code_of(lambda: save(core, mila, "x", subject="one-more")) == "E-DRAFT-COUNT"
    save(core, mila, "changed", made[0].version, subject="task:0:comment")


def test_drafts_are_listed_with_the_newest_change_first_and_kept_for_90_days(core: Core, mila: Caller) -> None:
    save(core, mila, "x", subject="first")
    later(core, days=60)
    save(core, mila, "x", subject="second")
    assert subjects(core, mila) == ["second", "first"]
    later(core, days=31)
    clean(core)
    assert subjects(core, mila) == ["second"]


def test_a_draft_is_removed_when_it_is_sent_and_kept_if_it_holds_more(core: Core, admin: Caller, mila: Caller) -> None:
    make_project(core, admin)
    for subject, text in (("new-order", "Fix it"), ("session:x:message", "Fix it")):
        save(core, mila, text, subject=subject)
    submit(core, admin, "Fix it")
    assert "new-order" in subjects(core, mila)
    order = reading.submit(core, mila, SubmitRequest(prompt="Fix it\nplease", project="web"))
    message = f"order:{order.id}:message"
    save(core, mila, "Mind the tests, and the docs", subject=message)
    steering.say(core, mila, order.id, SayRequest(text="Mind the tests"))
    assert sorted(subjects(core, mila)) == sorted([message, "session:x:message"])
    steering.say(core, mila, order.id, SayRequest(text="Mind the tests, and the docs\n"))
    assert subjects(core, mila) == ["session:x:message"]


def test_typing_does_not_fill_the_audit_log(core: Core, mila: Caller) -> None:
    before = records(core)
    version = save(core, mila, "one").version
    save(core, mila, "two", version)
    drafts.remove(core, mila, SUBJECT)
    assert records(core) == before


def records(core: Core) -> int:
    with core.database.read() as db:
        return db.scalar(select(func.count()).select_from(AuditRecord)) or 0
