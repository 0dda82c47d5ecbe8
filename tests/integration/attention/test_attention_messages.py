"""What users are told of, when and through which channel: real SMTP, signed webhooks, and encrypted push messages."""

from __future__ import annotations

from datetime import timedelta

from standardwebhooks import Webhook as Verifier

from control_plane.attention.collecting import COLLECT_FOR, collect, notice_drones
from control_plane.attention.outbox import RETRIES, lease
from control_plane.attention.presence import page_in_front, page_left
from control_plane.db.attention import AttentionChoices, PushSubscription
from control_plane.declarations.users import UserEdit
from control_plane.documents.orders import ApproveRequest, DenyRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.access import users
from control_plane.operations.attention import choices
from control_plane.operations.orders.steering import approve, deny
from control_plane.supervisor import Supervisor
from shared.names import new_id
from shared.states import OrderStatus
from tests.support import wait_until
from tests.support.attention import COMMAND, Notifying, asks, questions
from tests.support.planes import QUICK
from tests.support.receivers import Receiver


def test_an_approval_is_mailed_with_its_whole_command_and_an_answer_link(notifying: Notifying) -> None:
    notifying.user()
    asks(run := notifying.run())
    notifying.round()
    [mail] = notifying.mail.received
    assert (mail["Subject"], mail["To"], mail["From"]) == (
        "Approval needed: Fix the log-in",
        "ada@example.org",
        "Dronefleet <fleet@example.org>",
    )
    for part in (COMMAND, "Publishes commits", notifying.link(), f"/orders/{run.order_id}", "/settings/attention"):
        assert part in notifying.mailed()
    html = mail.get_body(("html",)).get_content()
    assert COMMAND in html
    assert notifying.link() in html


def test_a_push_message_is_signed_and_only_its_browser_can_read_it(notifying: Notifying) -> None:
    caller = notifying.user(email=False)
    browser = notifying.subscribe(caller)
    questions(notifying.run())
    notifying.round()
    [sent] = notifying.push.receiver.sent
    told = browser.opened(sent.body)
    assert (told["title"], told["body"]) == ("Question: Fix the log-in", "Which database?")
    assert told["url"].startswith(f"{notifying.core.settings.url}/answer/fq_")
    claims = notifying.push.claims(sent, choices.show(notifying.core, caller).push_key)
    assert (claims["aud"], claims["sub"]) == (
        f"http://127.0.0.1:{notifying.push.receiver.port}",
        "mailto:fleet@example.org",
    )
    assert (sent.headers["content-encoding"], sent.headers["ttl"], len(sent.body) < 4096) == (
        "aes128gcm",
        "86400",
        True,
    )
    assert b"database" not in sent.body


def test_nothing_is_sent_while_a_page_is_in_front_and_what_still_waits_is_sent_afterwards(
    notifying: Notifying,
) -> None:
    caller = notifying.user(kinds=["approvals", "orders"])
    page_in_front(notifying.core, caller.organization_id, str(caller.user_id), "tab")
    asks(run := notifying.run("first"))
    asks(notifying.run("second"))
    notifying.run("third").ends()
    notifying.round()
    approve(notifying.core, caller, run.order_id, ApproveRequest())
    page_left(notifying.core, caller.organization_id, str(caller.user_id), "tab")
    notifying.round()
    assert notifying.mail.received == []
    notifying.clock.sleep(6)
    notifying.round()
    assert [each["Subject"] for each in notifying.mail.received] == ["Approval needed: second"]


def test_a_page_that_says_nothing_for_half_a_minute_is_not_in_front_and_one_silences_its_user_alone(
    notifying: Notifying,
) -> None:
    caller, other = notifying.user(), notifying.user("bob")
    page_in_front(notifying.core, caller.organization_id, str(caller.user_id), "tab")
    asks(notifying.run())
    notifying.clock.sleep(29)
    notifying.round()
    assert (notifying.mail.recipients, other.user_id == caller.user_id) == (["bob@example.org"], False)
    notifying.clock.sleep(2)
    notifying.round()
    assert sorted(notifying.mail.recipients) == ["ada@example.org", "bob@example.org"]


def test_a_flood_is_one_message_after_the_first(notifying: Notifying) -> None:
    notifying.user()
    asks(notifying.run("number 0"))
    notifying.round()
    for number in range(1, 6):
        asks(notifying.run(f"number {number}"))
        notifying.round()
    assert len(notifying.mail.received) == 1
    notifying.clock.sleep(COLLECT_FOR.total_seconds())
    notifying.round()
    assert [each["Subject"] for each in notifying.mail.received][1:] == ["5 things wait for you"]
    assert [f"number {number}" in notifying.mailed() for number in range(6)] == [False, *[True] * 5]
    assert f"Inbox: {notifying.core.settings.url}/" in notifying.mailed()


def test_what_was_answered_before_an_attempt_is_not_sent(notifying: Notifying) -> None:
    caller = notifying.user()
    asks(run := notifying.run())
    collect(notifying.core)
    deny(notifying.core, caller, run.order_id, DenyRequest())
    notifying.round()
    assert (notifying.mail.attempts, [bool(each.done_at) for each in notifying.messages()]) == (0, [True])


def test_only_what_a_user_chose_is_told(notifying: Notifying) -> None:
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


def test_a_failed_attempt_is_repeated_and_its_error_is_shown_until_one_succeeds(notifying: Notifying) -> None:
    caller = notifying.user()
    notifying.mail.answers = ["451 try later", "250 OK"]
    asks(notifying.run())
    notifying.round()
    shown = choices.show(notifying.core, caller)
    assert (shown.email_error, shown.waiting) == ("the mail server answered 451: try later", 1)
    notifying.round()
    assert notifying.mail.attempts == 1
    notifying.clock.sleep(RETRIES[0] * 1.2)
    notifying.round()
    assert (len(notifying.mail.received), choices.show(notifying.core, caller).email_error) == (1, "")


def test_a_message_is_given_up_after_its_last_attempt_and_at_once_if_it_is_refused_for_good(
    notifying: Notifying, receiver: Receiver
) -> None:
    notifying.user(webhook_url=receiver.url)
    receiver.answers, notifying.mail.answers = [500], ["550 no such mailbox"]
    asks(notifying.run())
    notifying.round()
    for pause in RETRIES:
        notifying.clock.sleep(pause * 1.2)
        notifying.round()
    errors = sorted(each.error for each in notifying.messages() if each.done_at)
    assert errors == [
        "gave up after 1 attempts; last error: the mail server answered 550: no such mailbox",
        "gave up after 7 attempts; last error: HTTP 500",
    ]


def test_a_browser_that_ended_its_subscription_is_removed(notifying: Notifying) -> None:
    caller = notifying.user(email=False)
    notifying.subscribe(caller), notifying.subscribe(caller)
    notifying.push.receiver.answers = [404, 410]
    asks(notifying.run())
    notifying.round()
    assert choices.show(notifying.core, caller).browsers == []


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


def test_ended_orders_and_silent_drones_are_told_to_those_who_chose_them(notifying: Notifying) -> None:
    notifying.user(kinds=["orders", "drones"])
    notifying.run().ends(OrderStatus.FAILED)
    notifying.clock.sleep(180)
    notice_drones(notifying.core)
    notice_drones(notifying.core)
    notifying.round()
    text = notifying.mailed()
    assert ("2 things for you", "Order ended: Fix the log-in" in text, text.count("needs care: ")) == (
        notifying.mail.received[0]["Subject"],
        True,
        1,
    )


def test_a_webhook_of_ones_own_is_signed_with_the_secret_that_was_shown_once(
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


def test_old_notices_and_messages_are_deleted(notifying: Notifying) -> None:
    from control_plane.supervisor.cleaning import clean

    notifying.user()
    asks(notifying.run())
    notifying.round()
    notifying.clock.sleep(timedelta(days=31).total_seconds())
    clean(notifying.core)
    assert (notifying.messages(), notifying.notices()) == ([], [])
