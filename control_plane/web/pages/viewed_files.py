"""Which files of diffs a user has marked as viewed.

They are kept with the user's drafts, in one text: the digest of each file's change, newest first. So a file stays
viewed in the next turn if its change is the same, and is not viewed any more once it differs.
"""

from __future__ import annotations

import re

from control_plane.core import Caller, Core
from control_plane.declarations.drafts import DraftEdit
from control_plane.operations import drafts
from control_plane.validation.stale_writes import StaleWrite
from shared.errors import Invalid

SUBJECT = "viewed-files"
MOST = 4000
"""The oldest marks go first; a draft holds 64 KB."""
ATTEMPTS = 5
_DIGEST = re.compile("[0-9a-f]{12}")


def viewed_files(core: Core, caller: Caller) -> frozenset[str]:
    """The digests of the changes that the caller has seen."""
    return frozenset(drafts.show(core, caller, SUBJECT).text.split())


def mark_viewed(core: Core, caller: Caller, digest: str, *, viewed: bool) -> None:
    """Set or remove the mark.

    Raises Forbidden for a viewer, Invalid, and StaleWrite if other windows of the user do the same without end.
    """
    for attempt in range(1, ATTEMPTS + 1):
        known = drafts.show(core, caller, SUBJECT)
        if not _DIGEST.fullmatch(digest):
            raise Invalid("this is no digest of a file's change", code="E-TEXT", next="reload the page")
        others = [each for each in known.text.split() if each != digest]
        marks = [digest, *others][:MOST] if viewed else others
        try:
            drafts.save(core, caller, SUBJECT, DraftEdit(text=" ".join(marks), version=known.version))
        except StaleWrite:
            if attempt == ATTEMPTS:
                raise
        else:
            return
