"""The interface of every way to a host's API, and its errors."""

from __future__ import annotations

from typing import Any, Protocol

from shared.redaction import shortened

Json = Any
MAX_TEXT = 256 * 1024
"""Bytes of an answer that is read as text: its end."""
SHOWN = 500
"""Characters of a host's answer that are shown to users."""


class HostApi(Protocol):
    """A host's API, reached in one way and with one login."""

    @property
    def via(self) -> str:
        """`gh`, `glab`, `tea`, or `http`."""
        ...

    def call(self, method: str, path: str, body: dict[str, Json] | None = None) -> Json:
        """The answer to a request, `path` relative to the API's root.

        Raises NotLetIn if the login is not accepted, HostRefused if the host refuses or cannot be reached.
        """
        ...

    def text(self, path: str) -> str:
        """The answer to a GET as text, for example of a log; the end of a long one. Raises like `call`."""
        ...


class NotLetIn(Exception):
    """The host does not accept this login; another way may work."""


class HostRefused(Exception):
    """The host refused, for the reason in one sentence."""

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status
        """The HTTP status; 0: there was no answer."""


def refusal_of(host: str, status: int, answer: Json) -> HostRefused:
    """A host's error, in its own words."""
    said = shortened("; ".join(dict.fromkeys(_words(answer))), SHOWN) or "no reason given"
    return HostRefused(f"{host} rejected the request (HTTP {status}): {said}", status)


def _words(answer: Json) -> list[str]:
    """The sentences in an error of GitHub, GitLab or Gitea, each of which has its own format."""
    match answer:
        case str():
            return [" ".join(answer.split())] if answer.strip() else []
        case list():
            return [word for each in answer for word in _words(each)]
        case dict():
            named = [
                answer[key] for key in ("message", "error", "error_description", "errors", "base") if key in answer
            ]
            return [word for each in (named or list(answer.values())) for word in _words(each)]
        case _:
            return []
