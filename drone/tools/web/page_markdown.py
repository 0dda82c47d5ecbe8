"""Has a page converted to Markdown by a process of its own, within a time limit."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from drone.sandbox.protocol import Check
from drone.tools.web import converter
from drone.tools.web.watched import watched
from drone.tools.wrong_use import WrongUse

_DO_INSTEAD = "use another page"


def markdown(html: str, url: str, check: Check, seconds: float) -> str:
    """The Markdown of the page at `url`. Raises WrongUse if it cannot be converted, and what `check` raises."""
    deadline = time.monotonic() + seconds

    def watch() -> None:
        check()
        if time.monotonic() > deadline:
            raise WrongUse(f"the page is too complex: it was not converted within {seconds:g} s; {_DO_INSTEAD}")

    process = subprocess.Popen(
        [sys.executable, "-I", str(Path(converter.__file__)), url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    try:
        # Surrogates, of which a text may have some, are no UTF-8.
        text, _ = watched(partial(process.communicate, html.encode(errors="replace")), watch, discard=lambda _: None)
    finally:
        process.kill()
        process.wait()
    if process.returncode == 0:
        return text.decode()
    why = "nested too deeply" if process.returncode == converter.TOO_DEEP else "too complex"
    raise WrongUse(f"the page is {why} to be converted; {_DO_INSTEAD}")
