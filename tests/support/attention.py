"""A control plane that notifies users, with a mail server and a push service, and rounds of its supervisor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.attention.collecting import collect
from control_plane.attention.outbox import Outbox
from control_plane.contract.declarations.attention import AttentionDocument, AttentionEdit, PushRequest
from control_plane.contract.declarations.tokens import ApiTokenRequest
from control_plane.contract.declarations.users import UserRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.attention import AttentionMessage
from control_plane.operations.access import tokens, users
from control_plane.operations.attention import browsers, choices
from shared.events import ApprovalStep
from tests.support.broker import BrokerServer
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.fleet import Api, PlayedRun, api_on
from tests.support.mail_servers import MailServerStandIn
from tests.support.push_services import PushServiceStandIn, SubscribedBrowser

COMMAND = "git push --force origin main"
SECRET = re.compile(r"/answer/(fq_[0-9a-f]{64})")


@dataclass
class Notifying:
    """The control plane, with the clock that a test sets, and what it sends to."""

    api: Api
    clock: HandClock
    mail: MailServerStandIn
    push: PushServiceStandIn
    runs: int = 0

    @property
    def core(self) -> Core:
        return self.api.core

    def user(self, name: str = "ada", role: str = "operator", **chosen: Any) -> Caller:
        """A new user, who is notified by e-mail unless `chosen` says otherwise."""
        admin = system_caller(self.core)
        users.add(self.core, admin, UserRequest(email=f"{name}@example.org", name=name, role=role))
        self.choose(caller := self.caller(name, role), **{"email": True, "about": "all", **chosen})
        return caller

    def caller(self, name: str, role: str = "operator") -> Caller:
        return tokens.authenticate(self.core, self.token(name, role))

    def token(self, name: str, role: str = "operator") -> str:
        """The text of a new token of this user."""
        request = ApiTokenRequest(name=name, role=role, user=f"{name}@example.org")
        return str(tokens.create_api_token(self.core, system_caller(self.core), request).token)

    def choose(self, caller: Caller, **chosen: Any) -> AttentionDocument:
        return choices.edit(self.core, caller, AttentionEdit(**chosen))

    def subscribe(self, caller: Caller, name: str = "laptop") -> SubscribedBrowser:
        browser = self.push.subscribe(name)
        browsers.subscribe(self.core, caller, PushRequest(name=name, **browser.request))
        return browser

    def run(self, prompt: str = "Fix the log-in\n\nIt is broken.") -> PlayedRun:
        """A run of a new order, on a drone of its own."""
        self.runs += 1
        return self.api.add_drone(f"drone-{self.runs}").take(self.api.submit(prompt))

    def round(self) -> None:
        """One round of the supervisor: collect, send, and wait until each attempt is recorded."""
        collect(self.core)
        Outbox(self.core).round()

    def messages(self) -> Sequence[AttentionMessage]:
        with self.core.database.read() as db:
            return db.scalars(select(AttentionMessage).order_by(AttentionMessage.created_at)).all()

    def mailed(self) -> str:
        """The text of the newest e-mail."""
        return str(self.mail.received[-1].get_body(("plain",)).get_content())  # type: ignore[union-attr]

    def link(self) -> str:
        """The path of the answer link in the newest e-mail."""
        found = SECRET.search(self.mailed())
        assert found is not None, self.mailed()
        return f"/answer/{found[1]}"


def asks(run: PlayedRun, call_id: str = "c1", **fields: Any) -> None:
    """The run asks for an approval."""
    values = {"tool": "shell", "why": "Publishes commits", "command": COMMAND, **fields}
    run.step(ApprovalStep(call_id=call_id, **values))


def questions(run: PlayedRun, call_id: str = "q1", **fields: Any) -> None:
    """The run asks a question with two choices."""
    values = {"tool": "ask", "why": "Which database?", "choices": ("SQLite", "PostgreSQL"), **fields}
    run.step(ApprovalStep(call_id=call_id, about="question", **values))


@pytest.fixture
def notifying(
    sqlite_url: str,
    valkey: BrokerServer,
    core_factory: CoreFactory,
    mail_server: MailServerStandIn,
    push_service: PushServiceStandIn,
) -> Iterator[Notifying]:
    """A control plane on SQLite that may send to this machine, with a project and a clock that stands still."""
    # The verification of webhooks compares with the real time.
    clock = HandClock(datetime.now(UTC))
    settings: dict[str, Any] = {"smtp_url": mail_server.url, "mail_from": "Dronefleet <fleet@example.org>"}
    with api_on(sqlite_url, valkey, core_factory, clock=clock, webhook_private=True, **settings) as api:
        api.add_work()
        yield Notifying(api, clock, mail_server, push_service)
