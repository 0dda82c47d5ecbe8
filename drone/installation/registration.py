"""Joining and leaving a fleet: a join token becomes a registration in the drone's home.

The order matters. All local checks come before the token is used; nothing is saved until the answer is verified to come
from the control plane that the token names.
"""

from __future__ import annotations

import base64
import platform
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from drone.installation import policy
from drone.installation.client import ControlPlane, server_url
from drone.installation.home import DroneConfig, DroneHome
from drone.installation.workspace_marker import claim_root
from shared.envelope import Binding, CannotOpen, key_id, open_envelope, public_key
from shared.errors import Conflict, Forbidden, Invalid, Precondition, Unauthenticated
from shared.events import ABILITIES
from shared.loopback import is_loopback
from shared.registration import Credentials, JoinTokenString, RegistrationAnswer, RegistrationRequest
from shared.terminal.boundary import version

SANDBOXES = ("auto", "bwrap", "docker", "none")


@dataclass(frozen=True)
class Wishes:
    """The owner's choices; None: the default."""

    url: str
    token: str = field(repr=False)
    name: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    concurrency: int = 1
    workspace: Path | None = None
    sandbox: str = "auto"
    allow_http: bool = False
    ca_file: Path | None = None
    """Certificates of authorities to trust besides the machine's."""
    ephemeral: bool = False
    """It joins a pool, which makes a name for it if it has none, and leaves when it has nothing to do."""


def register(home: DroneHome, wishes: Wishes, environ: Mapping[str, str]) -> DroneConfig:
    """Register this machine's drone and save the registration in `home`.

    The same key (it stays in the home) and name give the same answer, so an interrupted registration can be repeated.

    Raises Invalid, Precondition, Unreachable, Conflict (name taken, the drone runs) or Forbidden (token refused, wrong
    server).
    """
    token = _token(wishes.token)
    url = _checked_url(wishes)
    ca_file = str(wishes.ca_file.expanduser().absolute()) if wishes.ca_file else ""
    sandbox = _sandbox(wishes.sandbox, environ)
    workspace = (wishes.workspace or home.default_workspace).expanduser().absolute()
    with _stopped(home):
        claim_root(workspace)
        key = home.make_private_key()
        request = RegistrationRequest(
            secret=token.secret,
            name=wishes.name or ("" if wishes.ephemeral else _usual_name(home)),
            machine_id=home.machine_id(),
            public_key=_as_text(key),
            labels=wishes.labels,
            concurrency=wishes.concurrency,
            sandbox=sandbox,
            version=version(),
            host=platform.node(),
            abilities=ABILITIES,
            ephemeral=wishes.ephemeral,
        )
        with ControlPlane(url, ca_file=ca_file) as server:
            try:
                answer = server.register(request)
            except Conflict as refused:
                if refused.code != "E-DRONE-KEY-REVOKED":
                    raise
                key = home.replace_private_key()
                answer = server.register(request.model_copy(update={"public_key": _as_text(key)}))
        credentials = open_answer(answer, token=token, key=key)
        config = DroneConfig(
            drone_id=answer.drone_id,
            name=answer.name,
            server_url=url,
            ca_file=ca_file,
            control_plane_public_key=answer.public_key,
            labels=answer.labels,
            concurrency=wishes.concurrency,
            sandbox=wishes.sandbox,
            workspace=str(workspace),
            host=request.host,
            machine_id=request.machine_id,
        )
        home.save(config, credentials)
    return config


def unregister(home: DroneHome) -> DroneConfig:
    """Leave the fleet, there and here; return the former configuration. Workspaces, runs and logs stay.

    Raises Conflict while the drone runs, and Unreachable if there is no answer: the registration is then kept, because
    the control plane would still accept its keys.
    """
    config = home.config()
    with _stopped(home):
        # A drone that was already removed there has nothing to unregister.
        with (
            ControlPlane(config.server_url, api_token=home.credentials().api_token, ca_file=config.ca_file) as server,
            suppress(Unauthenticated),
        ):
            server.unregister()
        home.forget()
    return config


@contextmanager
def _stopped(home: DroneHome) -> Iterator[None]:
    """Keep the drone from starting within the block. Raises Conflict while it runs."""
    if home.config_file.exists() and home.holder() is not None:
        raise Conflict(
            f"the drone {home.config().name} is running, and would continue with revoked keys",
            code="E-DRONE-RUNNING",
            next="stop it first: Ctrl-C in its terminal, or systemctl --user stop dronefleet-drone",
        )
    with home.lock():
        yield


def open_answer(answer: RegistrationAnswer, *, token: JoinTokenString, key: bytes) -> Credentials:
    """The credentials in the answer, once its sender is verified as the control plane that the token names.

    Raises Forbidden for any other sender.
    """
    try:
        sender = base64.b64decode(answer.public_key, validate=True)
    except ValueError:
        sender = b""
    if key_id(sender) != token.fingerprint:
        raise Forbidden(
            "this server did not issue the join token",
            code="E-FINGERPRINT",
            why=f"its key has the fingerprint {key_id(sender)}; the token expects {token.fingerprint}",
            next="fleet token add        on the control plane to join; also check the URL",
        )
    try:
        opened = open_envelope(
            answer.credentials,
            recipients={key_id(public_key(key)): key},
            sender=sender,
            expect=Binding(direction="credentials", drone=answer.drone_id),
        )
    except CannotOpen as error:
        raise Forbidden("the credentials in the answer are invalid", code="E-CREDENTIALS", why=str(error)) from error
    return Credentials.model_validate_json(opened.body)


def _as_text(key: bytes) -> str:
    """The public key of a private key, as it is registered."""
    return base64.b64encode(public_key(key)).decode()


def _token(text: str) -> JoinTokenString:
    token = JoinTokenString.parse(text)
    if token is None:
        raise Invalid(
            "invalid join token",
            code="E-TOKEN-FORM",
            why="expected the form fj_<secret>_<fingerprint>",
            next="fleet token add",
        )
    return token


def _checked_url(wishes: Wishes) -> str:
    url = server_url(wishes.url)
    if url.startswith("http://") and not is_loopback(url) and not wishes.allow_http:
        raise Precondition(
            f"{url} is plain http to another machine",
            code="E-PLAIN-HTTP",
            why="anyone on the network path could read the join token and join in your place",
            next="use https://    or, on a trusted network: drone register --allow-http ...",
        )
    return url


def _sandbox(kind: str, environ: Mapping[str, str]) -> str:
    """The actual kind for the requested one on this machine. Raises Precondition if it is unavailable."""
    if kind not in SANDBOXES:
        raise Invalid(f"unknown sandbox {kind!r}", code="E-SANDBOX", next=f"--sandbox {'|'.join(SANDBOXES)}")
    from drone.sandbox import choose

    image = policy.load(policy.policy_file(environ)).image if kind == "docker" else ""
    return choose(kind, environ, image=image).kind


def _usual_name(home: DroneHome) -> str:
    """The name of the existing registration, else the host name with `-` for the characters that a name cannot have."""
    if home.config_file.exists():
        return home.config().name
    host = socket.gethostname().partition(".")[0].lower()
    return re.sub(r"[^a-z0-9-]+", "-", host).strip("-") or "drone"
