"""What a log-in with OpenID Connect begins with and returns, without the libraries that carry it out."""

from __future__ import annotations

from dataclasses import dataclass

CALLBACK = "/login/openid/callback"


@dataclass(frozen=True)
class Attempt:
    """The secrets of one log-in, which stay in the browser, sealed, until the provider sends it back."""

    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True)
class ProviderIdentity:
    """Who the provider says has logged in."""

    issuer: str
    subject: str
    email: str
