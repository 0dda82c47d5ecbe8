"""A webhook of a connected code host: its signature is checked, and the host is read soon."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from sqlalchemy import select, update

from control_plane.automation.code_host_events import read_event
from control_plane.automation.hook_signatures import is_signed
from control_plane.code_hosts.signals import signal_of
from control_plane.core import Core
from control_plane.db.code_hosts import HostLink
from control_plane.declarations.code_hosts import CodeHostAnswer
from shared.errors import NotFound, Unauthenticated


def accept_webhook(core: Core, link_id: str, headers: Mapping[str, str], body: bytes) -> CodeHostAnswer:
    """Note that something happened at the host; names in `headers` are in lower case.

    The payload starts nothing itself: a copy, a late or a forged one is at most a reason to look. Raises
    Unauthenticated, with the same message for a wrong signature and an unknown connection, Invalid for a body that is
    no JSON object, NotFound for another repository.
    """
    row = _signed(core, link_id, headers, body)
    event = read_event(row.kind, headers, body)
    signal = signal_of(row.kind, event.name, event.payload, row.mention)
    if not row.enabled:
        return CodeHostAnswer(outcome="ignored", why="this connection is disabled")
    if signal.repository and signal.repository.lower() != row.repository.lower():
        raise NotFound(
            "this connection belongs to another repository",
            code="E-HOOK-REPOSITORY",
            next="fleet hosts add    connects this repository, and prints an address of its own",
        )
    if signal.why_ignored:
        return CodeHostAnswer(outcome="ignored", why=signal.why_ignored)
    with core.database.write() as db:
        # The first of several sets the time: the others are read with it.
        first = HostLink.id == row.id, HostLink.news_at.is_(None)
        db.execute(update(HostLink).where(*first).values(news_at=core.clock.now()))
    core.broker.wake()
    return CodeHostAnswer(outcome="noted", why=f"{event.name or 'the event'}: the code host is read now")


def _signed(core: Core, link_id: str, headers: Mapping[str, str], body: bytes) -> HostLink:
    with core.database.read() as db:
        row = db.scalar(select(HostLink).where(HostLink.id == link_id, HostLink.removed_at.is_(None)))
    # For an unknown connection, the same work is done with a random secret.
    secret = core.vault.open_at_rest(row.sealed_secret, "host_links.sealed_secret") if row else secrets.token_hex(32)
    if not is_signed(row.kind if row else "github", secret, headers, body) or row is None:
        raise Unauthenticated(
            "unknown connection, or the request is not signed with its secret",
            code="E-HOOK-SIGNATURE",
            next="give the code host the secret that fleet hosts add printed, or set a new one: fleet hosts edit",
        )
    return row
