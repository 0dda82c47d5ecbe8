"""What only a control plane needs, the extra `server`: whether it is installed, and how to install it."""

from __future__ import annotations

import json
import re
import shlex
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from shared.errors import Precondition

_SERVER = re.compile(r"""([\w.-]++)[^;]*+;.*\bextra == ["']server["']""")


def require_server(command: str) -> None:
    """Return if a control plane can run here.

    Raises Precondition, with the line that installs what is missing, in the base installation.
    """
    own = distribution("dronefleet")
    missing = [name for name in _server_packages(own) if not _installed(name)]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise Precondition(
            f"`{command}` needs Dronefleet's server part, which is not installed",
            code="E-SERVER-PART",
            why=f"this is the base installation, for drones and for `fleet` as a client; "
            f"not installed: {', '.join(missing[:3])}{more}",
            next=_installation(own),
        )


def _server_packages(own: Distribution) -> list[str]:
    return [found[1] for each in own.requires or () if (found := _SERVER.match(each))]


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _installation(own: Distribution) -> str:
    """The line for the shell that adds the server part, with the program that made this environment."""
    wanted, environment = shlex.quote(f"{_source(own)}[server]"), Path(sys.prefix)
    if (environment / "uv-receipt.toml").exists():
        return f"uv tool install --force {wanted}"
    if (environment / "pipx_metadata.json").exists():
        return f"pipx install --force {wanted}"
    return f"{shlex.quote(sys.executable)} -m pip install {wanted}"


def _source(own: Distribution) -> str:
    """The file or directory that Dronefleet was installed from; its name, if that is unknown."""
    url = json.loads(own.read_text("direct_url.json") or "{}").get("url", "")
    return unquote(urlsplit(url).path) if url.startswith("file://") else "dronefleet"
