"""A repository's address: as git gets it, as users see it, and its password kept out of command lines and files."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import scrypt, sha256
from urllib.parse import unquote, urlsplit, urlunsplit

from shared.redaction import Redactor, redact_url

_HELPER = """!f() {
test "$1" = get || return 0
case "$(grep -E "^(protocol|host)=")" in
"$DRONE_GIT_SERVER" | "$DRONE_GIT_TLS_SERVER")
    printf "username=%s\\npassword=%s\\n" "$DRONE_GIT_USER" "$DRONE_GIT_PASSWORD" ;;
esac
}; f"""


@dataclass(frozen=True)
class Remote:
    """One git URL, or path."""

    url: str
    project: str = "SLUG"
    """The project whose repository it is, for messages."""

    @property
    def address(self) -> str:
        """For git's command line, which every user of the machine can read: over http without user and password."""
        parts = urlsplit(self.url) if self._has_login else None
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if parts else self.url

    @property
    def shown(self) -> str:
        return redact_url(self.url)

    @property
    def key(self) -> str:
        """Name of the mirror: the same for every login."""
        return sha256(self.address.encode()).hexdigest()[:32]

    @property
    def login_digest(self) -> str:
        """Tells the logins of this repository apart, and takes long to guess them from."""
        if not self._has_login:
            return "none"
        user, password = self._user_and_password()
        return scrypt(f"{user}:{password}".encode(), salt=self.key.encode(), n=2**12, r=8, p=1, dklen=16).hex()

    @property
    def login(self) -> dict[str, str]:
        """What git needs besides `address`: a credential helper that reads user and password from the environment.

        It gives them to the server of the URL alone, in https also if the URL has http: git follows redirects. A key
        `credential.URL.helper` is no way to say so, because git does not find one for a host with an underscore.

        An empty helper comes first and makes git forget all others, so that the URL's own login is used, and is not
        stored by the owner's helper.
        """
        if not self._has_login:
            return {}
        user, password = self._user_and_password()
        parts = urlsplit(self.address)
        return {
            "DRONE_GIT_USER": user,
            "DRONE_GIT_PASSWORD": password,
            "DRONE_GIT_SERVER": f"protocol={parts.scheme}\nhost={parts.netloc}",
            "DRONE_GIT_TLS_SERVER": f"protocol=https\nhost={parts.netloc}",
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "credential.helper",
            "GIT_CONFIG_VALUE_0": "",
            "GIT_CONFIG_KEY_1": "credential.helper",
            "GIT_CONFIG_VALUE_1": _HELPER,
        }

    def clean(self, text: str) -> str:
        """Remove the password from git's output."""
        return redact_url(Redactor(self._user_and_password()).text(text) if self._has_login else text)

    @property
    def _has_login(self) -> bool:
        return self.url.startswith(("http://", "https://")) and "@" in urlsplit(self.url).netloc

    def _user_and_password(self) -> tuple[str, str]:
        userinfo = urlsplit(self.url).netloc.rpartition("@")[0]
        user, _, password = userinfo.partition(":")
        return unquote(user), unquote(password)
