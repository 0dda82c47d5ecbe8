"""Texts that users typed and did not send: one per user and subject, and no window overwrites another silently."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from control_plane.contract.declarations.drafts import DraftDocument, DraftEdit
from control_plane.contract.declarations.steering import SayRequest
from control_plane.contract.validation.stale_writes import StaleWrite
from control_plane.core import Caller, Core
from control_plane.db.audit import AuditRecord
from control_plane.db.orders import SteeringMessage
from control_plane.operations import drafts
from control_plane.operations.orders import steering
from control_plane.supervisor.cleaning import clean
from shared.errors import Invalid
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


def test_a_window_that_missed_a_change_is_refused_with_the_stored_text(core: Core, mila: Caller) -> None:
    """Also that the draft was sent and begun anew. None of it is in the audit log."""
    nothing = drafts.show(core, mila, SUBJECT)
    assert (nothing.text, nothing.version, nothing.updated_at) == ("", 0, None)
    first = save(core, mila, "Mind the tésts\n")
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
    with core.database.read() as db:
        assert db.scalar(select(func.count()).select_from(AuditRecord)) == 0
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


@pytest.fixture
def order(core: Core, admin: Caller) -> str:
    make_project(core, admin)
    return submit(core, admin, "Fix it").id


def send(core: Core, caller: Caller, order: str, text: str, key: str = "") -> str:
    """Send a message as a page does; returns the code of its refusal."""

    def say() -> None:
        with drafts.sending(core, caller, key, {SUBJECT: text}):
            steering.say(core, caller, order, SayRequest(text=text))

    return code_of(say)


def messages(core: Core) -> list[str]:
    with core.database.read() as db:
        return list(db.scalars(select(SteeringMessage.text).order_by(SteeringMessage.number)))


def test_a_draft_is_deleted_with_the_transaction_that_sends_its_text(core: Core, mila: Caller, order: str) -> None:
    """More than was sent is kept, and so is all of what was not sent."""
    for draft, text, kept, code in (
        ("Mind the tests\n", "Mind the tests", "", ""),
        ("Mind", "Mind the tests", "", ""),
        ("Mind the tests, and the docs", "Mind the tests", "Mind the tests, and the docs", ""),
        ("Something else", "Mind the tests", "Something else", ""),
        ("Mind the tests", " ", "Mind the tests", "E-SAY-EMPTY"),
    ):
        save(core, mila, draft, drafts.show(core, mila, SUBJECT).version)
        assert (send(core, mila, order, text), drafts.show(core, mila, SUBJECT).text) == (code, kept), draft


@pytest.mark.dialects
def test_a_form_that_is_sent_again_with_its_key_counts_once(core: Core, mila: Caller, order: str) -> None:
    """Also if its requests arrive at the same time. What was refused may be corrected with the same key."""
    save(core, mila, "typed meanwhile")
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda _: send(core, mila, order, "one", "k1"), range(4)))
    assert sorted(codes) == ["", *["E-FORM-SENT"] * 3]
    oka = replace(mila, user="oka", user_id="b" * 12)
    answers = {
        "another key": send(core, mila, order, "two", "k2"),
        "another user": send(core, oka, order, "three", "k1"),
        "no key": send(core, mila, order, "four"),
        "no key again": send(core, mila, order, "four"),
        "refused": send(core, mila, order, "", "k3"),
        "corrected": send(core, mila, order, "five", "k3"),
        "much later": (later(core, days=6), clean(core), send(core, mila, order, "one", "k1"))[2],
    }
    assert {name: code for name, code in answers.items() if code} == {
        "refused": "E-SAY-EMPTY",
        "much later": "E-FORM-SENT",
    }
    assert messages(core) == ["one", "two", "three", "four", "four", "five"]
    assert subjects(core, mila) == [SUBJECT], "keys are no drafts"


def test_what_is_refused_after_its_first_transaction_can_be_sent_again(core: Core, mila: Caller) -> None:
    def refused_late() -> None:
        with drafts.sending(core, mila, "k1", {}):
            save(core, mila, "first")
            raise Invalid("no", code="E-TEXT")

    assert code_of(refused_late) == "E-TEXT"
    with drafts.sending(core, mila, "k1", {}):
        assert drafts.show(core, mila, SUBJECT).text == "first"


def test_drafts_are_deleted_90_days_after_their_last_change_and_keys_after_7(core: Core, mila: Caller) -> None:
    save(core, mila, "x")
    with drafts.sending(core, mila, "k1", {}):
        save(core, mila, "x", subject="other")
    later(core, days=60)
    save(core, mila, "x", subject="newest")
    assert subjects(core, mila) == ["newest", "other", SUBJECT]
    clean(core)
    with drafts.sending(core, mila, "k1", {}):
        later(core, days=31)
    clean(core)
    assert subjects(core, mila) == ["newest"]
