"""The base of all wire models: frozen, and ignoring unknown fields, so that old and new sides can communicate."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Wire(BaseModel):
    """A value that crosses the wire. Fields are only ever added, each with a default.

    Numbers are finite: JSON has no NaN, and one in a database would be in every sum.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)
