"""The messages exchanged when a drone joins: a join token, a request, and credentials sealed to the drone's key."""

from __future__ import annotations

from pydantic import Field

from shared.wire import Wire

JOIN_PREFIX = "fj"


class JoinTokenString(Wire):
    """`fj_<secret>_<fingerprint>`: proves the right to join and names the control plane's key."""

    secret: str
    fingerprint: str

    def __str__(self) -> str:
        return f"{JOIN_PREFIX}_{self.secret}_{self.fingerprint}"

    @classmethod
    def parse(cls, text: str) -> JoinTokenString | None:
        """Return the token in `text`, or None if it does not have the format of a token."""
        parts = text.strip().split("_")
        if len(parts) != 3 or parts[0] != JOIN_PREFIX or not all(parts):
            return None
        return cls(secret=parts[1], fingerprint=parts[2])


class RegistrationRequest(Wire):
    """A drone's registration. `secret` is the join token's; registering one key again returns the same drone."""

    secret: str = Field(repr=False)
    name: str
    machine_id: str
    public_key: str
    """Base64 of 32 bytes, X25519."""
    labels: dict[str, str] = Field(default_factory=dict)
    concurrency: int = Field(1, ge=1, le=64)
    sandbox: str = "none"
    version: str = ""
    host: str = ""
    ephemeral: bool = False
    """It leaves when it has nothing to do: only with the token of a pool, and then without a name one is made."""
    abilities: tuple[str, ...] = ()
    """As in `Beat`: the drone's first connection to the broker comes before its first beat."""


class RegistrationAnswer(Wire):
    """The answer in clear: which drone this is, and credentials that only its key can open."""

    drone_id: str
    name: str
    public_key: str
    """The control plane's key, base64; its fingerprint must match the join token's."""
    credentials: str
    """An envelope with `Credentials`."""
    labels: dict[str, str] = Field(default_factory=dict)
    """As recorded: labels fixed by the token take precedence."""


class Credentials(Wire):
    """Secrets of one drone: its Redis user and its token for the HTTP interface."""

    broker_url: str = Field(repr=False)
    """redis://<user>:<password>@host:port/0"""
    api_token: str = Field(repr=False)


class NewKey(Wire):
    """What a drone whose keys are replaced says under its old key: which key it will use from now on."""

    drone_id: str
    public_key: str
    """Base64 of 32 bytes, X25519."""


class NewKeyRequest(Wire):
    """The request of a drone for credentials to its new key."""

    envelope: str
    """`NewKey`, sealed with the drone's old key."""


class NewKeyAnswer(Wire):
    """The answer: credentials that only the new key can open, valid beside the old ones until the drone uses it."""

    credentials: str
    """An envelope with `Credentials`."""
