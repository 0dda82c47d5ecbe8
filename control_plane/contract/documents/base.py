"""The base of all documents and requests."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from shared.names import MODE_NAME

ModeName = Annotated[str, Field(pattern=MODE_NAME)]
"""A mode's name: a built-in one, or one that was defined."""


class Document(BaseModel):
    """A read-only answer."""

    model_config = ConfigDict(frozen=True)


class Request(BaseModel):
    """The data of a request; unknown fields are rejected, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


USER = "user"
"""The name of people in tags, as assignee and as author."""


SYSTEM = "system"
MAX_TITLE = 500
MAX_COMMENT = 100_000
"""Maximum characters. Longer text belongs in a file of the repository (S-072)."""


MAX_INSTRUCTIONS = 100_000
