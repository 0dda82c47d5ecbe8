"""The certificate with which the control plane serves: loaded from its files, and again when they change."""

from __future__ import annotations

import ssl
from datetime import datetime
from pathlib import Path

from shared.errors import Precondition
from shared.terminal import logs

log = logs.get(__name__)


def end_of(certificate: Path) -> datetime:
    """When the certificate in a file expires. Raises OSError or ValueError if it cannot be read."""
    from cryptography.x509 import load_pem_x509_certificate

    return load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc


class ChangedFiles:
    """Detects that files were replaced or written."""

    def __init__(self, *files: Path) -> None:
        self._files = files
        self._seen = self._state()

    def changed(self) -> bool:
        """Whether one of them changed since the last call."""
        before, self._seen = self._seen, self._state()
        return self._seen != before

    def _state(self) -> list[tuple[int, int, int] | None]:
        return [_state_of(file) for file in self._files]


class ServerCertificate:
    """A certificate, its key, and a context that always has the newest ones. Raises Precondition if they are unusable.

    Connections that are open keep the certificate with which they began.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate, key
        self._changes = ChangedFiles(certificate, key)
        self.context = _loaded(*self._files)

    def renew(self) -> None:
        """Load the files again if they changed; the previous certificate stays in use while they cannot be used."""
        if not self._changes.changed():
            return
        try:
            # Tried on another context first: one that fails to load a pair has lost the pair before.
            _loaded(*self._files)
            self.context.load_cert_chain(*self._files)
        except (Precondition, OSError) as error:
            log.warning("the changed certificate cannot be used; serving with the previous one", why=str(error))
        else:
            log.info("the certificate was renewed", file=str(self._files[0]))


def _loaded(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        raise Precondition(
            f"the certificate {certificate} with the key {key} cannot be used",
            code="E-TLS-FILES",
            why=_why(certificate, key, error),
            next=f"openssl x509 -in {certificate} -noout -subject -enddate",
        ) from error
    return context


def _no_password() -> str:
    # Otherwise OpenSSL would ask for it on the terminal.
    raise ValueError("the key is protected by a password; store it without one, readable only by its owner")


def _why(certificate: Path, key: Path, error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        mismatch = error.reason == "KEY_VALUES_MISMATCH"
        return "the key belongs to another certificate" if mismatch else "one of them is not in PEM form"
    missing = [str(file) for file in (certificate, key) if not file.exists()]
    return f"not found: {' and '.join(missing)}" if missing else str(error)


def _state_of(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
