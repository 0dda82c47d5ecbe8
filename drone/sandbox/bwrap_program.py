"""Where bubblewrap is: looked up once, and started by its absolute path."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import cache

from drone.sandbox.environment import STANDARD_PATH


def bwrap_program(environ: Mapping[str, str]) -> str | None:
    """The path of bwrap on the owner's PATH; None if there is none.

    The PATH of commands has fewer directories: a bwrap that the owner installed elsewhere would be missing there.
    """
    return _found(environ.get("PATH") or STANDARD_PATH)


@cache
def _found(path: str) -> str | None:
    # Relative entries would find a program in the current directory, which may be a cloned repository.
    absolute = [part for part in path.split(os.pathsep) if os.path.isabs(part)]  # noqa: PTH117
    return shutil.which("bwrap", path=os.pathsep.join(absolute))
