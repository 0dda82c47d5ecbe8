"""Configurations of mini-swe-agent: merged as it merges them, and mapped to the options of a batch (M-020 to M-025)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.errors import Invalid
from shared.terminal.text_file import text_of

_APPROVE = {"yolo": "yolo", "confirm": "all"}
FIELDS: Mapping[str, str] = {
    "agent.step_limit": "max_iterations",
    "agent.cost_limit": "cost_limit",
    "agent.wall_time_limit_seconds": "max_run_seconds",
    "agent.mode": "approve",
    "agent.instance_template": "template",
    "model.model_name": "provider",
    "run.task": "prompt",
}
"""Keys with an equivalent. Limits of 0 mean no limit on both sides."""
WITHOUT: Mapping[str, str] = {
    "agent.system_template": "the agent's instructions are those of --mode and of the project's own files",
    "agent.max_consecutive_format_errors": "a run ends after 3 answers in a row that cannot be acted on",
    "agent.whitelist_actions": "these are regular expressions; a column `allow` takes shell patterns",
    "agent.confirm_exit": "an order ends when the model stops; answer it in its session",
    "agent.output_path": "`fleet trajectory ORDER` writes trajectories in the same format",
    "agent.agent_class": "the drone has one agent; --mode selects its tools",
    "agent": "the drone's agent has no such setting",
    "model.model_kwargs": "parameters belong to the provider: fleet provider edit NAME --help",
    "model.model_class": "the provider's `protocol` selects tool calls or text",
    "model.cost_tracking": "set an unknown price: fleet price set MODEL --help",
    "model.litellm_model_registry": "set an unknown price: fleet price set MODEL --help",
    "model.set_cache_control": "prompts are cached where the model supports it",
    "model": "the drone's model client has no such setting",
    "environment.timeout": "each command of the model may ask for its own timeout (default 120 s)",
    "environment.env": "set variables in the project's setup commands",
    "environment.cwd": "commands run in the order's workspace",
    "environment": "commands run in the sandbox that the drone's owner chose",
    "run.env_startup_command": "use the project's setup commands: fleet project edit SLUG --setup COMMAND",
    "run": "there is no such setting",
}
"""Keys without an equivalent and what to use instead; the longest prefix counts."""
VARIABLES: Mapping[str, str] = {
    "MSWEA_COST_TRACKING": "set an unknown price: fleet price set MODEL --help",
    "LITELLM_MODEL_REGISTRY_PATH": "set an unknown price: fleet price set MODEL --help",
    "MSWEA_GLOBAL_CALL_LIMIT": "limit each order with --max-iterations",
    "MSWEA_GLOBAL_COST_LIMIT": "limit all orders of a project: fleet budget set project NAME USD --per total",
    "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "the drone retries a model that is unavailable",
    "MSWEA_CONFIG_DIR": "name the file with its path",
    "MSWEA_MINI_CONFIG_PATH": "name the file with -c",
}
"""Variables of the environment that have no effect here, and what to use instead."""


@dataclass(frozen=True)
class MiniConfig:
    """What a configuration says in our terms."""

    defaults: dict[str, Any] = field(default_factory=dict)
    """Fields of rows."""
    template: str | None = None
    warnings: list[str] = field(default_factory=list)
    """One line for each key without an equivalent."""


def read_config(specs: Sequence[str], environ: Mapping[str, str]) -> MiniConfig:
    """The configurations, merged from left to right. Raises NotFound and Invalid for one that cannot be read."""
    merged: dict[str, Any] = {}
    for spec in specs:
        merged = merge(merged, _parsed(spec))
    defaults, warnings = {}, []
    for key, value in _leaves(merged):
        name = FIELDS.get(key)
        if name is None:
            warnings.append(f"{key} has no effect: {_instead(key)}")
        elif name == "approve":
            defaults[name] = _approval(value)
        elif value is not None:
            defaults[name] = value
    if model := environ.get("MSWEA_MODEL_NAME"):
        defaults.setdefault("provider", model)
    warnings += [f"{name} has no effect: {why}" for name, why in VARIABLES.items() if environ.get(name)]
    template = defaults.pop("template", None)
    return MiniConfig(defaults, None if template is None else str(template), warnings)


def merge(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Both, with the right one's values where both have one; mappings are merged in turn."""
    merged = dict(left)
    for key, value in right.items():
        before = merged.get(key)
        merged[key] = merge(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return merged


def _parsed(spec: str) -> Mapping[str, Any]:
    if "=" in spec and not Path(spec).exists():
        return _dotted(spec)
    import yaml  # type: ignore[import-untyped]

    try:
        content = yaml.safe_load(text_of(spec))
    except yaml.YAMLError as error:
        raise _unusable(spec, "it is neither YAML nor JSON", str(error).replace("\n", " ")[:200]) from None
    if not isinstance(content, Mapping):
        raise _unusable(spec, "it is no mapping")
    return content


def _dotted(spec: str) -> Mapping[str, Any]:
    """`agent.step_limit=50`: the value is JSON, else a text."""
    path, _, text = spec.partition("=")
    keys = path.split(".")
    if not all(key.strip() for key in keys):
        raise _unusable(spec, "a part of its key is empty")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    for key in reversed(keys):
        value = {key.strip(): value}
    return dict(value)


def _leaves(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each value with its dotted key; a mapping that has no equivalent of its own is one value."""
    for key, value in config.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and (not prefix or name not in WITHOUT):
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value


def _instead(key: str) -> str:
    parts = key.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((WITHOUT[each] for each in prefixes if each in WITHOUT), "mini-swe-agent has no such key either")


def _approval(mode: Any) -> str:
    if mode not in _APPROVE:
        raise _unusable(f"agent.mode={mode}", "a drone has no user to type commands; it must be yolo or confirm")
    return _APPROVE[str(mode)]


def _unusable(spec: str, what: str, why: str = "") -> Invalid:
    return Invalid(
        f"configuration {spec[:80]!r} cannot be used: {what}",
        code="E-BATCH-CONFIG",
        why=why,
        next="-c FILE, or -c agent.step_limit=50",
    )
