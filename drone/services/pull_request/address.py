"""Where a repository is hosted, read from its git URL."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from shared.loopback import is_loopback

_SSH_HOSTS = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
"""Names of hosts for ssh over the https port, used where only that port is open."""


@dataclass(frozen=True)
class Address:
    """A repository on a host."""

    host: str
    """The name alone, without a port."""
    origin: str
    """Where its pages are, `https://host[:port]`."""
    path: str
    """`owner/name`; on GitLab there may be more parts."""

    @property
    def is_private(self) -> bool:
        """Whether requests to it cannot be read in transit."""
        return self.origin.startswith("https://") or is_loopback(self.origin)


def address_of(url: str) -> Address | None:
    """The address in a git URL, without the login; None if the repository is not on a host, as with `file://`."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        return _short_form(url)
    parts = urlsplit(url)
    path = _path(unquote(parts.path))
    if parts.hostname is None or path is None:
        return None
    if scheme in {"https", "http"}:
        return Address(parts.hostname, f"{scheme}://{parts.netloc.rpartition('@')[2]}", path)
    return _by_ssh(parts.hostname, path) if scheme in {"ssh", "git+ssh", "ssh+git"} else None


def _short_form(url: str) -> Address | None:
    """git's `user@host:path`."""
    host, colon, rest = url.partition(":")
    path = _path(rest)
    if not colon or "/" in host or path is None:
        return None
    return _by_ssh(host.rpartition("@")[2], path)


def _by_ssh(host: str, path: str) -> Address:
    named = _SSH_HOSTS.get(host.lower(), host.lower())
    return Address(named, f"https://{named}", path)


def _path(text: str) -> str | None:
    path = text.strip("/").removesuffix(".git").rstrip("/")
    parts = path.split("/")
    return path if len(parts) > 1 and not {"", ".", ".."} & set(parts) else None
