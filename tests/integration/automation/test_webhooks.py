"""Webhooks: what is told arrives signed, slow and broken receivers harm nobody, and nothing goes inside the network."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from standardwebhooks import Webhook as Verifier

from control_plane.automation.notices import notify
from control_plane.automation.webhook_delivery import WebhookMessage, post
from control_plane.automation.webhook_outbox import PATIENCE, RETRIES, Sender, send_one
from control_plane.broker.broker import Broker
from control_plane.contract.declarations.orders import CancelRequest
from control_plane.contract.declarations.webhooks import WebhookDocument, WebhookEdit, WebhookRequest
from control_plane.core import Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.automation import Webhook, WebhookDelivery
from control_plane.operations.automation import webhooks
from control_plane.operations.orders.canceling import cancel
from control_plane.supervisor.cleaning import clean
from tests.support import wait_until
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.git_servers import self_signed
from tests.support.made import later
from tests.support.planes import Plane, hand_clock, plane_on
from tests.support.receivers import Receiver
from tests.support.refusals import code_of

Doc = dict[str, Any]


@pytest.fixture
def core(core_factory: CoreFactory, database_url: str, clock: HandClock) -> Core:
    """On a server that may send inside the network, with a clock that stands still."""
    return core_factory(database_url, clock=clock, webhook_private=True)


def add(core: Core, url: str, name: str = "chat", **fields: Any) -> WebhookDocument:
    return webhooks.create(core, system_caller(core), WebhookRequest(name=name, url=url, **fields))


def tell(core: Core, event: str = "task.waiting", **data: Any) -> None:
    with core.database.write() as db:
        notify(db, core, system_caller(core).organization_id, event, data)


def messages(core: Core) -> Sequence[WebhookDelivery]:
    with core.database.read() as db:
        return db.scalars(select(WebhookDelivery).order_by(WebhookDelivery.created_at, WebhookDelivery.id)).all()


def show(core: Core, name: str = "chat") -> WebhookDocument:
    return webhooks.show(core, system_caller(core), name)


def send(core: Core, **options: Any) -> None:
    """Send what is due now, and wait until each answer is noted."""
    Sender(core, **options).round()


def test_a_message_arrives_signed_so_that_the_library_of_the_standard_takes_it(
    core_factory: CoreFactory, sqlite_url: str, receiver: Receiver
) -> None:
    core = core_factory(sqlite_url, webhook_private=True)
    secret = add(core, receiver.url).secret
    add(core, receiver.url, "failures", events=["order.failed"])
    tell(core, "task.waiting", task="DEFA-0001", text="Grüße \u2028")
    send(core)
    [sent] = receiver.sent
    assert secret is not None
    body: Doc = Verifier(secret).verify(sent.body, sent.headers)
    assert (body["type"], body["data"]) == ("task.waiting", {"task": "DEFA-0001", "text": "Grüße \u2028"})
    assert (sent.path, sent.headers["content-type"]) == ("/fleet", "application/json")
    assert sent.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert messages(core)[0].status_code == 204


@pytest.fixture
def telling_plane(core_factory: CoreFactory, database_url: str, broker: Broker) -> Iterator[Plane]:
    """A control plane that may send inside the network."""
    yield from plane_on(core_factory(database_url, broker=broker, clock=hand_clock(), webhook_private=True))


def test_the_ends_of_orders_are_told_once_by_running_supervisors(telling_plane: Plane, receiver: Receiver) -> None:
    core, drone = telling_plane.core, telling_plane.drone()
    add(core, receiver.url)
    telling_plane.collector(), telling_plane.supervisor(), telling_plane.supervisor()
    telling_plane.submit(drone="oka")
    order = telling_plane.until(drone.take)
    assert drone.claim(order)
    drone.report(order, drone.started(), drone.ended())
    telling_plane.until(lambda: receiver.sent)
    canceled = telling_plane.submit()
    cancel(core, telling_plane.admin, canceled, CancelRequest(reason="no longer needed"))
    telling_plane.until(lambda: len(messages(core)) == 2 and all(each.done_at for each in messages(core)))
    told = [json.loads(each.body) for each in receiver.sent]
    assert [(each["type"], each["data"]["order"]) for each in told] == [
        ("order.succeeded", order.order_id),
        ("order.canceled", canceled),
    ]


@pytest.mark.dialects
def test_of_two_senders_each_message_is_sent_by_one(core: Core, receiver: Receiver) -> None:
    add(core, receiver.url)
    for number in range(12):
        tell(core, number=number)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: send(core), range(2)))
    assert all(each.done_at for each in messages(core))
    assert len(receiver.ids()) == len(set(receiver.ids())) == 12


def send_all(core: Core) -> None:
    """Send in this thread what is due, as the sender does in its own."""
    for each in messages(core):
        if each.done_at is None and each.next_at is not None and each.next_at <= core.clock.now():
            with core.database.write() as db:
                row = db.get_one(WebhookDelivery, each.id)
                row.attempts += 1
            send_one(core, each.id)


def test_what_failed_is_sent_again_after_pauses_that_grow_eight_times_at_most_and_then_by_a_person(
    core: Core, receiver: Receiver
) -> None:
    receiver.answers, receiver.body = [503, 500], b"out of\norder"
    add(core, receiver.url)
    tell(core)
    pauses = []
    for _ in RETRIES:
        send_all(core)
        failed = messages(core)[0]
        assert failed.next_at is not None
        pauses.append((failed.next_at - core.clock.now()).total_seconds())
        core.clock.sleep(pauses[-1])
    assert (failed.attempts, failed.status_code, failed.error) == (7, 500, "HTTP 500: out of order")
    assert (show(core).waiting, show(core).failing_since) == (1, failed.created_at)
    send_all(core)
    given_up = messages(core)[0]
    assert [pause / wanted for pause, wanted in zip(pauses, RETRIES, strict=True)] == pytest.approx([1] * 7, abs=0.11)
    assert (given_up.attempts, given_up.next_at) == (8, None)

    receiver.answers = [204]
    due = webhooks.resend(core, system_caller(core), "chat", given_up.id)
    assert (due.attempts, due.next_at) == (0, core.clock.now())
    send(core)
    taken = messages(core)[0]
    assert (taken.status_code, taken.error, taken.attempts, taken.next_at) == (204, "", 1, None)
    assert (show(core).failing_since, show(core).waiting) == (None, 0)
    assert set(receiver.ids()) == {given_up.id}
    webhooks.edit(core, system_caller(core), "chat", WebhookEdit(enabled=False))
    assert code_of(lambda: webhooks.resend(core, system_caller(core), "chat", given_up.id)) == "E-WEBHOOK-OFF"


def test_a_receiver_that_is_gone_or_only_failed_for_five_days_is_left_alone_with_the_reason(
    core: Core, receiver: Receiver
) -> None:
    receiver.answers = [410]
    add(core, receiver.url)
    tell(core)
    send(core)
    tell(core)
    assert (show(core).enabled, len(messages(core)), "410" in show(core).last_error) == (False, 1, True)
    receiver.answers = [500]
    assert webhooks.edit(core, system_caller(core), "chat", WebhookEdit(enabled=True)).failing_since is None
    core.clock.sleep(60)
    begun = core.clock.now()
    for _ in range(12):
        tell(core)
        send_all(core)
        still = show(core)
        core.clock.sleep(PATIENCE.total_seconds() / 12)
    send_all(core)
    off = show(core)
    assert (still.enabled, still.failing_since) == (True, begun)
    assert (off.enabled, "every attempt since" in off.last_error) == (False, True)


def test_a_receiver_that_failed_again_after_days_without_a_message_stays_enabled(
    core: Core, receiver: Receiver
) -> None:
    receiver.answers = [502]
    add(core, receiver.url)
    webhooks.test(core, system_caller(core), "chat")
    core.clock.sleep(PATIENCE.total_seconds())
    tell(core)
    send_all(core)
    assert (show(core).enabled, show(core).failing_since) == (True, core.clock.now())


def test_a_message_that_is_resent_while_it_is_being_sent_is_retried_from_the_first_pause(
    core: Core, receiver: Receiver
) -> None:
    receiver.answers = [502]
    add(core, receiver.url)
    tell(core)
    [message] = messages(core)
    webhooks.resend(core, system_caller(core), "chat", message.id)
    send_one(core, message.id)
    due = messages(core)[0].next_at
    assert due is not None
    assert (due - core.clock.now()).total_seconds() == pytest.approx(RETRIES[0], rel=0.11)


@pytest.mark.dialects
def test_messages_to_a_receiver_that_is_gone_wait_until_it_is_enabled_again(core: Core, receiver: Receiver) -> None:
    receiver.answers = [410]
    add(core, receiver.url)
    for number in range(6):
        tell(core, number=number)
    send(core)
    # The two that were under way when it said so.
    assert (len(receiver.sent), show(core).waiting) == (2, 4)
    receiver.answers = [204]
    webhooks.edit(core, system_caller(core), "chat", WebhookEdit(enabled=True))
    send(core)
    assert (len(set(receiver.ids())), show(core).waiting) == (6, 0)


def test_a_redirect_is_a_failure_and_is_not_followed(core: Core, receiver: Receiver, second_receiver: Receiver) -> None:
    receiver.headers = {"Location": second_receiver.url}
    receiver.body = b"x" * 5_000_000
    for status in (301, 307):
        receiver.answers = [status]
        error = posted(core, receiver.url)
        assert f"HTTP {status}" in error
        assert second_receiver.url in error
    assert second_receiver.sent == []


def test_a_slow_receiver_holds_up_nobody_else(core: Core, receiver: Receiver, second_receiver: Receiver) -> None:
    receiver.open.clear()
    add(core, receiver.url, "slow")
    add(core, second_receiver.url, "quick")
    for number in range(20):
        tell(core, number=number)
    sender = Sender(core)
    sender.send_due()
    wait_until(lambda: (sender.send_due(), len(second_receiver.sent) == 20)[1])
    waiting = show(core, "slow").waiting
    begun = len(receiver.sent)
    receiver.open.set()
    for _ in range(20):
        sender.round()
    assert show(core, "slow").waiting == 0
    assert (waiting, begun <= 2) == (20, True)
    # One that never comes to an end is given up after its time.
    receiver.open.clear()
    for receiver.drips in (False, True):
        tell(core)
        send(core, seconds=0.5)
    said = {(each.status_code, each.error) for each in messages(core) if each.error}
    assert said == {(None, "no response within 0.5 s")}


def posted(core: Core, url: str) -> str:
    """What is said of an attempt to send to this address."""
    message = WebhookMessage("msg_1", "fleet.test", core.clock.now(), {}, url, "whsec_" + "A" * 44)
    return post(message, core.clock.now(), inside_allowed=True, seconds=10).error


def test_a_certificate_that_nobody_trusts_is_not_taken_and_one_that_is_trusted_is(
    core: Core, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = self_signed(tmp_path)
    receiver.encrypt(certificate, key)
    url = f"https://127.0.0.1:{receiver.port}/"
    refused = posted(core, url)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert "certificate" in refused
    assert receiver.sent == []
    assert posted(core, url) == ""


def test_a_name_is_looked_up_once_and_what_it_leads_to_is_judged_and_connected_to(
    core_factory: CoreFactory, sqlite_url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, url = core_factory(sqlite_url), f"http://receiver.example:{receiver.port}/"
    add(core, url)
    tell(core)
    names(monkeypatch, ["93.184.215.14", "127.0.0.1"])
    send(core)
    assert "receiver.example resolves to an address inside this network" in messages(core)[0].error
    assert receiver.sent == []
    asked = names(monkeypatch, ["127.0.0.1"])
    assert (posted(core, url), asked) == ("", ["receiver.example"])
    assert receiver.sent[0].headers["host"] == f"receiver.example:{receiver.port}"


def names(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> list[str]:
    """Let the name `receiver.example` lead to these addresses; returns the list of names that were looked up."""
    real, asked = socket.getaddrinfo, []

    def getaddrinfo(host: str, port: int, *rest: Any, **options: Any) -> Any:
        if host != "receiver.example":
            return real(host, port, *rest, **options)
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def test_what_cannot_be_is_refused(core: Core) -> None:
    url = "https://receiver.example/"
    secrets = ("", "x", "whsec_", "whsec_short", "whsec_" + "ä" * 40, "A" * 44, "whsec_" + "A" * 200)
    codes = {secret: code_of(lambda secret=secret: add(core, url, secret=secret)) for secret in secrets}
    assert codes == dict.fromkeys(secrets, "E-WEBHOOK-SECRET")
    add(core, url)
    assert code_of(lambda: add(core, url)) == "E-WEBHOOK-NAME"
    assert code_of(lambda: add(core, url, "b", events=["task.wating"])) == "E-WEBHOOK-EVENT"


def test_messages_are_kept_for_thirty_days_and_none_is_sent_to_a_webhook_that_was_removed(
    core: Core, receiver: Receiver
) -> None:
    add(core, receiver.url)
    tell(core)
    webhooks.remove(core, system_caller(core), "chat")
    send(core)
    assert (messages(core)[0].error, receiver.sent) == ("the webhook was removed", [])
    later(core, days=29)
    clean(core)
    kept = len(messages(core))
    later(core, days=2)
    clean(core)
    assert (kept, len(messages(core))) == (1, 0)


def test_a_webhook_can_be_tried_out_while_it_is_off_and_its_secret_is_not_stored_in_clear(
    core: Core, receiver: Receiver
) -> None:
    admin = system_caller(core)
    made = add(core, receiver.url)
    with core.database.read() as db:
        stored = repr([list(row) for row in db.execute(select(Webhook.__table__))])
    assert (show(core).secret, str(made.secret).removeprefix("whsec_") in stored) == (None, False)
    webhooks.edit(core, admin, "chat", WebhookEdit(enabled=False))
    taken = webhooks.test(core, admin, "chat")
    receiver.answers = [404]
    refused = webhooks.test(core, admin, "chat")
    assert (taken.status_code, taken.error, refused.status_code, refused.error) == (204, "", 404, "HTTP 404")
    assert [each.attempts for each in webhooks.deliveries(core, admin, "chat")] == [1, 1]
    assert json.loads(receiver.sent[0].body)["type"] == "fleet.test"
