"""Operations whose form is a page of its own, in place of the derived one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from control_plane.core import Caller, Core
from control_plane.validation.invalid_requests import InvalidRequest
from control_plane.web.forms.options import documents_of
from shared.errors import Refused


@dataclass(frozen=True)
class OwnPage:
    """A hand-written form; it posts to the same address as the derived one, and is shown again if it is refused."""

    template: str
    at: str
    """The name of its link in the sidebar."""
    lists: tuple[str, ...] = ()
    """Nouns whose lists it offers."""

    def context(self, core: Core, caller: Caller, error: Refused | None) -> dict[str, Any]:
        """The lists by noun, and the problem of each field by its name."""
        return {
            "lists": {noun: documents_of(core, caller, noun) for noun in self.lists},
            "errors": errors_of(error),
        }


OWN_PAGES: Mapping[str, OwnPage] = {
    "submit": OwnPage("orders/new.html", "orders", ("projects", "providers", "drones", "modes"))
}


def errors_of(error: Refused | None) -> dict[str, str]:
    """What is wrong with each field."""
    return {each.field: each.what for each in error.fields} if isinstance(error, InvalidRequest) else {}
