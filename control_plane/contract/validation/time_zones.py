"""Names of time zones, as users write them."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from zoneinfo import available_timezones

from control_plane.contract.validation.checks import shown
from shared.errors import Invalid

_COMPARED = 64
"""Characters of a name that are compared with others."""


def check_zone(name: str, *, code: str = "E-ZONE") -> str:
    """The name of an IANA time zone, unchanged. Raises Invalid with similar names."""
    known = _known()
    if name not in known:
        near = get_close_matches(name[:_COMPARED], sorted(known), n=3, cutoff=0.6)
        example = f"did you mean {' or '.join(near)}?" if near else "use an IANA time zone, for example Europe/Berlin"
        raise Invalid(f"unknown time zone {shown(name)}", code=code, next=example).of(name)
    return name


@cache
def _known() -> frozenset[str]:
    """Read once: it opens each file of the system's time zones."""
    return frozenset(available_timezones())
