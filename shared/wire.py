"""The base of all wire models: frozen, and deaf to fields it does not know, so that old and new sides can talk."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Wire(BaseModel):
    """A value that crosses the wire. Fields are only ever added, each with a default."""

    model_config = ConfigDict(frozen=True, extra="ignore")
