"""The owner's policy for this drone, which no control plane can override.

It is the file `policy.toml` in `$XDG_CONFIG_HOME/dronefleet/` (or the file that DRONE_POLICY names):

    version = 1               # of this format; absent: 1

    [repositories]
    allow = ["github.com/acme/*", "https://git.example.org/*"]    # absent: all
    extensions = false        # load extensions that a repository brings
    mcp_servers = false       # start MCP servers that a repository names
    file_urls = false         # fetch from this machine's own disk; absent: only from a control plane on loopback
    pull_requests = true      # open pull requests with your logins, where a project asks for it

    [keys]                    # which variables may serve as a key or token, and the addresses they may be sent to
    OPENAI_API_KEY = ["api.openai.com"]           # https at port 443; another port: "api.openai.com:8443"
    LOCAL_KEY = ["http://127.0.0.1:8000"]         # http only where it is written; "*": every address

    [network]                 # what commands in a sandbox, and web_fetch, can reach
    access = "public"         # HTTP and HTTPS on the public web; none; hosts: only those listed; host: everything
    hosts = ["git.example.org", "*.example.net", "192.0.2.7:3000"]    # allowed in any case

    [limits]                  # on the machine's resources, for all commands of one run together; "none" lifts one
    memory = "12 GiB"         # absent: three quarters of the machine's
    processes = 2048
    cpus = 4                  # cores' worth of processor time; absent: no limit
    file_size = "4 GiB"       # of a single file; absent: no limit
    disk = "30 GiB"           # of the workspace with home and /tmp; absent: each command half of the free disk

    [orders]                  # absent: all
    organizations = ["acme", "team-*"]
    modes = ["plan", "test"]
    tools = ["file_*", "grep", "glob", "editor", "shell"]

    [commands]
    refuse = ["git push*", "sudo *"]              # for the whole shell line, or a part of it between ; | & and the like

    [sandbox]
    allow = ["bwrap"]         # absent: every kind
    image = "my-sandbox"      # of containers; absent: dronefleet-sandbox

    [when]                    # new orders wait while one of these does not hold; absent: always
    hours = ["Mon-Fri 20:00-07:00", "Sat,Sun"]    # local time
    on_mains = true           # not on battery power
    idle_minutes = 10         # without input of a user who is logged in
    free_cpus = 2             # processors without load
    free_memory = "4 GiB"
    free_disk = "20 GB"

    [spend]                   # on models, by all runs together; new orders wait once it is used up
    usd_per_day = 20          # from midnight to midnight, local time; absent: no limit
    unpriced = ["http://127.0.0.1:8000"]          # models of unknown price that may be used all the same

    [keep]                    # what was not used for so many days is removed; "none": it is kept for ever
    run_days = 7              # the directories of runs, at least 7
    workspace_days = 30
    mirror_days = 30          # of repositories
    workspace_space = "50 GB" # above it, the least recently used go first; absent: no limit
    mirror_space = "20 GB"
    model_library_minutes = 15    # in memory, for a quick start of the next run

Without a file, only pull requests are allowed, and fetching from `file://` for a control plane on loopback. A file that
cannot be understood stops the drone: a guess could allow something that its owner forbade.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from drone.installation import key_addresses
from drone.installation.git_urls import is_local, is_remote, leads_into
from drone.installation.key_addresses import is_key_address
from drone.installation.owner_rules import KeepRules, OrderRules, SpendRules, When
from drone.installation.owner_rules.tables import EXPECTED, VERSION, Tables, lines_of, setting_of
from drone.sandbox.network.access import KINDS as ACCESS_KINDS
from drone.sandbox.network.access import NetworkAccess
from drone.sandbox.resources import ResourceLimits
from shared.errors import Forbidden, Precondition
from shared.foreign_text import decoded
from shared.loopback import is_loopback
from shared.terminal.directories import config_home
from shared.work_order import WorkOrder

_TABLES = frozenset({"repositories", "keys", "network", *Tables.model_fields})
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
    orders: OrderRules = field(default_factory=OrderRules)
    """Which orders it takes, and what their models may use."""
    when: When = field(default_factory=When)
    """When it takes orders."""
    spend: SpendRules = field(default_factory=SpendRules)
    """How much its models may cost."""
    keep: KeepRules = field(default_factory=KeepRules)
    """How long it keeps workspaces, mirrors, the directories of runs, and the loaded model library."""
    sandboxes: tuple[str, ...] | None = None
    """The kinds of sandbox that commands may have; None: every kind."""
    image: str = ""
    """The image of containers; empty: the default one."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The line of each setting in the file, by `table.setting`."""
    file: Path | None = field(default=None, compare=False)
    """The file it was read from, or would be; None: no file applies."""

    @property
    def place(self) -> str:
        """The file, as messages name it."""
        return str(self.file or "policy.toml")

    def where(self, setting: str) -> str:
        """File and line of a setting, as messages name them."""
        return f"{self.place}, line {line}" if (line := self.lines.get(setting)) else self.place

    def check_order(self, order: WorkOrder) -> None:
        """Allow an order, or raise Forbidden with the line that refuses it."""
        rules, mode = self.orders, order.session.mode
        if not rules.allows_organization(order.organization):
            raise self._refusal("orders.organizations", f"orders of the organization {order.organization}")
        if order.purpose == "work" and not rules.allows_mode(mode):
            raise self._refusal("orders.modes", f"orders in mode {mode}")
        if order.purpose in {"check_provider", "title"}:
            return  # they touch no repository
        self.check_repository(order.project.git_url)
        for command in (*order.project.setup, *order.project.verify):
            self.check_command(command)

    def check_repository(self, url: str) -> None:
        """Allow the repository, or raise Forbidden with the line that refuses it."""
        if not self.orders.allows_repository(url):
            raise self._refusal("repositories.allow", "this repository")

    def check_command(self, line: str) -> None:
        """Allow a shell line, or raise Forbidden with the line that refuses it."""
        if pattern := self.orders.refuses_command(line):
            raise self._refusal("commands.refuse", f"commands like `{pattern}`")

    def check_sandbox(self, kind: str) -> None:
        """Allow the sandbox that the commands would have, or raise Precondition."""
        if self.sandboxes is not None and kind not in self.sandboxes:
            raise Precondition(
                f"this drone's policy does not allow the sandbox {kind}",
                code="E-POLICY-SANDBOX",
                why=f"{self.where('sandbox.allow')} allows {', '.join(self.sandboxes)}",
                next="drone doctor        shows what keeps the other kinds from working",
            )

    def check_spent(self, today_usd: float) -> None:
        """Allow a further call to a model, or raise Forbidden with the line that refuses it."""
        if self.spend.is_used_up(today_usd):
            raise Forbidden(
                f"this drone has spent {self.spent(today_usd)} today, as much as its policy allows",
                code="E-POLICY-SPEND",
                why=f"spend.usd_per_day in {self.where('spend.usd_per_day')}",
                next="submit it for another drone, or wait until midnight there",
            )

    def spent(self, today_usd: float) -> str:
        """What was spent of the day's limit, for people."""
        return f"{today_usd:.2f} of {self.spend.usd_per_day or 0:.2f} USD"

    def check_unpriced(self, model: str, api_base: str | None) -> None:
        """Allow a model whose price is unknown, or raise Forbidden: its calls could not be counted."""
        if not self.spend.allows_unpriced(api_base):
            raise Forbidden(
                f"the price of {model} is unknown, and this drone's policy limits what it spends",
                code="E-POLICY-SPEND",
                why=f"spend.usd_per_day in {self.where('spend.usd_per_day')}",
                next=f'on the drone: unpriced = ["{key_addresses.shown(api_base)}"] under [spend] in {self.place}',
            )

    def _refusal(self, setting: str, what: str) -> Forbidden:
        return Forbidden(
            f"this drone's policy does not allow {what}",
            code="E-POLICY-ORDER",
            why=f"{setting} in {self.where(setting)}",
            next="submit it for another drone, or ask this drone's owner",
        )

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
    """The policy in `file`, the default if there is none.

    Raises Precondition, with file and line, if it cannot be understood.
    """
    try:
        text = decoded(file.read_bytes())
        document = tomllib.loads(text)
    except FileNotFoundError:
        return Policy(file=file)
    except (OSError, ValueError) as error:
        raise _damaged(file, str(error)) from error
    return _parse(document, file, lines_of(text))


def _parse(document: Mapping[str, Any], path: Path, lines: Mapping[str, int]) -> Policy:
    version = document.get("version", VERSION)
    if version != VERSION or isinstance(version, bool):
        why = f"version {version} is not supported: this drone reads version {VERSION}"
        raise _damaged(path, why, lines.get("version"))
    unknown = sorted(set(document) - _TABLES - {"version"})
    repositories, keys = document.get("repositories", {}), document.get("keys", {})
    if unknown or not isinstance(repositories, dict) or not isinstance(keys, dict):
        allowed = ", ".join(f"[{name}]" for name in sorted(_TABLES))
        line = lines.get(unknown[0]) if unknown else None
        raise _damaged(path, f"only {allowed} are allowed, not {', '.join(unknown) or 'values'}", line)
    repositories = dict(repositories)
    allow = _patterns(repositories.pop("allow", None), path, lines)
    for name, value in repositories.items():
        if name not in _SETTINGS or not isinstance(value, bool):
            expected = f"expected one of {', '.join(_SETTINGS)} with true or false, or allow"
            raise _damaged(path, f"repositories.{name} is invalid: {expected}", lines.get(f"repositories.{name}"))
    _check_keys(keys, path, lines)
    network = _network(document["network"], path, lines) if "network" in document else NetworkAccess()
    tables = _tables(document, path, lines)
    policy = Policy(
        **repositories,
        keys={name: tuple(hosts) for name, hosts in keys.items()},
        network=network,
        limits=tables.limits.limits(),
        orders=tables.rules(allow),
        when=tables.when.when(),
        spend=tables.spend.rules(),
        keep=tables.keep.rules(),
        sandboxes=tables.sandbox.allow,
        image=tables.sandbox.image,
        lines=lines,
        file=path,
    )
    if policy.sandboxes == ("none",) and network.chosen and network.kind != "host":
        why = f'sandbox.allow = ["none"] contradicts network.access = "{network.kind}", which needs a sandbox'
        raise _damaged(path, why, lines.get("sandbox.allow"))
    return policy


def _check_keys(keys: Mapping[str, Any], path: Path, lines: Mapping[str, int]) -> None:
    for name, hosts in keys.items():
        if not isinstance(hosts, list) or not all(isinstance(host, str) and is_key_address(host) for host in hosts):
            why = f'keys.{name} must be a list of addresses, such as "api.example.org" (https)'
            raise _damaged(path, why, lines.get(f"keys.{name}"))


def _patterns(given: object, path: Path, lines: Mapping[str, int]) -> tuple[str, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not given or not all(isinstance(each, str) and each for each in given):
        why = 'repositories.allow must be a list of patterns, such as "github.com/acme/*"'
        raise _damaged(path, why, lines.get("repositories.allow"))
    return tuple(given)


def _tables(document: Mapping[str, Any], path: Path, lines: Mapping[str, int]) -> Tables:
    try:
        return Tables.model_validate({name: document[name] for name in Tables.model_fields if name in document})
    except ValidationError as error:
        setting = setting_of(error.errors()[0]["loc"])
        if setting in EXPECTED:
            why = f"{setting} is invalid: expected {EXPECTED[setting]}"
        else:
            table = setting.partition(".")[0]
            names = (name.partition(".")[2] for name in EXPECTED if name.startswith(f"{table}."))
            why = f"[{table}] may contain only {', '.join(names)}"
        raise _damaged(path, why, lines.get(setting)) from error


def _network(table: object, path: Path, lines: Mapping[str, int]) -> NetworkAccess:
    if not isinstance(table, dict) or set(table) - {"access", "hosts"}:
        raise _damaged(path, "[network] may contain only access and hosts", lines.get("network"))
    access, hosts = table.get("access", "public"), table.get("hosts", [])
    if access not in ACCESS_KINDS:
        why = f"network.access is invalid: expected one of {', '.join(ACCESS_KINDS)}"
        raise _damaged(path, why, lines.get("network.access"))
    if not isinstance(hosts, list) or not all(isinstance(host, str) and host for host in hosts):
        raise _damaged(path, "network.hosts must be a list of host names", lines.get("network.hosts"))
    if hosts and access in {"none", "host"}:
        why = f'network.hosts has no effect with access = "{access}": use access = "hosts" or "public"'
        raise _damaged(path, why, lines.get("network.hosts"))
    return NetworkAccess(access, tuple(hosts), chosen=True)


def _damaged(path: Path, why: str, line: int | None = None) -> Precondition:
    place = f"{path}, line {line}," if line else f"{path}"
    return Precondition(f"the policy file {place} cannot be loaded", code="E-POLICY", why=why, next=f"edit {path}")
