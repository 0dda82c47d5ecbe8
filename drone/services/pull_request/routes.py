"""The ways from this workstation to a repository's host: a logged-in tool, a token that may be sent there, git's own
credentials; in this order, and each only to that host."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from drone.installation.key_addresses import shown
from drone.installation.policy import Policy
from drone.services.pull_request.address import Address
from drone.services.pull_request.api import HostApi
from drone.services.pull_request.commands import Commands, tool_for
from drone.services.pull_request.http_api import HttpApi, asks_nobody
from drone.workspace.git import Git, GitFailed

KINDS = ("github", "gitlab", "gitea")
OWN = {"github": "github.com", "gitlab": "gitlab.com"}
"""Hosts to which a kind's own token may be sent without an entry in the policy."""
KNOWN = {"github.com": "github", "gitlab.com": "gitlab", "codeberg.org": "gitea", "gitea.com": "gitea"}
VARIABLES = {"github": ("GH_TOKEN", "GITHUB_TOKEN"), "gitlab": ("GITLAB_TOKEN",), "gitea": ("GITEA_TOKEN",)}
TOKEN_VARIABLES = frozenset(
    {
        *(name for names in VARIABLES.values() for name in names),
        *("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITLAB_ACCESS_TOKEN", "OAUTH_TOKEN"),
        *("GITEA_SERVER_TOKEN", "FORGEJO_TOKEN"),
    }
)
"""Variables that the hosts' tools use as credentials, some of them on any host."""
GIT_SECONDS = 30.0


@dataclass(frozen=True)
class Access:
    """One way to reach the host."""

    kind: str
    api: HostApi


@dataclass
class Surroundings:
    """What the workstation has, and what its owner allows."""

    address: Address
    environment: Mapping[str, str]
    policy: Policy
    git: Git
    """Asks the owner's credential helpers, and knows the login in the project's own URL."""
    commands: Commands
    missing: list[str] = field(default_factory=list)
    """Why a way was unavailable, one sentence each."""
    secrets: list[str] = field(default_factory=list)
    """The credentials, which must never be shown."""


def surroundings(
    address: Address, environment: Mapping[str, str], policy: Policy, git: Git, check: Callable[[], None]
) -> Surroundings:
    """The current workstation. The tools receive no token that may not be sent to this host."""
    around = Surroundings(address, environment, policy, git, Commands({}, check))
    kept = {
        name: value
        for name, value in environment.items()
        if name not in TOKEN_VARIABLES or any(_may_go(around, kind, name) for kind in KINDS)
    }
    around.commands = Commands(kept, check)
    around.secrets.extend(value for name, value in environment.items() if name in TOKEN_VARIABLES and value)
    return around


def ways_to(around: Surroundings) -> Iterator[Access]:
    """The available ways, best first; each is looked for only if the one before did not work."""
    known = KNOWN.get(around.address.host)
    kinds = (known,) if known else KINDS
    for kind in kinds:
        if api := tool_for(kind, around.address, around.commands):
            yield Access(kind, api)
    for kind in kinds:
        if api := _by_token(around, kind):
            yield Access(kind, api)
    if way := _by_git(around, known):
        yield way


def _by_token(around: Surroundings, kind: str) -> HostApi | None:
    """The API with a token from the environment, if the token may be sent to this host."""
    for name in VARIABLES[kind]:
        if not (token := around.environment.get(name)):
            continue
        if not _may_go(around, kind, name):
            around.missing.append(_not_allowed(around, name))
        elif not around.address.is_private:
            around.missing.append(f"{name} is not sent to {around.address.origin}: the connection is not encrypted")
        else:
            return _interface(around, kind, _with_token(kind, token))
    return None


def _may_go(around: Surroundings, kind: str, name: str) -> bool:
    """Whether a variable may be sent to the repository's host: by the policy, or because it is the host's own."""
    origin = around.address.origin
    own = name in VARIABLES[kind] and kind in OWN and origin == f"https://{OWN[kind]}"
    return own or around.policy.allows_key(name, origin)


def _not_allowed(around: Surroundings, name: str) -> str:
    address = shown(around.address.origin)
    where = f"under [keys] in {around.policy.place}"
    return f'{name} may not be sent to {address} (next: on the drone, {name} = ["{address}"] {where})'


def _by_git(around: Surroundings, known: str | None) -> Access | None:
    """The API with the login that git has for the repository's own address."""
    address = around.address
    login = _login(around)
    if login is None:
        return None
    kind = known or _probed(address)
    if kind is None:
        around.missing.append(f"{address.host} was not recognized as GitHub, GitLab or Gitea")
        return None
    user, password = login
    around.secrets.append(password)
    return Access(kind, _interface(around, kind, _with_login(kind, user, password)))


def _login(around: Surroundings) -> tuple[str, str] | None:
    """User and password that git would use there; None if it has none, or would not need any."""
    scheme, _, netloc = around.address.origin.partition("://")
    asked = f"protocol={scheme}\nhost={netloc}\npath={around.address.path}\n\n"
    try:
        answer = around.git.text("credential", "fill", stdin=asked.encode(), seconds=GIT_SECONDS)
    except GitFailed:
        return None
    found = dict(line.partition("=")[::2] for line in answer.split("\n"))
    same = (found.get("protocol"), found.get("host")) == (scheme, netloc)
    return (found.get("username", ""), found["password"]) if same and found.get("password") else None


def _probed(address: Address) -> str | None:
    """The kind of this host, according to its public answers."""
    status, answer = asks_nobody(address.origin, "api/v1/version")
    if status == 200 and isinstance(answer, dict) and "version" in answer:
        return "gitea"
    status, answer = asks_nobody(address.origin, "api/v4/version")
    if status in {200, 401} and isinstance(answer, dict):
        return "gitlab"
    status, answer = asks_nobody(address.origin, "api/v3/meta")
    return "github" if status in {200, 401} and isinstance(answer, dict) else None


def _interface(around: Surroundings, kind: str, headers: dict[str, str]) -> HttpApi:
    address = around.address
    match kind:
        case "github":
            root = "https://api.github.com" if address.host == "github.com" else f"{address.origin}/api/v3"
            headers = {**headers, "Accept": "application/vnd.github+json"}
        case "gitlab":
            root = f"{address.origin}/api/v4"
        case _:
            root = f"{address.origin}/api/v1"
    access = replace(around.policy.network, kind="public")
    return HttpApi(root, {**headers, "User-Agent": "dronefleet"}, around.commands.check, access=access)


def _with_token(kind: str, token: str) -> dict[str, str]:
    match kind:
        case "github":
            return {"Authorization": f"Bearer {token}"}
        case "gitlab":
            return {"PRIVATE-TOKEN": token}
        case _:
            return {"Authorization": f"token {token}"}


def _with_login(kind: str, user: str, password: str) -> dict[str, str]:
    """The password that git sends is usually a token; GitLab accepts those in separate headers."""
    if kind == "gitlab":
        return {"Authorization": f"Bearer {password}"} if user == "oauth2" else {"PRIVATE-TOKEN": password}
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}
