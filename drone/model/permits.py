"""What the model asks before each call: whether the limits that all runs share allow it now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from shared.rates import Tokens


class Permit(Protocol):
    """One call that may be made. Exactly one of the methods is called when it has ended."""

    def answered(self, headers: Mapping[str, Any], used: Tokens) -> None:
        """The endpoint answered."""
        ...

    def refused(self, headers: Mapping[str, Any], retry_after: float | None) -> bool:
        """The endpoint refused the call because of a rate limit (429).

        Returns whether the next permit is given when it is time to retry: then the caller needs no pause of its own.
        """
        ...

    def failed(self) -> None:
        """The call failed otherwise, or was abandoned."""
        ...

    def unused(self) -> None:
        """The call was not made."""
        ...


class Permits(Protocol):
    """Decides when a call may be made."""

    def take(self, provider: str, expected: Tokens) -> Permit:
        """Return when the call may be made. Raises what the run's controls raise while it waits."""
        ...


class Unrestricted:
    """Permits and permit of a run that shares limits with no other: calls are made at once."""

    def take(self, provider: str, expected: Tokens) -> Unrestricted:  # noqa: ARG002
        return self

    def answered(self, headers: Mapping[str, Any], used: Tokens) -> None: ...

    def refused(self, headers: Mapping[str, Any], retry_after: float | None) -> bool:  # noqa: ARG002
        return False

    def failed(self) -> None: ...

    def unused(self) -> None: ...
