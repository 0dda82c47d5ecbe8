"""OpenID Connect: the address at which a person logs in, and the verified identity that comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import OAuth2Client
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from control_plane.core.settings import FleetSettings
from control_plane.services.openid_identity import CALLBACK, Attempt, ProviderIdentity
from shared.clock import Clock
from shared.errors import Precondition, Unauthenticated, Unreachable
from shared.loopback import is_loopback

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
"""Signatures with a key pair: with a shared secret, everyone who knows it could sign, and `none` is no signature."""
LEEWAY_S = 60
"""Accepted difference between the clocks of provider and control plane."""
_TIMEOUT_S = 10
_MOST_BYTES = 1_000_000


class OpenIdProvider:
    """The identity provider of the settings. Each log-in reads its metadata anew, so that its keys may rotate."""

    def __init__(self, settings: FleetSettings, clock: Clock) -> None:
        if not settings.oidc_issuer or not settings.oidc_client_id:
            raise Precondition(
                "log-in with an identity provider is not configured",
                code="E-OPENID-OFF",
                next="set FLEET_OIDC_ISSUER and FLEET_OIDC_CLIENT_ID, and start the control plane again",
            )
        self._issuer = settings.oidc_issuer
        self._client_id = settings.oidc_client_id
        self._secret = settings.oidc_client_secret
        self._callback = f"{settings.url}{CALLBACK}"
        self._clock = clock

    def login_url(self, attempt: Attempt) -> str:
        """Where the browser goes. Raises Unreachable, and Unauthenticated for a provider with another issuer."""
        with self._client() as client:
            endpoint = _endpoint(self._metadata(client), "authorization_endpoint")
            url, _ = client.create_authorization_url(
                endpoint, state=attempt.state, nonce=attempt.nonce, code_verifier=attempt.verifier
            )
            return str(url)

    def identity(self, attempt: Attempt, code: str) -> ProviderIdentity:
        """The identity behind a code. Raises Unauthenticated if anything about it is wrong, Unreachable."""
        with self._client() as client:
            metadata = self._metadata(client)
            try:
                answer = client.fetch_token(
                    _endpoint(metadata, "token_endpoint"), code=code, code_verifier=attempt.verifier
                )
            except AuthlibBaseError as error:
                raise _refused(f"it did not accept the code: {error.error}") from error
            except (httpx2.HTTPError, ValueError, RecursionError) as error:
                # ValueError: not a JSON object, such as the page of a proxy.
                raise _unreachable(self._issuer, error) from error
            keys = self._get(client, _endpoint(metadata, "jwks_uri"))
        return self._verified(str(answer.get("id_token", "")), keys, attempt.nonce)

    def _verified(self, id_token: str, keys: Mapping[str, Any], nonce: str) -> ProviderIdentity:
        registry = jwt.JWTClaimsRegistry(
            now=int(self._clock.now().timestamp()),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self._issuer},
            aud={"essential": True, "value": self._client_id},
            nonce={"essential": True, "value": nonce},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
        )
        try:
            claims = jwt.decode(
                id_token, KeySet.import_key_set({"keys": list(keys["keys"])}), algorithms=ALGORITHMS
            ).claims
            registry.validate(claims)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise _refused(f"its ID token is not valid: {error}") from error
        audience = claims["aud"]
        if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != self._client_id:
            raise _refused("its ID token was issued to another application")
        return self._identity(claims)

    def _identity(self, claims: Mapping[str, Any]) -> ProviderIdentity:
        email = claims.get("email")
        if not isinstance(email, str) or claims.get("email_verified") is not True:
            raise Unauthenticated(
                "the identity provider did not confirm an e-mail address of yours",
                code="E-OPENID-EMAIL",
                why="the ID token needs the claims email and email_verified",
                next="confirm your address there, or ask its admin to release these claims to this application",
            )
        return ProviderIdentity(self._issuer, str(claims["sub"]), email.strip().lower())

    def _metadata(self, client: OAuth2Client) -> Mapping[str, Any]:
        metadata = self._get(client, f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if metadata.get("issuer") != self._issuer:
            raise Unauthenticated(
                "the identity provider names another issuer than the settings",
                code="E-OPENID-ISSUER",
                why=f"expected {self._issuer}, found {str(metadata.get('issuer'))[:200]!r}",
                next="ask the fleet administrator to compare FLEET_OIDC_ISSUER with the provider's metadata",
            )
        return metadata

    def _get(self, client: OAuth2Client, url: str) -> Mapping[str, Any]:
        try:
            answer = client.request("GET", url, withhold_token=True).raise_for_status()
            found = answer.json() if len(answer.content) <= _MOST_BYTES else None
        except (httpx2.HTTPError, ValueError, RecursionError) as error:
            raise _unreachable(self._issuer, error) from error
        if not isinstance(found, dict):
            raise _unreachable(self._issuer, ValueError("its answer is no JSON object"))
        return found

    def _client(self) -> OAuth2Client:
        return OAuth2Client(
            self._client_id,
            self._secret,
            scope="openid email profile",
            redirect_uri=self._callback,
            code_challenge_method="S256",
            token_endpoint_auth_method="client_secret_basic" if self._secret else "none",
            timeout=_TIMEOUT_S,
            follow_redirects=False,
        )


def _endpoint(metadata: Mapping[str, Any], name: str) -> str:
    found = metadata.get(name)
    if not isinstance(found, str):
        raise _refused(f"its metadata lacks {name}")
    if not found.startswith("https://") and not is_loopback(found):
        raise _refused(f"its {name} does not begin with https://")
    return found


def _refused(why: str) -> Unauthenticated:
    return Unauthenticated(
        "the identity provider's answer was not accepted",
        code="E-OPENID-ANSWER",
        why=why,
        next="log in again; if it happens again, the clocks of both servers or the client's settings may be wrong",
    )


def _unreachable(issuer: str, error: Exception) -> Unreachable:
    return Unreachable(
        f"the identity provider {issuer} is unavailable",
        code="E-OPENID-DOWN",
        why=str(error)[:200],
        next="try again later, or log in with an API token",
    )
