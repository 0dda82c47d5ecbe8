"""The HTTP client of the command line: a method per endpoint, plain documents out, the fleet's own errors raised.

httpx is imported by the first request, so that `fleet --help` stays fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from control_plane.contract.client import following
from control_plane.contract.client.http import Doc, HttpCalls, part
from control_plane.contract.client.refusals import refusal, unreachable
from shared.clock import Clock, SystemClock

if TYPE_CHECKING:
    from httpx_sse import ServerSentEvent

IMPORT_SECONDS = 1800.0
"""Timeout for the import of an organization."""


class FleetClient(HttpCalls):
    """One control plane, as one caller sees it.

    Every method raises the `Refused` subclass that the server named (`NotFound`, `Conflict`, `Invalid`, …), with the
    server's code, why and next; `Unauthenticated` for a wrong token; `Unreachable` when nothing answers.
    """

    # --- the server ----------------------------------------------------------------------

    def health(self) -> Doc:
        return self._object("GET", "/health")

    # --- orders -------------------------------------------------------------------------------

    def patch(self, order_id: str) -> bytes:
        """The patch against the base commit; empty if nothing changed. Raises NotFound while there is none."""
        return self._request("GET", f"/orders/{part(order_id)}/patch").content

    def trajectory(self, order_id: str, run: str | None = None) -> bytes:
        """A run as a JSON document in mini-swe-agent-1.1. Raises NotFound while no run has begun."""
        params = {"run": run} if run else {}
        return self._request("GET", f"/orders/{part(order_id)}/trajectory", params=params).content

    def export(self, order_id: str) -> tuple[str, bytes]:
        """The name of a file for an order, without a directory, and its content: a page that needs no server."""
        response = self._request("GET", f"/orders/{part(order_id)}/export")
        named = re.search(r'filename="([A-Za-z0-9]{1,64}\.html)"', response.headers.get("Content-Disposition", ""))
        return named[1] if named else "order.html", response.content

    def log(self, order_id: str, seq: int) -> bytes:
        """The full output of the tool result that is step `seq`."""
        return self._request("GET", f"/orders/{part(order_id)}/log/{seq}").content

    def raw(self, order_id: str, seq: int) -> bytes:
        """The raw answer of the provider at step `seq`."""
        return self._request("GET", f"/orders/{part(order_id)}/raw/{seq}").content

    def follow(
        self,
        order_id: str,
        *,
        after: int = 0,
        patient: bool = False,
        give_up_after_s: float | None = None,
        clock: Clock | None = None,
    ) -> Iterator[tuple[str, Doc]]:
        """Yield `(event, data)` of an order until `end`: each step after `after` exactly once, in order.

        Events: step, delta, order, heartbeat, end (the whole document, the last), and `connection` ({"state": "lost",
        "why", "retry_in_s"} or {"state": "back"}) when the connection is lost and restored. The first connection must
        succeed unless `patient`; after that, retries continue until `give_up_after_s` of silence.

        Raises Unreachable and the server's refusals.
        """
        followed = order_id

        def connect(last: int) -> AbstractContextManager[Iterator[ServerSentEvent]]:
            path = f"/api/v1/orders/{part(followed)}/events"
            return following.open_stream(self._connection(), path, last, self.organization)

        waiting = following.Patience(from_the_start=patient, give_up_after_s=give_up_after_s)
        for event, data in following.follow(connect, after, waiting, clock or SystemClock()):
            if event == "order":
                # By now `@last`, or a prefix, may stand for another order.
                followed = data["id"]
            yield event, data

    # --- sessions -----------------------------------------------------------------------------

    def session_bundle(self, session_id: str) -> bytes:
        """The session's last work as a git bundle."""
        return self._request("GET", f"/sessions/{part(session_id)}/bundle").content

    # --- tasks --------------------------------------------------------------------------------

    def show_task(self, task_id: str, since: str | None = None) -> Doc:
        """The task; with `since`, an ISO time, without earlier comments."""
        return self._object("GET", f"/tasks/{part(task_id)}", params={"since": since} if since else {})

    # --- export and import ----------------------------------------------------------------------

    def export_organization(self, name: str) -> Iterator[bytes]:
        """The organization's lines, in pieces. The last line has the kind `end`; without it, the answer was cut off."""
        return self._pieces(f"/organizations/{part(name)}/export", {})

    def export_audit_log(self, filters: Mapping[str, Any]) -> Iterator[bytes]:
        """The records as lines, in pieces, as `export_organization`; `filters` are those of `AuditExportFilter`."""
        return self._pieces("/audit/export", filters)

    def import_organization(self, pieces: Iterable[bytes], *, name: str | None = None) -> Doc:
        """Return the new organization; `pieces` are the output of `export_organization`."""
        params = {} if name is None else {"name": name}
        return self._object(
            "POST", "/organizations/import", params=params, content=iter(pieces), timeout=IMPORT_SECONDS
        )

    def _pieces(self, path: str, params: Mapping[str, Any]) -> Iterator[bytes]:
        import httpx

        asked = {**params, "org": self.organization}
        try:
            with self._connection().stream("GET", f"/api/v1{path}", params=asked) as response:
                if not response.is_success:
                    response.read()
                    raise refusal(self.url, response)
                yield from response.iter_bytes()
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise unreachable(self.url, error) from error
