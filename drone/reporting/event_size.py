"""Keeping an event within the size limit: its longest texts are cut in the middle until it fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic import TypeAdapter

from shared.blobs import MAX_EVENT, sealed_size
from shared.events import Body
from shared.wire import Wire

SHORTEST = 200
"""Characters below which a text is not cut any further."""

ROOM = MAX_EVENT * 9 // 10
"""Bytes for a result made of parts. The rest is for what else its event says, and for masks longer than secrets."""

_BODY: TypeAdapter[Body] = TypeAdapter(Body)
P = TypeVar("P", bound=Wire)


def fit(body: Body, limit: int = MAX_EVENT) -> Body:
    """Return `body`, or a copy whose longest texts were cut to head and tail: below `limit` bytes when sealed."""
    if sealed_size(body.model_dump_json()) <= limit:
        return body
    document = body.model_dump(mode="json")
    # Halving the longest text each time reaches any limit in a few dozen iterations; small texts stay whole.
    while sealed_size(json.dumps(document, ensure_ascii=False)) > limit and halve_longest(document):
        pass
    return _BODY.validate_python(document)


def size_of(*parts: Wire) -> int:
    """The bytes that these parts of a result take in the sealed event, in which it is a text."""
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


def halve_longest(document: dict[str, Any]) -> bool:
    """Halve the longest text inside `document`, in place; False if there is nothing left to cut."""
    holder, key, length = _longest(document)
    if length > SHORTEST:
        holder[key] = halved(holder[key])
        return True
    if isinstance(document.get("arguments"), dict | list):
        # Large because of its many small parts: as one text it can be cut, and a model's arguments may be text.
        document["arguments"] = json.dumps(document["arguments"], ensure_ascii=False)
        return True
    return False


def halved(text: str) -> str:
    """Keep the first and the last quarter of `text`, with the number of characters left out between them."""
    quarter = len(text) // 4
    note = f"\n[... {len(text) - 2 * quarter} characters omitted ...]\n"
    return text[:quarter] + note + text[len(text) - quarter :]


def _longest(node: Any) -> tuple[Any, Any, int]:
    """The position of the longest text in a JSON document: its container, its key there, and its length."""
    best: tuple[Any, Any, int] = (None, None, 0)
    todo = [node]
    while todo:
        container = todo.pop()
        items = container.items() if isinstance(container, dict) else enumerate(container)
        for key, value in items:
            if isinstance(value, str) and len(value) > best[2]:
                best = (container, key, len(value))
            elif isinstance(value, dict | list):
                todo.append(value)
    return best
