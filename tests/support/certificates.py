"""Real certificates for tests: an authority of one's own that issues them for any host and any time."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """The files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Issues certificates; `file` is its own, which clients have to trust."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = directory / f"{name}.pem"
        made = _builder(self._name, self._name, self._key, timedelta(), 30 * DAY)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        key_id = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        made = made.add_extension(key_id, critical=False).add_extension(_may_sign(), critical=True)
        self.file.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))

    @staticmethod
    def self_signed(directory: Path, host: str) -> Pair:
        """A certificate that no authority issued."""
        pair, key = Pair(directory / "self.pem", directory / "self.key"), ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        made = _builder(name, name, key, timedelta(), DAY)
        made = made.add_extension(x509.SubjectAlternativeName([_host(host)]), critical=False)
        _replace(pair.key, _private(key))
        _replace(pair.certificate, _pem(made.sign(key, hashes.SHA256())))
        return pair

    def issue(self, name: str, *hosts: str, begins: timedelta = timedelta(), ends: timedelta = DAY) -> Pair:
        """Write `name.pem` and `name.key` for `hosts`; replaces them. `begins` and `ends` count from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        made = _builder(subject, self._name, key, begins, ends)
        made = made.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = made.add_extension(issuer, critical=False)
        pair = Pair(self._directory / f"{name}.pem", self._directory / f"{name}.key")
        # The key first: a reader that notices the certificate finds both.
        _replace(pair.key, _private(key))
        _replace(pair.certificate, _pem(made.sign(self._key, hashes.SHA256())))
        return pair


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begins: timedelta, ends: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key.public_key())
    made = made.serial_number(x509.random_serial_number())
    # An hour ago unless said otherwise: a certificate that began just now fails on a clock that is a second behind.
    return made.not_valid_before(now + (begins or -timedelta(hours=1))).not_valid_after(now + ends)


def _may_sign() -> x509.KeyUsage:
    names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    others = dict.fromkeys((*names, "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(key_cert_sign=True, crl_sign=True, **others)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def _replace(file: Path, content: bytes) -> None:
    draft = file.with_name(f".{file.name}")
    draft.write_bytes(content)
    draft.chmod(0o600)
    draft.replace(file)
