"""A sent form as the call of an operation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request

from control_plane.contract.declarations.operation import Operation, every_operation
from control_plane.contract.validation.invalid_requests import FieldProblem, InvalidRequest, checked
from control_plane.core import Caller, Core
from control_plane.operations.gateway import OperationCall, perform
from control_plane.web.forms.fields import FormField, form_fields, name_fields
from control_plane.web.rendering import PAGE_ORGANIZATION
from shared.errors import Conflict, Invalid, NotFound, Refused

WAS = "was."
"""Prefix of the hidden fields with the values that the form was opened with."""
ASKS = "asks_names"
"""Hidden field of a form in which the user also types what the operation is to act on."""
KEY = "idempotency_key"
"""Hidden field of forms that add something: a form that is sent twice adds it once."""
MOST_KEY = 64
DRAFTS = "draft"
"""Fields that scripts add: the name of a field, a blank, and the subject of its draft."""
_SAFE = re.compile(r"[A-Za-z0-9._:@-]{1,100}")
MOST_SHOWN = 300


async def form_of(request: Request, caller: Caller, most_fields: int) -> FormData:
    """What a page sent. Raises Conflict if another organization was chosen since the page was loaded."""
    form = await request.form(max_fields=most_fields, max_files=0)
    shown = str(form.get(PAGE_ORGANIZATION, caller.organization))
    if shown != caller.organization:
        raise Conflict(
            f"this page shows the organization {shown[:80]!r}, but {caller.organization!r} was chosen meanwhile",
            code="E-FORM-ORGANIZATION",
            next="reload the page",
        )
    return form


@dataclass(frozen=True)
class ForeignChange:
    """A field that someone else changed while the form was open."""

    name: str
    label: str
    theirs: str


class ChangedMeanwhile(Refused):
    """Someone else changed the same fields since the form was opened."""

    http_status = 409

    def __init__(self, differences: Sequence[ForeignChange]) -> None:
        named = "; ".join(f"{each.label} is now {each.theirs[:MOST_SHOWN] or 'empty'!r}" for each in differences)
        super().__init__(
            "someone else changed this while the form was open",
            code="E-FORM-STALE",
            why=named,
            next="save again to overwrite it with your values",
        )
        self.differences = differences


@dataclass(frozen=True)
class SentForm:
    """What a user sent for one operation."""

    operation: Operation
    names: Mapping[str, str]
    typed: Mapping[str, str]
    """By the field's name; only those that the form contained."""
    was: Mapping[str, str]
    asks_names: bool = False
    """The form asks for the names in the operation's path, too."""
    key: str | None = None
    """The idempotency key."""
    drafts: Mapping[str, str] = field(default_factory=dict)
    """By the subject of a draft: the text that is sent."""

    @classmethod
    def of(cls, operation: Operation, form: FormData) -> SentForm:
        """The texts of a form. A browser sends every line end as CR LF."""
        texts = {name: value.replace("\r\n", "\n") for name, value in form.items() if isinstance(value, str)}
        fields = [each.name for each in form_fields(operation)]
        # A list may be a group of checkboxes.
        for each in form_fields(operation):
            if each.shape == "lines" and len(several := form.getlist(each.name)) > 1:
                texts[each.name] = "\n".join(str(value) for value in several if value)
        return cls(
            operation,
            {name: texts.get(name, "").strip() for name in operation.names},
            {name: texts[name] for name in fields if name in texts},
            {name: texts[WAS + name] for name in fields if WAS + name in texts},
            ASKS in texts,
            texts.get(KEY, "")[:MOST_KEY] or None,
            {subject: texts.get(name, "") for name, subject in named_drafts(form)},
        )

    def overwriting(self, differences: Sequence[ForeignChange]) -> SentForm:
        """The same form as if it were opened now, so that sending it again overwrites what was changed."""
        return replace(self, was={**self.was, **{each.name: each.theirs for each in differences}})

    def values(self) -> dict[str, Any]:
        """The request's fields: for a change only those that differ from what the form was opened with.

        Raises InvalidRequest with each field that cannot be read.
        """
        found: dict[str, Any] = {}
        problems: list[FieldProblem] = []
        for each in self._told():
            try:
                value = each.value_of(self.typed[each.name])
            except Invalid as error:
                problems.append(FieldProblem(field=each.name, what=error.what))
                continue
            if value in (None, [], {}) and not self._empties(each) and not each.may_be_empty:
                continue
            place = found
            for part in each.path[:-1]:
                place = place.setdefault(part, {})
            place[each.path[-1]] = "" if value is None and not each.removable else value
        if problems:
            raise InvalidRequest(problems, CORRECT)
        return found

    def call(self) -> OperationCall:
        """The call. Raises InvalidRequest with each wrong field."""
        operation = self.operation
        missing = [FieldProblem(field=name, what="is required") for name, value in self.names.items() if not value]
        if missing:
            raise InvalidRequest(missing, CORRECT)
        request = checked(operation.request, self.values(), form=CORRECT) if operation.request else None
        return OperationCall(operation, self.names, request, self.key if operation.idempotent else None)

    @property
    def key_of_page(self) -> str:
        """The key of a form whose operation takes none, so that the page's request counts once; empty: it has none."""
        return "" if self.operation.idempotent else key_of_page(self.operation.name, self.key or "")

    def _told(self) -> Iterator[FormField]:
        """The fields that the request contains. A nested value is replaced as a whole, so it is sent as a whole."""
        fields = [each for each in form_fields(self.operation) if each.name in self.typed]
        changed = {each.path[0] for each in fields if self.was.get(each.name) != self.typed[each.name]}
        return (
            each
            for each in fields
            if each.path[0] in changed and (each.path[1:] or self.was.get(each.name) != self.typed[each.name])
        )

    def _empties(self, field: FormField) -> bool:
        """Whether the field had a value, and the user emptied it."""
        return bool(self.was.get(field.name)) and field.shape != "secret" and not field.path[1:]


CORRECT = "correct the marked fields"


def key_of_page(action: str, key: str) -> str:
    """As what a page's request for this action is recorded; empty without a key."""
    return f"{action}:{key}" if _SAFE.fullmatch(key) else ""


def named_drafts(form: FormData) -> Iterator[tuple[str, str]]:
    """The field and the subject of each draft that the form sends."""
    for each in form.getlist(DRAFTS):
        name, _, subject = str(each).partition(" ")
        if _SAFE.fullmatch(subject):
            yield name, subject


def operation_named(name: str) -> Operation:
    """The operation that changes something and has this name. Raises NotFound."""
    operation = _changing().get(name)
    if operation is None:
        raise NotFound(f"no action is called {name[:80]!r}", code="E-HTTP-404", next="go back and reload the page")
    return operation


@cache
def _changing() -> Mapping[str, Operation]:
    return {each.name: each for each in every_operation() if each.method != "GET" and not each.route_by_hand}


def present(core: Core, caller: Caller, operation: Operation, names: Mapping[str, str]) -> Mapping[str, Any]:
    """The present values of what a form changes; nothing for an operation that adds something. Raises NotFound."""
    shown = _shows(operation.path) if operation.method == "PATCH" else None
    if shown is None:
        return {}
    return dict(perform(core, caller, OperationCall(shown, names)))


def differences(sent: SentForm, now: Mapping[str, Any]) -> list[ForeignChange]:
    """The fields that this form changes and that have another value now than when it was opened."""
    found = []
    for each in form_fields(sent.operation):
        was, typed = sent.was.get(each.name), sent.typed.get(each.name)
        theirs = each.text_of(value_at(now, each))
        if each.shape != "secret" and was is not None and typed not in (None, was) and theirs not in (was, typed):
            found.append(ForeignChange(each.name, each.label, theirs))
    return found


def value_at(document: Mapping[str, Any], field: FormField) -> Any:
    """The field's value in a document; None if the document does not show it."""
    value: Any = document
    for part in field.path:
        value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
    return value


def names_shown(sent: SentForm) -> list[FormField]:
    """The names that the form asks for."""
    return name_fields(sent.operation) if sent.asks_names else []


@cache
def _shows(path: str) -> Operation | None:
    same = (each for each in every_operation() if each.method == "GET" and each.path == path)
    return next(same, None)


def parsed(sent: SentForm) -> dict[str, Any]:
    """The values as far as they can be read, for the text of the command beside the form."""
    try:
        return sent.values()
    except Invalid:
        return {}
