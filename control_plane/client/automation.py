"""The endpoints of export and import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from control_plane.client.http import Doc, HttpCalls, part
from control_plane.client.refusals import refusal, unreachable

IMPORT_SECONDS = 1800.0
"""Timeout for the import of an organization."""


class AutomationCalls(HttpCalls):
    """A method per endpoint; `FleetClient` documents what each raises."""

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
