"""The endpoints of export and import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from control_plane.client.http import Doc, HttpCalls, part
from control_plane.client.refusals import refusal, unreachable

IMPORT_SECONDS = 1800.0
"""Timeout for the import of an organization."""


class AutomationCalls(HttpCalls):
    """A method per endpoint; `FleetClient` documents what each raises."""

    # --- export and import ----------------------------------------------------------------------

    def export_organization(self, name: str) -> Iterator[bytes]:
        """The organization's lines, in pieces. The last line has the kind `end`; without it, the answer was cut off."""
        import httpx

        path, params = f"/api/v1/organizations/{part(name)}/export", {"org": self.organization}
        try:
            with self._connection().stream("GET", path, params=params) as response:
                if not response.is_success:
                    response.read()
                    raise refusal(self.url, response)
                yield from response.iter_bytes()
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise unreachable(self.url, error) from error

    def import_organization(self, pieces: Iterable[bytes], *, name: str | None = None) -> Doc:
        """Return the new organization; `pieces` are the output of `export_organization`."""
        params = {} if name is None else {"name": name}
        return self._object(
            "POST", "/organizations/import", params=params, content=iter(pieces), timeout=IMPORT_SECONDS
        )
