"""What `fleet up` was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_PORT = 8420
DEFAULT_FLOWER_PORT = 5555


@dataclass(frozen=True)
class UpOptions:
    """The flags of `fleet up`."""

    data_dir: Path
    home: Path
    host: str | None = None
    public_url: str | None = None
    port: int = DEFAULT_PORT
    drones: int = 1
    flower_port: int = DEFAULT_FLOWER_PORT
    flower: bool = True
    demo: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_ca: Path | None = None
    """Authorities that the certificate comes from, if this machine does not know them."""

    @property
    def scheme(self) -> str:
        return "https" if self.tls_cert else "http"

    @property
    def tls_files(self) -> tuple[Path, Path] | None:
        """The certificate and its key; None: no TLS."""
        return (self.tls_cert, self.tls_key) if self.tls_cert and self.tls_key else None

    @property
    def ca_file(self) -> str:
        return str(self.tls_ca or "")
