"""The choices of users: each bad value, what nobody else may see, and the mail server."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from control_plane.attention.contents import Item, MessageContent
from control_plane.attention.mail import send_mail
from control_plane.attention.presence import is_present
from control_plane.contract.declarations.attention import AttentionEdit, PushRequest
from control_plane.contract.declarations.users import UserRequest
from control_plane.contract.validation.invalid_requests import checked
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.core.settings import FleetSettings
from control_plane.db.attention import AttentionMessage, PushKey, PushSubscription
from control_plane.operations.access import users
from control_plane.operations.attention import browsers, choices
from shared.errors import Invalid, NotFound
from tests.support.attention import Notifying
from tests.support.database import CoreFactory
from tests.support.git_servers import self_signed
from tests.support.mail_servers import MailServerStandIn
from tests.support.organizations import add_organization
from tests.support.push_services import SubscribedBrowser, encoded
from tests.support.refusals import code_of

CONTENT = MessageContent(
    "Subject", [Item("test", "Test", "it works", "text", "", [], None, "http://x/", None)], 0, "http://x/", "http://x/"
)


@pytest.fixture
def core(core_factory: CoreFactory, sqlite_url: str) -> Core:
    """A control plane without a server, which may send to this machine."""
    return core_factory(sqlite_url, webhook_private=True)


def member(core: Core, name: str) -> Caller:
    """A new user of the organization."""
    admin = system_caller(core)
    made = users.add(core, admin, UserRequest(email=f"{name}@example.org", name=name, role="operator"))
    return replace(admin, user=name, user_id=made.id)


def test_a_user_is_notified_only_in_organizations_that_they_belong_to(core: Core) -> None:
    elsewhere = add_organization(core, system_caller(core))
    visitor = replace(elsewhere, user_id=member(core, "ada").user_id)
    assert code_of(lambda: choices.edit(core, visitor, AttentionEdit(about="all"))) == "E-ATTENTION-MEMBER"


def test_each_bad_value_is_refused(core: Core) -> None:
    ada, browser = member(core, "ada"), SubscribedBrowser("http://127.0.0.1:9/push/a").request
    values: list[dict[str, object]] = [
        {"kinds": ["everything"]},
        {"about": "mine"},
        {"webhook_url": "ftp://example.org"},
        {"webhook_url": "https://user:password@example.org"},
        {"webhook_url": "https://example.org", "webhook_secret": "short"},
    ]
    subscriptions: list[dict[str, str]] = [
        {"p256dh": "AAAA"},
        {"p256dh": encoded(b"\4" + b"\1" * 64)},
        {"p256dh": "not base64 é"},
        {"auth": ""},
        {"auth": "A"},
        {"endpoint": "not a url"},
        {"endpoint": "https://user@example.org/"},
        {"name": ""},
        {"name": "x" * 65},
    ]
    for value in values:
        with pytest.raises(Invalid):
            choices.edit(core, ada, checked(AttentionEdit, value, form=""))
    for bad in subscriptions:
        with pytest.raises(Invalid):
            browsers.subscribe(core, ada, checked(PushRequest, {"name": "laptop", **browser, **bad}, form=""))
    shown = choices.show(core, ada)
    assert (shown.webhook_url, shown.browsers) == (None, [])


def test_addresses_inside_the_network_are_refused_for_webhooks_and_push(
    core_factory: CoreFactory, sqlite_url: str
) -> None:
    core = core_factory(sqlite_url)
    admin = system_caller(core)
    for url in ("http://127.0.0.1/x", "https://localhost/", "http://2130706433/", "http://[::1]/"):
        request = PushRequest(name="x", **SubscribedBrowser(url).request)
        assert code_of(lambda url=url: choices.edit(core, admin, AttentionEdit(webhook_url=url))) == "E-WEBHOOK-INSIDE"
        assert code_of(lambda request=request: browsers.subscribe(core, admin, request)) == "E-WEBHOOK-INSIDE"


def test_a_browser_belongs_to_one_user_who_alone_removes_it_and_what_lets_others_send_to_it_is_sealed(
    core: Core,
) -> None:
    ada, bob, browser = member(core, "ada"), member(core, "bob"), SubscribedBrowser("http://127.0.0.1:9/push/a")
    browsers.subscribe(core, ada, PushRequest(name="laptop", **browser.request))
    [shown] = choices.show(core, ada).browsers
    with pytest.raises(NotFound):
        browsers.unsubscribe(core, bob, shown.id)
    browsers.subscribe(core, bob, PushRequest(name="shared", **browser.request))
    assert [len(choices.show(core, each).browsers) for each in (ada, bob)] == [0, 1]
    with core.database.read() as db:
        row, key = db.query(PushSubscription).one(), db.query(PushKey).one()
    assert browser.endpoint not in row.sealed_subscription
    opened = core.vault.open_at_rest(row.sealed_subscription, "push_subscriptions.sealed_subscription")
    assert browser.endpoint in opened
    assert "PRIVATE KEY" in core.vault.open_at_rest(key.sealed_private_key, "push_keys.sealed_private_key")


def test_pages_say_that_they_are_in_front_and_only_with_the_browsers_key(notifying: Notifying) -> None:
    caller = notifying.user()
    with notifying.api.browser(token=notifying.token("ada")) as browser, notifying.api.http(None) as thief:
        thief.cookies = browser.cookies
        assert thief.post("/presence/tab", data={"here": "1"}).status_code == 403
        assert not is_present(notifying.core, caller.organization_id, str(caller.user_id))
        assert browser.post("/presence/tab", data={"here": "1"}).status_code == 204
    assert is_present(notifying.core, caller.organization_id, str(caller.user_id))


# --- the mail server -------------------------------------------------------------------------------


def sent_over(core_factory: CoreFactory, url: str, server_url: str) -> str:
    core = core_factory(url, smtp_url=server_url, mail_from="fleet@example.org")
    message = AttentionMessage(id="msg_1", batch="b", channel="email", created_at=core.clock.now())
    return send_mail(core, message, "ada@example.org", CONTENT).error


def test_the_server_gets_user_and_password_over_tls_and_one_without_the_required_encryption_nothing(
    core_factory: CoreFactory,
    sqlite_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mail_server: MailServerStandIn,
) -> None:
    encrypting = mail_server.url.replace("tls=none", "tls=starttls")
    errors = [sent_over(core_factory, sqlite_url, url) for url in (encrypting, "smtp://127.0.0.1:1?tls=none")]
    assert (mail_server.attempts, "STARTTLS" in errors[0], "could not be used" in errors[1]) == (0, True, True)

    certificate, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = MailServerStandIn(tls=context, wants_log_in=True)
    server.start()
    untrusted = sent_over(core_factory, sqlite_url, server.url)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    wrong = server.url.replace("correct", "wrong")
    errors = [sent_over(core_factory, sqlite_url, each) for each in (server.url, wrong)]
    server.close()
    assert ("certificate" in untrusted, len(server.received)) == (True, 1)
    assert errors == ["", "the mail server refused the log-in (535)"]


def test_a_wrong_address_of_the_mail_server_or_sender_is_refused_without_a_password(tmp_path: Path) -> None:
    values = {"database_url": "sqlite://", "broker_url": "redis://x", "blob_dir": tmp_path}
    hosts = ("http://host", "smtp://", "smtp://host?tls=maybe", "smtp://host/path", "smtp://u:secret@host:x")
    senders = ("", "fleet", "a@b\r\nBcc: x@y.z", "a@example.org, b@example.org", "x@nodot")
    wrong = [*({"smtp_url": each} for each in (*hosts, "smtp://h?a=b")), *({"mail_from": each} for each in senders)]
    for fields in wrong:
        with pytest.raises(ValidationError) as refused:
            FleetSettings(**values, **fields)
        assert "secret" not in str([each["msg"] for each in refused.value.errors()])


def test_the_settings_page_saves_what_was_chosen_and_that_nothing_was(notifying: Notifying) -> None:
    caller = notifying.user(email=False)
    was = {"was.kinds": "approvals\nquestions\ntasks", "was.about": "all", "was.email": "", "was.webhook_url": ""}
    form = {**was, "kinds": ["", "orders", "budgets"], "about": "own", "email": "true", "webhook_url": ""}
    none = {**was, "was.kinds": "orders\nbudgets", "was.about": "own", "kinds": "", "about": "own"}
    with notifying.api.browser({"Accept": "text/html"}, token=notifying.token("ada")) as browser:
        assert browser.post("/actions/edit_attention", data=form).status_code == 303
        stored = choices.show(notifying.core, caller)
        assert (stored.kinds, stored.about, stored.email) == (["orders", "budgets"], "own", True)
        assert browser.post("/actions/edit_attention", data=none).status_code == 303
    assert choices.show(notifying.core, caller).kinds == []
