"""What users are told of, when and through which channel: real SMTP, signed webhooks, and encrypted push messages."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from standardwebhooks import Webhook as Verifier

from control_plane.attention.collecting import COLLECT_FOR, collect, notice_drones
from control_plane.attention.outbox import RETRIES, lease
from control_plane.attention.presence import page_in_front, page_left
from control_plane.contract.declarations.steering import ApproveRequest
from control_plane.contract.declarations.users import UserEdit
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.attention import AttentionChoices, AttentionMessage, AttentionNotice, PushSubscription
from control_plane.operations.access import users
from control_plane.operations.attention import choices
from control_plane.operations.orders.steering import approve
from control_plane.supervisor import Supervisor
from control_plane.supervisor.cleaning import clean
from shared.names import new_id
from shared.states import OrderStatus
from tests.support import wait_until
from tests.support.attention import COMMAND, SECRET, Notifying, asks, questions
from tests.support.planes import QUICK
from tests.support.receivers import Receiver


def test_an_approval_is_mailed_with_its_whole_command_and_to_who_may_answer_with_a_link(notifying: Notifying) -> None:
    notifying.user("vera", role="viewer")
    notifying.user()
    asks(run := notifying.run())
    notifying.round()
    mails = {str(each["To"]): each for each in notifying.mail.received}
    mail, text, to_viewer = (
        mails["ada@example.org"],
        *(str(mails[f"{name}@example.org"].get_body(("plain",)).get_content()) for name in ("ada", "vera")),
    )
    assert (mail["Subject"], mail["From"]) == ("Approval needed: Fix the log-in", "Dronefleet <fleet@example.org>")
    link = SECRET.search(text)
    assert link is not None
    for part in (COMMAND, "Publishes commits", f"/orders/{run.order_id}", "/settings/attention"):
        assert part in text
    html = mail.get_body(("html",)).get_content()
    assert (COMMAND in html, link[0] in html) == (True, True)
    assert (COMMAND in to_viewer, SECRET.search(to_viewer)) == (True, None)


def test_a_push_message_is_signed_and_only_its_browser_can_read_it_until_it_ends_its_subscription(
    notifying: Notifying,
) -> None:
    caller = notifying.user(email=False)
    browsers = {each.endpoint.rpartition("/")[2]: each for each in map(partial(notifying.subscribe, caller), "abc")}
    notifying.push.receiver.answers = [201, 404, 410]
    questions(notifying.run())
    notifying.round()
    sent = notifying.push.receiver.sent[0]
    told = browsers[sent.path.rpartition("/")[2]].opened(sent.body)
    assert (told["title"], told["body"]) == ("Question: Fix the log-in", "Which database?")
    assert told["url"].startswith(f"{notifying.core.settings.url}/answer/fq_")
    claims = notifying.push.claims(sent, choices.show(notifying.core, caller).push_key)
    at = f"http://127.0.0.1:{notifying.push.receiver.port}"
    assert (claims["aud"], claims["sub"]) == (at, "mailto:fleet@example.org")
    headers = (sent.headers["content-encoding"], sent.headers["ttl"])
    assert (headers, len(sent.body) < 4096, b"database" in sent.body) == (("aes128gcm", "86400"), True, False)
    assert len(choices.show(notifying.core, caller).browsers) == 1


def test_nothing_is_sent_to_who_has_a_page_in_front_and_what_still_waits_is_sent_afterwards(
    notifying: Notifying,
) -> None:
    caller = notifying.user(kinds=["approvals", "orders"])
    notifying.user("bob", kinds=["orders"])
    page_in_front(notifying.core, caller.organization_id, str(caller.user_id), "tab")
    asks(run := notifying.run("first"))
    asks(notifying.run("second"))
    notifying.run("third").ends()
    notifying.round()
    assert notifying.mail.recipients == ["bob@example.org"]
    approve(notifying.core, caller, run.order_id, ApproveRequest())
    page_left(notifying.core, caller.organization_id, str(caller.user_id), "tab")
    notifying.round()
    assert notifying.mail.recipients == ["bob@example.org"]
    notifying.clock.sleep(6)
    notifying.round()
    assert [each["Subject"] for each in notifying.mail.received[1:]] == ["Approval needed: second"]
    # A page that says nothing for half a minute is not in front.
    page_in_front(notifying.core, caller.organization_id, str(caller.user_id), "tab")
    notifying.clock.sleep(COLLECT_FOR.total_seconds() + 31)
    asks(notifying.run("fourth"))
    notifying.round()
    assert [each["Subject"] for each in notifying.mail.received[2:]] == ["Approval needed: fourth"]


def test_a_flood_is_one_message_after_the_first_and_a_clock_that_is_set_back_holds_up_none(
    notifying: Notifying,
) -> None:
    notifying.user()
    for number in range(4):
        asks(notifying.run(f"number {number}"))
        notifying.round()
    assert len(notifying.mail.received) == 1
    notifying.clock.sleep(COLLECT_FOR.total_seconds())
    notifying.round()
    assert [each["Subject"] for each in notifying.mail.received][1:] == ["3 things wait for you"]
    assert [f"number {number}" in notifying.mailed() for number in range(4)] == [False, *[True] * 3]
    assert f"Inbox: {notifying.core.settings.url}/" in notifying.mailed()
    notifying.clock.passed -= 3600
    asks(notifying.run("number 4"))
    notifying.round()
    assert "number 4" in notifying.mailed()


def test_only_what_a_user_chose_is_told_also_of_ended_orders_and_silent_drones(notifying: Notifying) -> None:
    notifying.user(kinds=["questions"])
    notifying.user("bob", kinds=[])
    notifying.user("eve", about="own")
    asks(notifying.run("one"))
    questions(notifying.run("two"))
    notifying.round()
    assert notifying.mail.recipients == ["ada@example.org"]
    with notifying.api.http(notifying.token("eve")) as eve:
        order = eve.post("/api/v1/orders", json={"prompt": "mine", "project": "demo"}).json()
    asks(notifying.api.add_drone().take(order))
    notifying.round()
    assert notifying.mail.recipients[1:] == ["eve@example.org"]

    notifying.user("oka", kinds=["orders", "drones"])
    notifying.run("three").ends(OrderStatus.FAILED)
    notifying.clock.sleep(180)
    notice_drones(notifying.core)
    notice_drones(notifying.core)
    notifying.round()
    assert notifying.mail.recipients[2:] == ["oka@example.org"]
    text = notifying.mailed()
    assert ("Order ended: three" in text, text.count("needs care: ")) == (True, 4)


def test_a_failed_attempt_is_repeated_until_its_last_unless_it_was_refused_for_good(
    notifying: Notifying, receiver: Receiver
) -> None:
    caller, other = notifying.user(webhook_url=receiver.url), notifying.user("bob", webhook_url=receiver.url)
    receiver.answers, notifying.mail.answers = [500], ["451 try later", "550 no such mailbox", "250 OK"]
    asks(notifying.run())
    notifying.round()
    shown = sorted(choices.show(notifying.core, each).email_error for each in (caller, other))
    assert shown == [f"the mail server answered {each}" for each in ("451: try later", "550: no such mailbox")]
    notifying.round()
    assert notifying.mail.attempts == 2
    for pause in RETRIES:
        notifying.clock.sleep(pause * 1.2)
        notifying.round()
    errors = sorted(each.error for each in notifying.messages() if each.done_at)
    assert errors == [
        "",
        "gave up after 1 attempts; last error: the mail server answered 550: no such mailbox",
        *["gave up after 7 attempts; last error: HTTP 500"] * 2,
    ]
    assert len(notifying.mail.received) == 1


def test_nothing_is_lost_or_sent_twice_when_the_supervisor_is_replaced(notifying: Notifying) -> None:
    notifying.user()
    notifying.mail.accepts.clear()
    asks(notifying.run("in the middle"))
    first = Supervisor(notifying.core, new_id(), QUICK)
    first.start()
    wait_until(lambda: notifying.mail.attempts)
    assert first.stop() == []
    questions(notifying.run("afterwards"))
    notifying.mail.accepts.set()
    wait_until(lambda: all(each.done_at for each in notifying.messages()))
    notifying.clock.sleep(COLLECT_FOR.total_seconds())
    second, third = (Supervisor(notifying.core, new_id(), QUICK) for _ in range(2))
    second.start(), third.start()
    wait_until(lambda: len(notifying.mail.received) == 2)
    assert (second.stop(), third.stop()) == ([], [])
    subjects = [each["Subject"] for each in notifying.mail.received]
    assert subjects == ["Approval needed: in the middle", "Question: afterwards"]


def test_an_attempt_that_a_killed_process_began_is_repeated_with_the_same_id(notifying: Notifying) -> None:
    notifying.user()
    asks(notifying.run())
    collect(notifying.core)
    [message] = notifying.messages()
    assert (lease(notifying.core, message.id, 0), lease(notifying.core, message.id, 0)) == (True, False)
    notifying.round()
    assert notifying.mail.attempts == 0
    notifying.clock.sleep(61)
    notifying.round()
    assert notifying.mail.received[0]["Message-ID"] == f"<{message.id}@example.org>"


def test_a_disabled_or_removed_user_is_sent_nothing(notifying: Notifying) -> None:
    admin = system_caller(notifying.core)
    notifying.user("bob")
    notifying.subscribe(notifying.user("eve"))
    asks(notifying.run())
    collect(notifying.core)
    users.edit(notifying.core, admin, "bob@example.org", UserEdit(disabled=True))
    users.remove(notifying.core, admin, "eve@example.org")
    notifying.round()
    assert (notifying.mail.received, notifying.push.receiver.sent) == ([], [])
    with notifying.core.database.read() as db:
        assert (db.query(AttentionChoices).count(), db.query(PushSubscription).count()) == (1, 0)


HOSTILE = "Fix\r\nBcc: evil@example.org\r\n\r\n<script>alert(1)</script> \u202egnp.exe\u200b"


def test_hostile_texts_add_no_header_no_markup_and_hide_nothing(notifying: Notifying) -> None:
    notifying.user()
    asks(notifying.run(HOSTILE), why=HOSTILE, command="ls \u202e; rm\r-rf ~ </pre><img src=x>")
    notifying.round()
    [mail] = notifying.mail.received
    assert (mail["Bcc"], notifying.mail.recipients) == (None, ["ada@example.org"])
    assert "\n" not in str(mail["Subject"])
    html = mail.get_body(("html",)).get_content()
    assert ("<script" in html, "<img" in html) == (False, False)
    for text in (html, notifying.mailed(), str(mail["Subject"])):
        assert ("\u202e" in text, "\u200b" in text) == (False, False)
    assert "⟨U+202E⟩; rm␍-rf" in notifying.mailed()


def test_a_webhook_of_ones_own_is_signed_with_the_secret_that_was_shown_once_and_old_messages_are_deleted(
    notifying: Notifying, receiver: Receiver
) -> None:
    caller = notifying.user(email=False)
    shown = notifying.choose(caller, webhook_url=receiver.url)
    assert shown.secret is not None
    assert choices.show(notifying.core, caller).secret is None
    asks(notifying.run())
    notifying.round()
    [sent] = receiver.sent
    body = Verifier(shown.secret).verify(sent.body, {**sent.headers})
    [item] = body["data"]["items"]
    assert (body["type"], item["command"], item["kind"]) == ("attention", COMMAND, "approvals")
    assert "/answer/fq_" in item["answer_url"]
    notifying.clock.sleep(timedelta(days=31).total_seconds())
    clean(notifying.core)
    with notifying.core.database.read() as db:
        assert (db.query(AttentionMessage).count(), db.query(AttentionNotice).count()) == (0, 0)
