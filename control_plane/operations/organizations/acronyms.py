"""How an organization's tasks are called: `PAYM-0001`. No two organizations share an acronym, so no two tasks an id."""

from __future__ import annotations

from collections.abc import Container
from itertools import chain, count

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.installation import Organization

SHORTEST = 4
LONGEST = 12


def next_acronym(db: Session, name: str) -> str:
    """The acronym for a new organization of this name. Another transaction may take it first: the index decides."""
    return free_acronym(name, set(db.scalars(select(Organization.acronym))))


def free_acronym(name: str, taken: Container[str]) -> str:
    """The name's acronym (S-021); where that is taken, its end gives way to a number: PAYM, PAY2, … PA10."""
    acronym = acronym_of(name)
    numbered = (f"{acronym[: max(1, len(acronym) - len(str(number)))]}{number}" for number in count(2))
    return next(each for each in chain((acronym,), numbered) if each not in taken)


def acronym_of(name: str) -> str:
    """`payments` PAYM, `backend_platform` BPPP, `my_big_team` MBTT: initials, or the beginning of a single word."""
    words = name.split("_")
    letters = name[:SHORTEST] if len(words) == 1 else "".join(word[0] for word in words)
    return letters[:LONGEST].ljust(SHORTEST, letters[-1]).upper()
