"""Whether an address is where an endpoint has its models; asks for the list of them, which costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import httpx

from shared.loopback import http_options

ANSWER_SECONDS = 10.0
_MOST_BYTES = 1_000_000
_USUAL = "/v1"


@dataclass(frozen=True)
class AnsweredPath:
    """What an endpoint has at an address."""

    exists: bool
    models: tuple[str, ...] = ()
    """Their names, if it lists them."""
    corrected: str = ""
    """The address at which it lists models, if it does not at the given one."""


def find_path(api_base: str, key: str, check: Callable[[], None]) -> AnsweredPath:
    """Ask the endpoint for its models, at this address and then at the usual path below it."""
    base = api_base.rstrip("/")
    found = _models(base, key, check)
    if found is not None:
        return AnsweredPath(exists=True, models=found)
    if not base.endswith(_USUAL) and _models(f"{base}{_USUAL}", key, check) is not None:
        return AnsweredPath(exists=False, corrected=f"{base}{_USUAL}")
    return AnsweredPath(exists=False)


def _models(base: str, key: str, check: Callable[[], None]) -> tuple[str, ...] | None:
    """The models listed below this address; None if there is nothing at this path."""
    check()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with httpx.Client(
            headers=headers, timeout=ANSWER_SECONDS, follow_redirects=False, **http_options(base)
        ) as http:
            answer = http.get(f"{base}/models")
    except (httpx.HTTPError, httpx.InvalidURL):
        # It did answer the call with 404, so this says nothing about the path.
        return ()
    if answer.status_code in {404, 405}:
        return None
    if not answer.is_success or len(answer.content) > _MOST_BYTES:
        return ()
    return _names(answer)


def _names(answer: httpx.Response) -> tuple[str, ...] | None:
    """The names in an answer of OpenAI's format; None for anything else, such as a page."""
    try:
        listed = answer.json()
    except ValueError:
        return None
    entries = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        return None
    return tuple(str(each["id"]) for each in entries if isinstance(each, dict) and "id" in each)
