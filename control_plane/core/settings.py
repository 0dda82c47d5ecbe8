"""What the control plane is told at its entry: addresses, the database, the broker, the master key."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from shared.errors import Invalid


class FleetSettings(BaseSettings):
    """`FLEET_*` of the environment; what the constructor is given goes before it. Read once, passed down."""

    model_config = SettingsConfigDict(env_prefix="FLEET_", extra="ignore", frozen=True)

    database_url: str = Field(repr=False)
    """`sqlite:////absolute/path.db` or `postgresql://user:password@host/name`."""
    broker_url: str = Field(repr=False)
    """`redis://control:PASSWORD@host:port/0`: the control plane's own user."""
    master_key_file: Path | None = None
    """32 bytes in base64; written on first use where it is not there."""
    master_key: str | None = Field(None, repr=False)
    """The same, given itself; goes before the file."""
    blob_dir: Path
    """Patches, bundles and logs."""
    host: str = "127.0.0.1"
    port: int = Field(8420, ge=0, le=65535)
    public_url: str | None = None
    """The address of the HTTP interface that drones and browsers are given."""
    public_broker_url: str | None = None
    """The address of the broker that drones are given, without a user."""
    flower_url: str | None = None
    allow_file_urls: bool | None = None
    """Whether a project's git URL may be `file://`; None: only while `host` is a loopback address."""

    webhook_private: bool = False
    """Whether webhooks may be sent to addresses inside the network: loopback, private, link-local."""

    @property
    def url(self) -> str:
        """Where the HTTP interface is reached, without a slash at its end."""
        return (self.public_url or f"http://{_bracketed(self.host)}:{self.port}").rstrip("/")

    @property
    def file_urls_allowed(self) -> bool:
        """A `file://` URL names a file of the drone: harmless where both are one machine, a hole where they are not."""
        return is_loopback(self.host) if self.allow_file_urls is None else self.allow_file_urls


def read_settings(**given: Any) -> FleetSettings:
    """The settings from the environment, with `given` before it.

    Raises Invalid that names every variable that is missing or wrong, and never shows a value.
    """
    try:
        return FleetSettings(**given)
    except ValidationError as error:
        wrong = [
            f"FLEET_{str(each['loc'][0]).upper()}: {each['msg'].lower()}" for each in error.errors() if each["loc"]
        ]
        raise Invalid(
            f"the settings are not complete: {'; '.join(wrong)}",
            code="E-SETTINGS",
            next="set these variables, or run everything here with: fleet up",
        ) from None


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
