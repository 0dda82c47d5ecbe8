"""The configuration file of `fleet` (S-127): which server, which token, and the options of `fleet up`.

Flags take precedence over the environment, and the environment over this file.
"""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from shared.errors import Invalid, Precondition
from shared.foreign_text import decoded
from shared.terminal.directories import config_home

VERSION = 1
_TOP: Mapping[str, type] = {"version": int, "url": str, "token": str, "org": str, "ca_file": str}
_UP: Mapping[str, type] = {
    "data_dir": str,
    "host": str,
    "public_url": str,
    "tls_cert": str,
    "tls_key": str,
    "tls_ca": str,
    "port": int,
    "drones": int,
    "flower_port": int,
    "flower": bool,
    "demo": bool,
}
_LARGEST = {"port": 65_535, "flower_port": 65_535, "drones": 64}
_TYPES = {int: "a number", str: "a quoted string", bool: "true or false"}
HELP = """\
  The file $XDG_CONFIG_HOME/dronefleet/fleet.toml (default ~/.config/dronefleet/fleet.toml) is optional.
  Flags take precedence over the environment, and the environment over the file. With a token in it, the
  file must be readable only by its owner (chmod 600).

  version = 1                              # format of the file
  url = "https://fleet.example.org"        # FLEET_URL
  token = "..."                            # FLEET_API_TOKEN
  org = "default"                          # FLEET_ORG
  ca_file = "/etc/ssl/our-authority.pem"   # FLEET_CA_FILE

  [up]                                     # options of `fleet up`
  data_dir = "/srv/fleet"
  host = "192.0.2.7"
  public_url = "https://fleet.example.org"
  tls_cert = "/etc/ssl/fleet.pem"
  tls_key = "/etc/ssl/fleet.key"
  port = 8420
  drones = 1
  flower = true
  flower_port = 5555
  demo = false
"""


def path() -> Path:
    """Where the file is looked for."""
    return config_home() / "dronefleet" / "fleet.toml"


def settings() -> Mapping[str, Any]:
    """The settings in the file, without the options of `fleet up`; empty if there is no file.

    Raises Invalid if the file cannot be used, Precondition if other users can read the token in it.
    """
    return {name: value for name, value in _read(path()).items() if name != "up"}


def up_settings() -> Mapping[str, Any]:
    """The options of `fleet up` in the file. Raises the same."""
    return dict(_read(path()).get("up", {}))


def _read(file: Path) -> Mapping[str, Any]:
    try:
        document = tomllib.loads(decoded(file.read_bytes()))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _wrong(file, error.strerror or "cannot be read") from error
    except ValueError as error:
        raise _wrong(file, f"invalid TOML: {error}") from error
    _check_version(file, document)
    up = document.get("up", {})
    if not isinstance(up, dict):
        raise _wrong(file, "`up` must be a section: [up]")
    _check(file, "", {name: value for name, value in document.items() if name != "up"}, _TOP)
    _check(file, "up.", up, _UP)
    if "token" in document and "url" not in document:
        raise _wrong(file, "`token` requires `url`: a token is sent only to its own server")
    if "token" in document and (mode := stat.S_IMODE(file.stat().st_mode)) & 0o077:
        raise Precondition(
            f"other users can read the token in {file}",
            code="E-CONFIG-MODE",
            why=f"the file has mode {mode:03o}",
            next=f"chmod 600 {file}",
        )
    return document


def _check_version(file: Path, document: Mapping[str, Any]) -> None:
    version = document.get("version", VERSION)
    if isinstance(version, int) and version > VERSION:
        raise _wrong(file, f"version {version} is newer than this `fleet` supports (up to {VERSION})")


def _check(file: Path, section: str, values: Mapping[str, Any], known: Mapping[str, type]) -> None:
    for name, value in values.items():
        if name not in known:
            near = get_close_matches(name, list(known), 1)
            hint = f"; did you mean {section}{near[0]}?" if near else f"; expected one of {', '.join(known)}"
            raise _wrong(file, f"unknown setting {section}{name}{hint}")
        # bool is a kind of int in Python, but not in the file.
        if type(value) is not known[name]:
            raise _wrong(file, f"{section}{name} must be {_TYPES[known[name]]}")
        if isinstance(value, int) and not 0 <= value <= _LARGEST.get(name, value):
            raise _wrong(file, f"{section}{name} must be 0 to {_LARGEST[name]}")


def _wrong(file: Path, why: str) -> Invalid:
    return Invalid(f"the configuration file {file} cannot be used", code="E-CONFIG", why=why, next="fleet help config")
