"""Users: people, and their role in each organization."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from control_plane.contract.declarations.operation import RANKS, About, Command, NoDoor, Operation
from control_plane.contract.declarations.tokens import RevocationDocument
from control_plane.contract.documents.base import Document, Request

USER = About("user", "The user's e-mail address or id.", source="users:email")
EMAIL = About("e-mail", "E-mail address, by which the user is found.")
NAME = About("name", "Name of the person, shown on their orders.")
ROLE = About("role", "Role in the organization: admin, operator or viewer.", choices=tuple(RANKS))
DISABLED = About(
    "disabled", "Whether all tokens and browsers of the user are refused, until enabled.", flag="--disabled/--enabled"
)


class UserRequest(Request):
    email: Annotated[str, EMAIL]
    name: Annotated[str, NAME]
    role: Annotated[str, ROLE]


class UserEdit(Request):
    """Only the given fields change. All but the role are the same in every organization."""

    email: Annotated[str | None, EMAIL] = None
    name: Annotated[str | None, NAME] = None
    role: Annotated[str | None, ROLE] = None
    disabled: Annotated[bool | None, DISABLED] = None


class UserDocument(Document):
    """A person, as a member of the organization."""

    id: Annotated[str, About("id")]
    email: Annotated[str, EMAIL]
    name: Annotated[str, NAME]
    role: Annotated[str, ROLE]
    disabled: Annotated[bool, About("disabled")]
    tokens: Annotated[int, About("tokens")]
    """The number of the user's valid API tokens in this organization."""
    last_used_at: Annotated[datetime | None, About("last used")]
    """When one of these was used; accurate to a minute."""
    created_at: Annotated[datetime, About("added")]
    """When the user was added to this organization."""
    ended: RevocationDocument | None = None
    """What ended with the user's tokens, once the user was removed."""
    warnings: list[str] = Field(default_factory=list)


NAMES = {"user": Annotated[str, Field(max_length=254), USER]}
FOR_PEOPLE = NoDoor("only people decide who gets access")

ADD = Operation(
    name="add_user",
    role="admin",
    route="POST /users",
    status=201,
    errors=(409,),
    request=UserRequest,
    answer=UserDocument,
    summary="Add a user to the organization",
    more="Users of another organization keep the name that they have there.",
    tool=FOR_PEOPLE,
    command=Command(
        "user add",
        "Add a user to the organization.",
        "fleet user add kim@example.org --name 'Kim Lee' --role operator",
        arguments=("email",),
        then="Next: fleet api-token add --user {email} --role {role}",
    ),
)
LIST = Operation(
    name="list_users",
    role="admin",
    route="GET /users",
    answer=list[UserDocument],
    summary="List the users of the organization",
    tool=FOR_PEOPLE,
    command=Command(
        "user ls",
        "List the users of the organization.",
        "fleet user ls",
        columns=("email", "name", "role", "disabled", "tokens", "last_used_at"),
        empty="no users; add one: fleet user add",
    ),
)
SHOW = Operation(
    name="show_user",
    role="admin",
    route="GET /users/{user}",
    names=NAMES,
    errors=(404,),
    answer=UserDocument,
    summary="Show a user",
    tool=FOR_PEOPLE,
    command=Command("user show", "Show a user.", "fleet user show USER"),
)
EDIT = Operation(
    name="edit_user",
    role="admin",
    route="PATCH /users/{user}",
    names=NAMES,
    errors=(404, 409),
    request=UserEdit,
    answer=UserDocument,
    summary="Change the given fields of a user",
    more="Name, address and `disabled` of a member of several organizations require a token for all organizations.",
    tool=FOR_PEOPLE,
    command=Command(
        "user edit",
        "Change a user; a lower role and --disabled take effect at once.",
        "fleet user edit kim@example.org --role viewer",
    ),
)
REMOVE = Operation(
    name="remove_user",
    role="admin",
    route="DELETE /users/{user}",
    names=NAMES,
    errors=(404, 409),
    answer=UserDocument,
    summary="Remove a user from the organization, and revoke their tokens",
    more="Their orders are kept and continue. A user of no other organization is deleted.",
    tool=FOR_PEOPLE,
    command=Command(
        "user rm",
        "Remove a user from the organization; revoke their tokens and what was created with them. Orders continue.",
        "fleet user rm kim@example.org",
        confirm="Remove user {user}, and revoke their API tokens with everything created with them?",
    ),
)
