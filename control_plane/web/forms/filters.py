"""The filters of a list: one value that is parsed from the address and written as one, with a chip for each term."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request

from control_plane.contract.declarations.operation import Operation
from control_plane.contract.validation.invalid_requests import checked
from control_plane.core import Caller, Core
from control_plane.web.forms.fields import FormField, form_fields
from control_plane.web.forms.options import offered
from control_plane.web.problems import problem_of
from shared.errors import Refused

LIMIT, CURSOR = "limit", "before"
PAGING = frozenset({LIMIT, CURSOR})
"""Terms that say how much is shown, not what."""
MOST_SHOWN = 200
"""Rows of one page; a longer list continues on the next."""
MOST_LISTED = 1000
"""Rows of a list that has no cursor."""


@dataclass(frozen=True)
class Chip:
    """One term of a filter."""

    words: str
    without: str
    """The address of the list without this term."""


@dataclass(frozen=True)
class Filters:
    """What a list is narrowed to, and how much of it is shown."""

    path: str
    operation: Operation
    terms: Mapping[str, str]
    """As in the address, by the names of the request's fields there; without empty ones."""
    step: int = 50

    @classmethod
    def of(cls, path: str, operation: Operation, query: Mapping[str, str]) -> Filters:
        """The terms of an address; others are ignored."""
        names = [_query_name(operation, each) for each in form_fields(operation)]
        return cls(path, operation, {name: query[name] for name in names if query.get(name, "").strip()})

    @property
    def limit(self) -> int:
        text = self.terms.get(LIMIT, "")
        return min(int(text), self._most) if text.isdecimal() and len(text) < 9 and int(text) else self.step

    @property
    def _most(self) -> int:
        assert self.operation.request is not None
        return MOST_SHOWN if CURSOR in self.operation.request.model_fields else MOST_LISTED

    def fields(self) -> Iterator[tuple[str, FormField]]:
        """The fields that narrow the list, with their names in the address."""
        named = ((_query_name(self.operation, each), each) for each in form_fields(self.operation))
        return ((name, each) for name, each in named if name not in PAGING)

    def chips(self) -> list[Chip]:
        """The terms in words."""
        given = [(name, each) for name, each in self.fields() if name in self.terms]
        return [Chip(_words(each, self.terms[name]), self.without(name).address) for name, each in given]

    def summary(self) -> str:
        """All terms in one line."""
        return ", ".join(each.words for each in self.chips())

    @property
    def address(self) -> str:
        """The address of the list as it is narrowed and shown."""
        return f"{self.path}?{urlencode(self.terms)}" if self.terms else self.path

    @property
    def topic(self) -> str:
        """The live topic of the list as it is narrowed and shown, without `=`, which separates topics and versions."""
        kind = self.path.strip("/")
        return f"{kind}:{quote(urlencode(self.terms), safe='')}" if self.terms else kind

    def without(self, *names: str) -> Filters:
        """Without these terms, from the list's beginning."""
        gone = {*names, *PAGING}
        return replace(self, terms={name: text for name, text in self.terms.items() if name not in gone})

    def more(self, ids: Sequence[str]) -> str | None:
        """The address that shows more: as one longer list while that is short enough, else the rest of it.

        None if the list of these ids, as it is shown, is complete.
        """
        if len(ids) < self.limit:
            return None
        if self.limit < self._most:
            return replace(self, terms={**self.terms, LIMIT: str(self.limit + self.step)}).address
        if self._most > MOST_SHOWN:
            return None
        return replace(self, terms={**self.without().terms, CURSOR: ids[-1]}).address

    def arguments(self) -> dict[str, Any]:
        """The arguments of the operation. Raises InvalidRequest for a wrong term."""
        typed = {name: text for name, text in self.terms.items() if name != LIMIT}
        assert self.operation.request is not None
        return dict(checked(self.operation.request, {**typed, LIMIT: self.limit}, form="change the filter"))

    def listed(self, request: Request, name: str, read: Callable[..., Sequence[Any]]) -> dict[str, Any]:
        """What `read` finds, under this name, and the address of the rest; for a wrong term nothing, and the reason."""
        try:
            rows = read(**self.arguments())
        except Refused as error:
            return {name: [], "more": None, "problem": problem_of(request.scope, error).model_dump()}
        return {name: rows, "more": self.more([each.id for each in rows]), "problem": None}

    def offers(self, core: Core, caller: Caller) -> dict[str, tuple[str, ...]]:
        """The values that each field offers, by its name in the address."""
        return {
            name: tuple(dict.fromkeys(each.choices or offered(core, caller, each.source)))
            for name, each in self.fields()
        }


def _query_name(operation: Operation, field: FormField) -> str:
    assert operation.request is not None
    return operation.request.model_fields[field.path[0]].alias or field.name


def _words(field: FormField, text: str) -> str:
    return field.hint.rstrip(".") if field.shape == "switch" else f"{field.label}: {text.replace('_', ' ')}"
