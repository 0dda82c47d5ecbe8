"""Static files under addresses that contain a hash of all of them, so that browsers keep them for ever."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC = Path(__file__).parent / "static"
PREFIX = "/static/"
FOREVER = "public, max-age=31536000, immutable"


@cache
def version() -> str:
    """A hash of all static files: one for all, so that modules can import each other by relative path."""
    digest = hashlib.sha256()
    for path in sorted(each for each in STATIC.rglob("*") if each.is_file()):
        digest.update(path.relative_to(STATIC).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def asset(path: str) -> str:
    """The address of a static file in this version of the application."""
    return f"{PREFIX}{version()}/{path}"


class VersionedFiles(StaticFiles):
    """Serves `/static/<version>/<path>`, and `/static/<path>` for addresses that must not change.

    A page of the previous version that is still open gets the present file; only this version's addresses are cached.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        first, _, rest = path.partition("/")
        is_versioned = len(first) == len(version()) and not set(first) - set("0123456789abcdef")
        response = await super().get_response(rest if is_versioned and rest else path, scope)
        if first == version():
            response.headers["Cache-Control"] = FOREVER
        return response
