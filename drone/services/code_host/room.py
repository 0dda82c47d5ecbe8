"""How much of a reading fits in the event that reports it; the rest is left for the next one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TypeVar

from drone.reporting.event_size import halve_longest
from shared.blobs import MAX_EVENT, sealed_size
from shared.code_hosts import SeenPull, SeenReview
from shared.wire import Wire

ROOM = MAX_EVENT * 9 // 10
"""Bytes for a reading. The rest is for what else the event says, and for masks that are longer than their secrets."""
P = TypeVar("P", bound=Wire)


def size_of(*parts: Wire) -> int:
    """The bytes that these parts of a reading take in the sealed event, in which it is a text."""
    return sum(sealed_size(json.dumps(part.model_dump_json(), ensure_ascii=False)) - sealed_size("") for part in parts)


def taken(parts: Iterable[P], room: int, cut: Callable[[P, int], P]) -> tuple[P, ...]:
    """The first of the parts, as many as fit; if not even one does, that one, cut."""
    found: list[P] = []
    for part in parts:
        size = size_of(part)
        if size > room:
            return tuple(found) or (cut(part, room),)
        found.append(part)
        room -= size
    return tuple(found)


def cut_texts(part: P, room: int) -> P:
    """The part with its longest texts cut in the middle, so that it fits."""
    document = part.model_dump(mode="json")
    while size_of(type(part).model_validate(document)) > room and halve_longest(document):
        pass
    return type(part).model_validate(document)


def cut_pull(pull: SeenPull, room: int) -> SeenPull:
    """The pull request with shorter logs and as many of its newest reviews as fit, at least a part of one."""
    bare = cut_texts(pull.model_copy(update={"reviews": ()}), room // 2)
    newest = sorted(pull.reviews, key=lambda each: each.at, reverse=True)
    reviews = taken(newest, room - size_of(bare), _cut_review)[::-1]
    return bare.model_copy(update={"reviews": reviews, "more": size_of(*reviews) < size_of(*pull.reviews)})


def _cut_review(review: SeenReview, room: int) -> SeenReview:
    bare = cut_texts(review.model_copy(update={"comments": ()}), room // 2)
    comments = taken(review.comments[::-1], room - size_of(bare), cut_texts)[::-1]
    return bare.model_copy(update={"comments": comments})
