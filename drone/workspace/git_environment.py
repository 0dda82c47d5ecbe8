"""The environment in which the drone's own git runs: its own configuration, no prompts, few protocols."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

_KEPT = frozenset({"GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_NO_VERIFY", "GIT_PROXY_SSL_CAINFO"})
_DROPPED = frozenset({"SSH_ASKPASS", "DISPLAY", "WAYLAND_DISPLAY", "PREFIX"})
_PROTOCOLS = "https:http:ssh"
_SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"


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
