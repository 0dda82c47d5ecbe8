"""A push service with its browsers: a stand-in for those of Google, Mozilla and Apple, which tests cannot reach.

It checks the signature as a push service does, and decrypts as a browser does (RFC 8291), by code of its own.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.receivers import Receiver, Sent


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


@dataclass
class SubscribedBrowser:
    """The browser's side of one subscription."""

    endpoint: str
    private_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def request(self) -> dict[str, str]:
        """What it tells the server."""
        public = encoded(point(self.private_key.public_key()))
        return {"endpoint": self.endpoint, "p256dh": public, "auth": encoded(self.auth)}

    def opened(self, body: bytes) -> Any:
        """The content of a message: one record of aes128gcm."""
        salt, length = body[:16], body[20]
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        other = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self.private_key.exchange(ec.ECDH(), other)
        info = b"WebPush: info\0" + point(self.private_key.public_key()) + sender
        secret = _derived(shared, self.auth, info, 32)
        key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
        return json.loads(AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0").removesuffix(b"\2"))


@dataclass
class PushServiceStandIn:
    """The service; `receiver.answers` are the statuses that it sends."""

    receiver: Receiver

    def subscribe(self, name: str = "a") -> SubscribedBrowser:
        return SubscribedBrowser(f"http://127.0.0.1:{self.receiver.port}/push/{name}")

    def claims(self, sent: Sent, public_key: str) -> dict[str, Any]:
        """The claims of a message that was signed with this key."""
        scheme, _, rest = sent.headers["authorization"].partition(" ")
        parts = dict(part.strip().split("=", 1) for part in rest.split(","))
        assert (scheme, parts["k"].rstrip("=")) == ("vapid", public_key)
        header, claims, signature = parts["t"].split(".")
        raw = decoded(signature)
        der = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(public_key))
        key.verify(der, f"{header}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
        found: dict[str, Any] = json.loads(decoded(claims))
        return found


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


@pytest.fixture
def push_service() -> Iterator[PushServiceStandIn]:
    """A push service that accepts every message."""
    receiver = Receiver([201])
    yield PushServiceStandIn(receiver)
    receiver.close()
