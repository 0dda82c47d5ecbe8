"""The settings of the drone's own git: a copy of those of its owner that it needs, no prompts, few protocols.

Of the owner's configuration, only what fetches and pushes need is copied, from the global and system configuration:
nothing is ever taken from a repository.
"""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from drone.workspace.git import git_is_missing
from shared.errors import Precondition
from shared.redaction import shortened

COPIED = ("credential.", "url.", "http.", "user.", "core.sshcommand")
"""Keys that begin with one of these; of `url.` only the rewriting rules."""
_FIXED = """\
# Written by drone: its own git settings, then settings copied from the owner's global and system configuration.
# Rewritten at each start; to change a setting, change the owner's configuration.
[core]
\tfsmonitor = false
\texcludesFile = /dev/null
\tattributesFile = /dev/null
[gc]
\tauto = 0
[maintenance]
\tauto = false
[http]
\tlowSpeedLimit = 1000
\tlowSpeedTime = 60
[fetch]
\trecurseSubmodules = false
[advice]
\tdetachedHead = false
[safe]
\tdirectory = *
"""
_KEPT = frozenset({"GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_NO_VERIFY", "GIT_PROXY_SSL_CAINFO"})
_DROPPED = frozenset({"SSH_ASKPASS", "DISPLAY", "WAYLAND_DISPLAY", "PREFIX"})
_PROTOCOLS = "https:http:ssh"
_SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"


def copy_owner_config(target: Path, environ: Mapping[str, str]) -> int:
    """Write the drone's git configuration to `target`, mode 0600, and return the number of settings copied.

    `environ` says where git finds the owner's configuration.

    Raises Precondition if git is not installed or the owner's configuration cannot be read.
    """
    settings = [pair for scope in ("--system", "--global") for pair in _settings(scope, environ) if _is_wanted(pair[0])]
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(_FIXED.encode() + b"".join(_written(key, value) for key, value in settings))
    draft.replace(target)
    return len(settings)


def _settings(scope: str, environ: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """All settings of a scope in order; the value None is a key without a value, which means true."""
    command = ["git", "config", scope, "--includes", "--null", "--list"]
    environment = {name: value for name, value in environ.items() if name not in {"GIT_DIR", "GIT_WORK_TREE"}}
    environment["LC_ALL"] = "C"  # git's message about a missing file is parsed
    try:
        # In /, so that no repository around the current directory can affect what is included.
        found = subprocess.run(command, cwd="/", env=environment, capture_output=True, timeout=30, check=False)
    except FileNotFoundError as error:
        raise git_is_missing(Precondition) from error
    if found.returncode != 0:
        return _nothing_or_raise(found.stderr.decode(errors="replace"))
    pairs = [entry.partition("\n") for entry in found.stdout.decode(errors="surrogateescape").split("\0") if entry]
    return [(key, value if newline else None) for key, newline, value in pairs]


def _nothing_or_raise(message: str) -> list[tuple[str, str | None]]:
    """No settings if there is no such file, which git reports as an error. Raises Precondition for a faulty file."""
    if "No such file" in message or not message:
        return []
    raise Precondition(
        "your git configuration cannot be read",
        code="E-GIT-CONFIG",
        why=shortened(message.strip(), 300),
        next="git config --global --list",
    )


def _is_wanted(key: str) -> bool:
    if key.startswith("url."):
        return key.endswith((".insteadof", ".pushinsteadof"))
    return key.startswith(COPIED)


def _written(key: str, value: str | None) -> bytes:
    """One setting in git's own file format; the subsection may hold any character, quoted."""
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    header = f'[{section} "{_escaped(subsection)}"]' if subsection else f"[{section}]"
    setting = name if value is None else f'{name} = "{_escaped(value)}"'
    return f"{header}\n\t{setting}\n".encode(errors="surrogateescape")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


def git_environment(config: Path, environ: Mapping[str, str], *, allow_file: bool = False) -> dict[str, str]:
    """Return the environment for `Workspaces`, made from `environ`, the drone's own.

    `config` is the file that `copy_owner_config` wrote; no other configuration is read. `allow_file` allows fetching
    from `file://` and plain paths.
    """
    kept = {name: value for name, value in environ.items() if name not in _DROPPED}
    kept = {name: value for name, value in kept.items() if not name.startswith("GIT_") or name in _KEPT}
    return {
        **kept,
        "LC_ALL": "C",  # git's messages are parsed, see failures.py
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",  # an empty answer: the server then refuses, and there is no prompt
        "SSH_ASKPASS_REQUIRE": "never",
        "GCM_INTERACTIVE": "never",
        "GIT_SSH_COMMAND": _ssh_command(config, kept),
        "GIT_ALLOW_PROTOCOL": f"{_PROTOCOLS}:file" if allow_file else _PROTOCOLS,
        "GIT_OPTIONAL_LOCKS": "0",
    }


def _ssh_command(config: Path, environment: Mapping[str, str]) -> str:
    """The owner's own ssh command, with prompts disabled; a program other than OpenSSH would not know the options."""
    own = _configured(config, environment) or "ssh"
    words = shlex.split(own)
    return f"{own} {_SSH_OPTIONS}" if words and Path(words[0]).name == "ssh" else own


def _configured(config: Path, environment: Mapping[str, str]) -> str:
    if not config.exists():
        return ""
    command = ["git", "config", "--file", str(config), "--get", "core.sshCommand"]
    found = subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=30, check=False)
    return found.stdout.strip()
