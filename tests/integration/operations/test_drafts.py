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


def records(core: Core) -> int:
    with core.database.read() as db:
        return db.scalar(select(func.count()).select_from(AuditRecord)) or 0


def test_a_window_that_missed_a_change_is_refused_with_the_stored_text(core: Core, mila: Caller) -> None:
    """Also that the draft was sent and begun anew. None of it is in the audit log."""
    before = records(core)
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
    assert records(core) == before
    for text in ("", "new"):
        if text:
            later(core, seconds=1)
            save(core, mila, text)
        with pytest.raises(StaleWrite):
            save(core, mila, "two and more", second.version)
        assert drafts.show(core, mila, SUBJECT).text == text


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


def test_what_is_no_text_or_too_much_is_refused(core: Core, mila: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "MAX_DRAFTS", 2)
    for subject, text, code in (
        (SUBJECT, "x" * 64 * 1024, ""),
        (SUBJECT, "ü" * (32 * 1024) + "x", "E-DRAFT-SIZE"),
        ("new-order", "x" * 1_500_000, ""),
        ("new-order", "x" * 1_500_001, "E-DRAFT-SIZE"),
        (SUBJECT, "a\0b", "E-TEXT"),
        (SUBJECT, "\ud800", "E-TEXT"),
        ("one-more", "x", "E-DRAFT-COUNT"),
        (SUBJECT, "changed", ""),
    ):
        version = drafts.show(core, mila, subject).version
        assert code_of(lambda given=(text, version, subject): save(core, mila, *given)) == code, (subject, len(text))
    assert drafts.show(core, mila, "new-order").text == "x" * 1_500_000


def test_a_draft_is_removed_when_it_is_sent_or_after_90_days(core: Core, admin: Caller, mila: Caller) -> None:
    make_project(core, admin)
    for subject in ("new-order", "session:x:message"):
        save(core, mila, "Fix it", subject=subject)
    submit(core, admin, "Fix it")
    assert "new-order" in subjects(core, mila)
    order = reading.submit(core, mila, SubmitRequest(prompt="Fix it\nplease", project="web"))
    message = f"order:{order.id}:message"
    save(core, mila, "Mind the tests, and the docs", subject=message)
    steering.say(core, mila, order.id, SayRequest(text="Mind the tests"))
    assert sorted(subjects(core, mila)) == sorted([message, "session:x:message"])
    steering.say(core, mila, order.id, SayRequest(text="Mind the tests, and the docs\n"))
    assert subjects(core, mila) == ["session:x:message"]

    later(core, days=60)
    save(core, mila, "x", subject="newest")
    assert subjects(core, mila) == ["newest", "session:x:message"]
    later(core, days=31)
    clean(core)
    assert subjects(core, mila) == ["newest"]
