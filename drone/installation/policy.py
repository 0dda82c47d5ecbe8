"""The owner's policy for this drone, which no control plane can override.

It is the file `policy.toml` in `$XDG_CONFIG_HOME/dronefleet/` (or the file that DRONE_POLICY names):

    [repositories]
    extensions = false        # load extensions that a repository brings
    mcp_servers = false       # start MCP servers that a repository names
    file_urls = false         # fetch from this machine's own disk; absent: only from a control plane on loopback
    pull_requests = true      # open pull requests with your logins, where a project asks for it

    [keys]                    # which variables may serve as a key or token, and the addresses they may be sent to
    OPENAI_API_KEY = ["api.openai.com"]           # https at port 443; another port: "api.openai.com:8443"
    LOCAL_KEY = ["http://127.0.0.1:8000"]         # http only where it is written; "*": every address

    [network]                 # what commands in bubblewrap can reach
    access = "public"         # HTTP and HTTPS on the public web; none; hosts: only those listed; host: everything
    hosts = ["git.example.org", "*.example.net", "192.0.2.7:3000"]    # allowed in any case

    [limits]                  # on the machine's resources, for all commands of one run together; "none" lifts one
    memory = "12 GiB"         # absent: three quarters of the machine's
    processes = 2048
    cpus = 4                  # cores' worth of processor time; absent: no limit
    file_size = "4 GiB"       # of a single file; absent: no limit
    disk = "30 GiB"           # of the workspace with home and /tmp; absent: each command half of the free disk

Without a file, only pull requests are allowed, and fetching from `file://` for a control plane on loopback. A file that
cannot be understood stops the drone: a guess could allow something that its owner forbade.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from drone.installation import key_addresses
from drone.installation.git_urls import is_local, is_remote, leads_into
from drone.installation.key_addresses import is_key_address
from drone.installation.resource_limits import read_limits
from drone.sandbox.network.access import KINDS as ACCESS_KINDS
from drone.sandbox.network.access import NetworkAccess
from drone.sandbox.resources import ResourceLimits
from shared.errors import Forbidden, Precondition
from shared.loopback import is_loopback
from shared.terminal.directories import config_home

_SETTINGS = ("extensions", "mcp_servers", "file_urls", "pull_requests")


@dataclass(frozen=True)
class Policy:
    """What the owner allows."""

    extensions: bool = False
    mcp_servers: bool = False
    file_urls: bool | None = None
    """None: only where the control plane is on loopback."""
    pull_requests: bool = True
    """Whether the owner's logins at code hosts may open them, as the owner's git credentials may push."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Variables that may serve as a key or token, each with the addresses that it may be sent to."""
    network: NetworkAccess = field(default_factory=NetworkAccess)
    """What the commands of a run can reach."""
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    """What they may use of the machine."""
    file: Path | None = field(default=None, compare=False)
    """The file it was read from, or would be; None: no file applies."""

    @property
    def place(self) -> str:
        """The file, as messages name it."""
        return str(self.file or "policy.toml")

    def check_git_url(self, url: str, server_url: str | None, own: Sequence[Path] = ()) -> None:
        """Allow a repository URL, or raise Forbidden. `server_url`: the control plane's, None for `drone run`.

        `own`: the drone's directories, with keys, and with the work of other projects and organizations. No policy
        opens them.
        """
        if is_remote(url):
            return
        if not is_local(url):
            raise Forbidden(
                "this kind of repository URL is not allowed on drones",
                code="E-POLICY-URL",
                why="git would run a helper program for it",
                next="use https://, ssh:// or git@host:path",
            )
        loopback = server_url is None or is_loopback(server_url)
        if not (loopback if self.file_urls is None else self.file_urls):
            raise Forbidden(
                "this drone's policy does not allow repositories on its own disk",
                code="E-POLICY-FILE",
                why="file:// is allowed only with a control plane on loopback, or by the policy file",
                next=f"on the drone: file_urls = true under [repositories] in {self.place}",
            )
        if leads_into(url, own):
            raise Forbidden(
                "the repository URL leads into the drone's own directories",
                code="E-POLICY-OWN",
                why="they hold the drone's keys and the work of other projects",
                next="use the address of the repository itself",
            )

    def check_key(self, variable: str, api_base: str | None) -> None:
        """Allow a variable as the key for the endpoint at `api_base`, or raise Forbidden.

        Without `api_base` (LiteLLM knows the provider's own address) the addresses must be given as `"*"`.
        """
        if self.allows_key(variable, api_base):
            return
        address = key_addresses.shown(api_base)
        raise Forbidden(
            f"this drone's policy does not allow sending {variable} to "
            f"{'the provider' if address == key_addresses.ANY else address}",
            code="E-POLICY-KEY",
            why="the policy file must list the variables that may be used as keys, with scheme, host and port",
            next=f'on the drone: {variable} = ["{address}"] under [keys] in {self.place}',
        )

    def allows_key(self, variable: str, url: str | None) -> bool:
        """Whether the variable may be sent to this URL."""
        return key_addresses.may_go(url, self.keys.get(variable, ()))


def policy_file(environ: Mapping[str, str]) -> Path:
    """The path of the policy file."""
    named = environ.get("DRONE_POLICY")
    return Path(named) if named else config_home() / "dronefleet" / "policy.toml"


def load(file: Path) -> Policy:
    """The policy in `file`, the default if there is none. Raises Precondition if it cannot be understood."""
    try:
        document = tomllib.loads(file.read_text())
    except FileNotFoundError:
        return Policy(file=file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _damaged(file, str(error)) from error
    return _parse(document, file)


def _parse(document: Mapping[str, Any], path: Path) -> Policy:
    unknown = set(document) - {"repositories", "keys", "network", "limits"}
    repositories, keys = document.get("repositories", {}), document.get("keys", {})
    if unknown or not isinstance(repositories, dict) or not isinstance(keys, dict):
        raise _damaged(
            path,
            "only [repositories], [keys], [network] and [limits] are allowed, not "
            + (", ".join(sorted(unknown)) or "values"),
        )
    for name, value in repositories.items():
        if name not in _SETTINGS or not isinstance(value, bool):
            raise _damaged(
                path, f"repositories.{name} is invalid: expected one of {', '.join(_SETTINGS)} with true or false"
            )
    for name, hosts in keys.items():
        if not isinstance(hosts, list) or not all(isinstance(host, str) and is_key_address(host) for host in hosts):
            raise _damaged(path, f'keys.{name} must be a list of addresses, such as "api.example.org" (https)')
    network = _network(document["network"], path) if "network" in document else NetworkAccess()
    limits = read_limits(document.get("limits", {}), partial(_damaged, path))
    checked = {name: tuple(hosts) for name, hosts in keys.items()}
    return Policy(**repositories, keys=checked, network=network, limits=limits, file=path)


def _network(table: object, path: Path) -> NetworkAccess:
    if not isinstance(table, dict) or set(table) - {"access", "hosts"}:
        raise _damaged(path, "[network] may contain only access and hosts")
    access, hosts = table.get("access", "public"), table.get("hosts", [])
    if access not in ACCESS_KINDS:
        raise _damaged(path, f"network.access is invalid: expected one of {', '.join(ACCESS_KINDS)}")
    if not isinstance(hosts, list) or not all(isinstance(host, str) and host for host in hosts):
        raise _damaged(path, "network.hosts must be a list of host names")
    if hosts and access in {"none", "host"}:
        raise _damaged(path, f'network.hosts has no effect with access = "{access}": use access = "hosts" or "public"')
    return NetworkAccess(access, tuple(hosts), chosen=True)


def _damaged(path: Path, why: str) -> Precondition:
    return Precondition(f"the policy file {path} cannot be loaded", code="E-POLICY", why=why, next=f"edit {path}")
