"""The prefix of an organization's task IDs, such as `PAYM-0001`. Acronyms are unique, so task IDs are too."""

from __future__ import annotations

from collections.abc import Container
from itertools import chain, count

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.installation import Organization

SHORTEST = 4
LONGEST = 12


def next_acronym(db: Session, name: str) -> str:
    """The acronym for a new organization. Another transaction may take it first: the unique index decides."""
    return free_acronym(name, set(db.scalars(select(Organization.acronym))))


def free_acronym(name: str, taken: Container[str]) -> str:
    """The name's acronym (S-021). If it is taken, a number replaces its end: PAYM, PAY2, … PA10."""
    acronym = acronym_of(name)
    numbered = (f"{acronym[: max(1, len(acronym) - len(str(number)))]}{number}" for number in count(2))
    return next(each for each in chain((acronym,), numbered) if each not in taken)


def acronym_of(name: str) -> str:
    """Initials, or the beginning of a single word: `payments` PAYM, `backend_platform` BPPP, `my_big_team` MBTT."""
    words = name.split("_")
    letters = name[:SHORTEST] if len(words) == 1 else "".join(word[0] for word in words)
    return letters[:LONGEST].ljust(SHORTEST, letters[-1]).upper()
