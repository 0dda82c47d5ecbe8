"""Operations whose form is a page of its own, in place of the derived one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from control_plane.core import Caller, Core
from control_plane.web.forms.options import documents_of


@dataclass(frozen=True)
class OwnPage:
    """A hand-written form; it posts to the same address as the derived one, and is shown again if it is refused."""

    template: str
    at: str
    """The name of its link in the sidebar."""
    lists: tuple[str, ...] = ()
    """Nouns whose lists it offers."""

    def documents(self, core: Core, caller: Caller) -> dict[str, Any]:
        """The lists by noun."""
        return {noun: documents_of(core, caller, noun) for noun in self.lists}


OWN_PAGES: Mapping[str, OwnPage] = {
    "submit": OwnPage("orders/new.html", "orders", ("projects", "providers", "drones", "modes"))
}
