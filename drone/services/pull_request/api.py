"""What a way to a host's interface must be able to do, and how it says no."""

from __future__ import annotations

from typing import Any, Protocol

Json = Any
SHOWN = 500
"""Characters of a host's answer that people are shown."""


class HostApi(Protocol):
    """A host's interface, reached in one way and with one login."""

    @property
    def via(self) -> str:
        """`gh`, `glab`, `tea`, or `http`."""
        ...

    def call(self, method: str, path: str, body: dict[str, Json] | None = None) -> Json:
        """The answer to a request, `path` relative to the interface's root.

        Raises NotLetIn where the login does not count, HostRefused where the host says no or cannot be reached.
        """
        ...


class NotLetIn(Exception):
    """The host does not know this login; another way may do."""


class HostRefused(Exception):
    """The host said no, in one sentence."""

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status
        """Of HTTP; 0: it did not come to that."""


def refusal_of(host: str, status: int, answer: Json) -> HostRefused:
    """What a host's error says, in its own words."""
    said = "; ".join(dict.fromkeys(_words(answer)))[:SHOWN] or "it gave no reason"
    return HostRefused(f"{host} refused it (HTTP {status}): {said}", status)


def _words(answer: Json) -> list[str]:
    """The sentences in an error of GitHub, GitLab or Gitea, each of which has its own form."""
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
