"""The effective policy as rows: each setting, its value, and the line of the file that sets it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drone.installation.policy import Policy
from drone.sandbox.resources.limit_values import readable

DEFAULT = "default"


@dataclass(frozen=True)
class Setting:
    """One setting in effect. `line` is None for a default."""

    name: str
    value: object
    line: int | None


def settings_of(policy: Policy, document: dict[str, object]) -> Iterator[Setting]:
    """All settings of the policy; `document` is its file as TOML, which has the values as they were written."""
    for name, default in _defaults(policy).items():
        table, _, key = name.partition(".")
        written = document.get(table)
        is_set = isinstance(written, dict) and key in written
        value = written[key] if isinstance(written, dict) and is_set else default
        yield Setting(name, value, policy.lines.get(name) if is_set else None)
    for variable, addresses in sorted(policy.keys.items()):
        yield Setting(f"keys.{variable}", list(addresses), policy.lines.get(f"keys.{variable}"))


def source_of(setting: Setting, file: Path | None) -> str:
    """Where the setting comes from, for people."""
    return DEFAULT if setting.line is None else f"{file}, line {setting.line}"


def _defaults(policy: Policy) -> dict[str, object]:
    """Null means that nothing is limited."""
    return {
        "repositories.allow": None,
        "repositories.extensions": False,
        "repositories.mcp_servers": False,
        "repositories.file_urls": None,
        "repositories.pull_requests": True,
        "orders.organizations": None,
        "orders.modes": None,
        "orders.tools": None,
        "commands.refuse": [],
        "sandbox.allow": None,
        "sandbox.image": None,
        "network.access": policy.network.kind,
        "network.hosts": [],
        "limits.memory": _size(policy.limits.memory),
        "limits.processes": policy.limits.processes,
        "limits.cpus": policy.limits.cpus,
        "limits.file_size": _size(policy.limits.file_size),
        "limits.disk": _size(policy.limits.disk),
        "when.hours": None,
        "when.on_mains": False,
        "when.idle_minutes": 0,
        "when.free_cpus": 0,
        "when.free_memory": 0,
        "when.free_disk": 0,
        "spend.usd_per_day": None,
        "spend.unpriced": [],
        "keep.run_days": policy.keep.run_days,
        "keep.workspace_days": policy.keep.workspace_days,
        "keep.mirror_days": policy.keep.mirror_days,
        "keep.workspace_space": None,
        "keep.mirror_space": None,
        "keep.model_library_minutes": policy.keep.model_library_minutes,
    }


def _size(found: int | None) -> str | None:
    return None if found is None else readable(found)
