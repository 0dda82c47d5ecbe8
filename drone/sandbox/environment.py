"""The environment of a command: a short list of names is passed on, everything else stays with the drone."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from drone.processes.tree import MARK

ALLOWED = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Taken from the drone's own environment unchanged."""
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Taken unless they carry a user or a password."""
FIXED = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "PIP_NO_INPUT": "1",
    "PIP_PROGRESS_BAR": "off",
    "DEBIAN_FRONTEND": "noninteractive",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""There is no user at a terminal: no pagers, no editors, no questions. Python leaves no files beside the sources."""
STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_environment(*, home: str, tmp: str, path: str, mark: str, source: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a command, made from `source`, the drone's own."""
    kept = {name: source[name] for name in ALLOWED if name in source}
    kept |= {name: source[name] for name in PROXIES if name in source and "@" not in source[name]}
    return {
        "LANG": "C.UTF-8",
        **kept,
        **FIXED,
        "HOME": home,
        "USER": "drone",
        "LOGNAME": "drone",
        "TMPDIR": tmp,
        "PATH": path,
        MARK: mark,
    }


def own_python() -> str:
    """The interpreter that runs the drone, without its venv: bubblewrap exposes it."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = Path(sys.base_prefix, "bin", name)
    return str(program) if program.exists() else name


def search_path(visible: Sequence[Path] | None, source: Mapping[str, str]) -> str:
    """The search path for programs: the visible part of the drone's own PATH, without the drone's own venv.

    The interpreter that runs the drone comes last, so that there is a Python on a machine without another one.
    `visible` None: everything is visible.
    """
    return _search_path(None if visible is None else tuple(visible), source.get("PATH", STANDARD_PATH))


@lru_cache
def _search_path(visible: tuple[Path, ...] | None, given: str) -> str:
    own = Path(sys.prefix, "bin")
    wanted = [Path(part) for part in given.split(os.pathsep) if part.startswith("/")]
    wanted += [Path(part) for part in STANDARD_PATH.split(":")] + [Path(sys.base_prefix, "bin")]
    seen = [part for part in wanted if part != own and _is_visible(part, visible)]
    return os.pathsep.join(dict.fromkeys(map(str, seen)))


def _is_visible(part: Path, visible: tuple[Path, ...] | None) -> bool:
    return visible is None or any(part.is_relative_to(root) for root in visible)


# --- variables of one command ---------------------------------------------------------------------
#
# They reach the command, but not the programs that build the sandbox around it. bwrap and the keeper start outside,
# with the environment of the line: they would load an LD_PRELOAD that is meant for the command, and it would escape the
# sandbox. On the command line every user could read the values. The variables are therefore passed under meaningless
# names, and a shell inside gives them their own.

_CARRIER = "DRONEFLEET_CARRIED_"


def carried(command: Sequence[str], variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command that unpacks the variables and becomes `command`, and the environment that carries them."""
    wanted = [f"{name}={value}" for name, value in variables.items() if name != MARK]
    carriers = {f"{_CARRIER}{number}": pair for number, pair in enumerate(wanted)}
    if not carriers:
        return list(command), {}
    unpacked = " ".join(f'"${name}"' for name in carriers)
    script = f'export {unpacked}; unset {" ".join(carriers)}; exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *command], carriers
