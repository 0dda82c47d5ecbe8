"""One configured MCP server, in the format common to MCP clients."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from shared.loopback import is_loopback

LONGEST_START = 300.0
"""Seconds; some servers are installed by their first start."""
LONGEST_CALL = 3600.0
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""Reference to a variable of the drone in the owner's file."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _filled(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


def _text(value: str) -> str:
    if "\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
        raise ValueError("contains an invalid character")
    return value


def _variable_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("is not a valid variable name")
    return value


def _header(value: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise ValueError("is not a valid header: only printable ASCII is allowed")
    return value


Text = Annotated[str, AfterValidator(_text)]
Header = Annotated[str, AfterValidator(_header)]


class ServerConfig(BaseModel):
    """A server: a `command` that is started in the sandbox, or the `url` of a streamable HTTP endpoint."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", hide_input_in_errors=True)

    name: Annotated[str, Field(max_length=100), AfterValidator(_filled), AfterValidator(_text)]
    owners: bool
    """From the file of the drone's owner, not from a repository."""
    type: Literal["stdio", "http", "streamable-http", "streamable_http"] | None = None
    """Written by other programs; redundant, because `command` or `url` determines it."""
    command: Annotated[Text, AfterValidator(_filled)] | None = None
    args: list[Text] = Field(default_factory=list, repr=False)
    env: dict[Annotated[str, AfterValidator(_variable_name)], Text] = Field(default_factory=dict, repr=False)
    url: Text | None = Field(None, repr=False)
    headers: dict[Header, Header] = Field(default_factory=dict, repr=False)
    timeout: float = Field(120.0, gt=0, le=LONGEST_CALL)
    """Seconds for one call."""
    start_timeout: float = Field(10.0, gt=0, le=LONGEST_START)
    """Seconds within which it must have listed its tools."""
    tools: list[str] | None = None
    """Only these, by the server's names; None: all."""
    disabled: bool = False
    allow_http: bool = False
    """Allows plain http to another machine. Only the owner can set it."""

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("it must have either a `command` or a `url`")
        if self.url is not None:
            _check_url(self.url, plain=self.allow_http)
        return self


def parsed(name: str, entry: Any, *, owners: bool, environ: Mapping[str, str]) -> ServerConfig:
    """Parse one entry; the owner's may refer to variables of the drone. Raises ValueError with the reason."""
    if not isinstance(entry, dict):
        raise ValueError("it is not an object with a `command` or a `url`")
    if owners:
        entry = _expanded(entry, environ)
    elif entry.get("allow_http"):
        raise ValueError("only the file of the drone's owner can set `allow_http`")
    try:
        return ServerConfig.model_validate({**entry, "name": name, "owners": owners})
    except ValidationError as error:
        raise ValueError("; ".join(_sentences(error))) from error


def unknown_keys(entry: object) -> list[str]:
    """Return unknown keys of an entry; they are ignored."""
    known = set(ServerConfig.model_fields) - {"name", "owners"}
    return sorted(str(key)[:40] for key in entry if key not in known) if isinstance(entry, dict) else []


def _expanded(value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return VARIABLE.sub(lambda match: _value(match[1], environ), value)
    if isinstance(value, list):
        return [_expanded(item, environ) for item in value]
    if isinstance(value, dict):
        return {key: _expanded(item, environ) for key, item in value.items()}
    return value


def _value(name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise ValueError(f"environment variable {name} is not set on the drone")
    return environ[name]


def _check_url(url: str, *, plain: bool) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("its `url` is invalid") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise ValueError("its `url` is not an http or https address")
    if parts.scheme == "http" and not is_loopback(url) and not plain:
        raise ValueError("its `url` is plain http to another machine; use https, or the owner's `allow_http`")


def _sentences(error: ValidationError) -> Iterator[str]:
    """Describe each problem and its location, but never the values: they may be secrets."""
    for problem in error.errors(include_url=False, include_context=False, include_input=False)[:5]:
        place = ".".join(str(part)[:40] for part in problem["loc"])
        text = problem["msg"].removeprefix("Value error, ")
        yield f"`{place}`: {text}" if place else text
