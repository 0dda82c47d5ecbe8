"""Every operation that changes something, as a form: `/actions/<operation>`.

A page links to a form, which opens in a dialog, or posts to the same address from a button. So what a user sends
becomes a call in one place, with the permissions, the audit entry and the command of its declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from control_plane.contract.declarations.operation import Operation
from control_plane.contract.declarations.tokens import JoinTokenDocument
from control_plane.contract.validation.invalid_requests import InvalidRequest
from control_plane.core import Caller, Core
from control_plane.operations import drafts
from control_plane.operations.gateway import perform, permit
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.destinations import MAKES, destination
from control_plane.web.forms import texts
from control_plane.web.forms.commands import command_of
from control_plane.web.forms.fields import FormField, form_fields
from control_plane.web.forms.options import documents_of, offered
from control_plane.web.forms.requests import (
    ASKS,
    ChangedMeanwhile,
    SentForm,
    differences,
    form_of,
    names_shown,
    operation_named,
    parsed,
    present,
    value_at,
)
from control_plane.web.pages.frame import frame, rights
from control_plane.web.problems import problem_of
from control_plane.web.rendering import page, wants_part
from shared.errors import Conflict, Invalid, Refused
from shared.names import new_id

router = APIRouter(prefix="/actions", include_in_schema=False)
MOST_FIELDS = 500
_SAVING = Lock()
_SECRETS = ("token", "secret")


@dataclass(frozen=True)
class Shown:
    """A form as it is shown: what is in it, why it was refused, and where it leads."""

    sent: SentForm
    error: Refused | None = None
    next: str = ""
    shows_command: bool = False


@router.get("/{name}")
def show_form(request: Request, core: CoreDep, caller: CallerDep, name: str) -> Response:
    """The form of an operation; values in the query fill it, and the names of what it changes are there, too."""
    return filled_form(request, core, caller, operation_named(name), None)


def filled_form(
    request: Request, core: Core, caller: Caller, operation: Operation, given: BaseModel | None
) -> Response:
    """The form of an operation, filled with a request for it, and over that with the query."""
    permit(operation, caller)
    query = dict(request.query_params)
    names = {each: query.get(each, "") for each in operation.names}
    asks = not all(names.values())
    now = {} if asks else present(core, caller, operation, names)
    fields = form_fields(operation)
    was = {each.name: each.text_of(value_at(now, each)) for each in fields} if now else {}
    # A secret is never shown: an empty field leaves it as it is.
    was |= {each.name: "" for each in fields if each.shape == "secret" and now}
    defaults = {each.name: each.text_of(each.default) for each in fields}
    if given is not None:
        defaults = {each.name: each.text_of(value_at(dict(given), each)) for each in fields}
    sent = SentForm(operation, names, {**defaults, **was, **query}, was, asks)
    return _form(request, caller, Shown(sent, next=query.get("next", "")))


@router.post("/{name}")
async def act(request: Request, caller: CallerDep, name: str) -> Response:
    """Do it. A refusal shows the form again as it was sent, with the reason."""
    operation = operation_named(name)
    form = await form_of(request, caller, MOST_FIELDS)
    return await to_thread.run_sync(_act, request, caller, operation, form)


@router.post("/{name}/command")
async def show_command(request: Request, caller: CallerDep, name: str) -> Response:
    """The form as it was sent, with the command that does the same; nothing is done."""
    operation = operation_named(name)
    form = await form_of(request, caller, MOST_FIELDS)
    shown = Shown(SentForm.of(operation, form), next=str(form.get("next", "")), shows_command=True)
    return await to_thread.run_sync(_form, request, caller, shown)


def _act(request: Request, caller: Caller, operation: Operation, form: FormData) -> Response:
    core: Core = request.app.state.core
    sent, wanted = SentForm.of(operation, form), str(form.get("next", ""))
    try:
        # Of two who save at once, the second is compared with what the first saved.
        with _SAVING if sent.was else nullcontext():
            if sent.was and (found := differences(sent, present(core, caller, operation, sent.names))):
                raise ChangedMeanwhile(found)
            call = sent.call()
            with drafts.sending(core, caller, sent.key_of_page, sent.drafts):
                answer = perform(core, caller, call)
    except drafts.AlreadySent:
        # The answer was lost on its way, and the page asks again.
        answer = None
    except Refused as error:
        # Buttons and forms of pages show the reason themselves.
        if request.headers.get("accept") == "application/json":
            raise
        sent = sent.overwriting(error.differences) if isinstance(error, ChangedMeanwhile) else sent
        return _form(request, caller, Shown(sent, error, wanted))
    if _shows_once(answer):
        return _created(request, caller, sent, answer)
    target = destination(operation, sent.names, answer, wanted)
    if operation.name in MAKES and wants_part(request):
        # A script cannot read where a redirection leads.
        return Response(status_code=201, headers={"Location": target})
    return RedirectResponse(target, 303)


def _shows_once(answer: Any) -> bool:
    """Whether the answer contains a secret that is not shown again."""
    return any(isinstance(getattr(answer, each, None), str) for each in _SECRETS)


def _created(request: Request, caller: Caller, sent: SentForm, answer: Any) -> Response:
    core: Core = request.app.state.core
    back = destination(sent.operation, sent.names, answer, "")
    context = {**_what_to_copy(core, answer), "heading": texts.title(sent.operation), "back": back}
    if request.headers.get("accept", "").startswith("text/html"):
        topics = ["fleet"] if context["join_token"] else []
        return page("forms/created_page.html", {**frame(request, caller, "", topics), **context})
    return page("forms/created.html", {**rights(core, caller), **context})


def _what_to_copy(core: Core, answer: Any) -> dict[str, Any]:
    """What to copy, in the order of its use, and for a join token the commands that use it."""
    parts = [(name, getattr(answer, name, None)) for name in ("url", *_SECRETS)]
    joins = answer if isinstance(answer, JoinTokenDocument) else None
    return {
        "parts": [(name, value) for name, value in parts if isinstance(value, str)],
        "commands": _join_commands(core, str(joins.token)) if joins else [],
        "join_token": joins,
    }


def _join_commands(core: Core, token: str) -> list[tuple[str, str]]:
    """What to run on the new machine, each with what it does."""
    return [
        ("Register the machine", f"DRONE_TOKEN={token} drone register --url {core.settings.url}"),
        ("Start it", "drone start"),
        ("Check it, if something is missing", "drone doctor"),
    ]


def _form(request: Request, caller: Caller, shown: Shown) -> Response:
    core: Core = request.app.state.core
    sent, operation = shown.sent, shown.sent.operation
    problem = problem_of(request.scope, shown.error) if shown.error else None
    fields = [*names_shown(sent), *form_fields(operation)]
    typed = {**sent.names, **sent.typed}
    errors = {each.name: _of(shown.error, each, typed) for each in fields}
    context: dict[str, Any] = {
        "operation": operation,
        "heading": texts.title(operation),
        "button": texts.button(operation),
        "question": texts.question(operation, sent.names),
        "names": {} if sent.asks_names else sent.names,
        "asks": ASKS if sent.asks_names else "",
        "fields": [(each, _refill(each, typed), sent.was.get(each.name), errors[each.name]) for each in fields],
        "offers": {source: offered(core, caller, source) for source in {each.source for each in fields if each.source}},
        "command": command_of(operation, sent.names, parsed(sent), _organization(request, caller)),
        "shows_command": shown.shows_command,
        "problem": problem.model_dump() if problem else None,
        "advice": _advice(shown.error),
        "elsewhere": _elsewhere(shown.error, fields),
        "key": _key(sent, shown.error),
        "next": shown.next,
        "adds": operation.status == 201,
    }
    status = problem.status if problem else 200
    if own := _OWN_PAGES.get(operation.name):
        context |= {"lists": own.documents(core, caller), "errors": errors, "typed": sent.typed}
        return page(own.template, {**frame(request, caller, own.at), **context}, status)
    if wants_part(request):
        return page("forms/dialog.html", {**rights(core, caller), **context}, status)
    return page("forms/page.html", {**frame(request, caller, ""), **context}, status)


def _organization(request: Request, caller: Caller) -> str:
    """The organization that the pages show, for a command whose token acts in another one by default."""
    identity = request.state.identity
    return "" if caller.organization == identity.organization else caller.organization


def _key(sent: SentForm, error: Refused | None) -> str:
    """The idempotency key of a form: a new one for a form that was changed after it had been sent."""
    if not sent.operation.idempotent:
        return ""
    return sent.key if sent.key and not isinstance(error, Conflict) else new_id()


def _refill(field: FormField, typed: dict[str, str]) -> str:
    """What the field shows; a secret is never sent back."""
    text = "" if field.shape == "secret" else typed.get(field.name, "")
    # An unpaired surrogate of a request cannot be sent back.
    return text.encode("utf-8", "replace").decode()


def _of(error: Refused | None, field: FormField, typed: Mapping[str, str]) -> str:
    """What is wrong with this field: `labels.gpu` and `setup.0` are of the fields `labels` and `setup`."""
    if isinstance(error, ChangedMeanwhile):
        theirs = [each.theirs for each in error.differences if each.name == field.name]
        return f"Someone else changed this to: {theirs[0] or 'nothing'}" if theirs else ""
    if not isinstance(error, InvalidRequest):
        return error.what if error is not None and _blames(error, field, typed.get(field.name, "")) else ""
    found = [each.what for each in error.fields if _belongs(each.field, field)]
    return "; ".join(dict.fromkeys(found))[:500]


def _blames(error: Refused, field: FormField, text: str) -> bool:
    """Whether the error refuses what was typed into this field, or one line of it."""
    if error.value is None:
        return False
    try:
        value = field.value_of(text)
    except Invalid:
        return False
    return error.value in value if isinstance(value, list) else error.value == value


def _elsewhere(error: Refused | None, fields: list[FormField]) -> list[str]:
    """What is wrong with values that are no field of the form."""
    if not isinstance(error, InvalidRequest):
        return []
    return [f"{each.field}: {each.what}" for each in error.fields if not any(_belongs(each.field, f) for f in fields)]


def _belongs(found: str, field: FormField) -> bool:
    return found == field.name or found.startswith(f"{field.name}.")


def _advice(error: Refused | None) -> tuple[str, str]:
    """What to do next: in words, or as a command. Options of a command mean nothing in a form."""
    said = error.next if error else ""
    if said.startswith(("fleet ", "drone ")):
        # Alternatives follow after blanks.
        return "", said.partition("    ")[0]
    return ("", "") if "--" in said or not said else (said, "")


@dataclass(frozen=True)
class _OwnPage:
    """A hand-written form: it posts to the same address as the derived one, and is shown again if it is refused."""

    template: str
    at: str
    """The name of its link in the sidebar."""
    lists: tuple[str, ...] = ()
    """Nouns whose lists it offers."""

    def documents(self, core: Core, caller: Caller) -> dict[str, Any]:
        """The lists by noun."""
        return {noun: documents_of(core, caller, noun) for noun in self.lists}


_OWN_PAGES: Mapping[str, _OwnPage] = {
    "submit": _OwnPage("orders/new.html", "orders", ("projects", "providers", "drones", "modes"))
}
