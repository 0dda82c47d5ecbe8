"""The required form of values before they are stored: a refusal names the field, the rule and the value's start."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from shared.errors import Invalid, NotFound, TooLarge

MAX_NAME = 64
MAX_LABELS = 64
MAX_COMMANDS = 50
MAX_COMMAND = 10_000
MAX_SHOWN = 80
"""The maximum of a caller's input that is repeated to them."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_RESERVED = frozenset({"user", "system"})
_LABEL_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9._/:+-]{0,64}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def shown(value: str) -> str:
    """`value` in quotes, cut to 80 characters."""
    return repr(value if len(value) <= MAX_SHOWN else value[: MAX_SHOWN - 1] + "…")


def check_name(what: str, name: str) -> str:
    """The name of a project, provider or drone, unchanged. Raises Invalid (`E-NAME`)."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise Invalid(
            f"invalid {what} name {shown(name)}",
            code="E-NAME",
            why=f"it has {len(name)} characters; {MAX_NAME} are allowed" if len(name) > MAX_NAME else "",
            next="1 to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit",
        ).of(name)
    return name


def check_organization(name: str) -> str:
    """The name of an organization: snake_case, and not a reserved one (S-002). Raises Invalid."""
    return _check_snake_case("organization", name, "my_team")


def check_agent(name: str) -> str:
    """The name of an agent, which is also its tag: same rules as for an organization (S-011). Raises Invalid."""
    return _check_snake_case("agent", name, "code_reviewer")


def _check_snake_case(what: str, name: str, example: str) -> str:
    if len(name) > MAX_NAME or not _SNAKE_CASE.fullmatch(name) or name in _RESERVED:
        raise Invalid(
            f"invalid {what} name {shown(name)}",
            code="E-NAME",
            why="'user' and 'system' are reserved" if name in _RESERVED else "",
            next=f"1 to {MAX_NAME} characters in snake_case, like {example}",
        ).of(name)
    return name


def check_text(what: str, text: str, *, limit: int, empty: bool = False) -> str:
    """A text that both databases can store, unchanged. Raises Invalid, and TooLarge over `limit` characters."""
    if len(text) > limit:
        raise TooLarge(f"{what} has {len(text):,} characters; {limit:,} are allowed", code="E-TOO-LONG").of(text)
    if not empty and not text.strip():
        raise Invalid(f"{what} is empty", code="E-EMPTY").of(text)
    if not is_storable(text):
        raise Invalid(f"{what} contains a NUL character or an unpaired surrogate", code="E-TEXT").of(text)
    return text


def check_commands(what: str, commands: Sequence[str]) -> list[str]:
    """Shell commands, unchanged. Raises Invalid, and TooLarge for one with more than MAX_COMMAND characters."""
    if len(commands) > MAX_COMMANDS:
        raise Invalid(f"{len(commands)} {what} commands given; {MAX_COMMANDS} are allowed", code="E-COMMANDS")
    return [check_text(f"a {what} command", command, limit=MAX_COMMAND) for command in commands]


def check_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels, unchanged. Raises Invalid (`E-LABEL`), which names the first bad one."""
    if len(labels) > MAX_LABELS:
        raise Invalid(f"{len(labels)} labels given; {MAX_LABELS} are allowed", code="E-LABEL")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            raise Invalid(
                f"invalid label {shown(f'{key}={value}')}",
                code="E-LABEL",
                next="key=value, each up to 64 letters, digits and . _ - /; for example gpu=yes",
            ).of(labels)
    return dict(labels)


def check_variable(name: str) -> str:
    """The name of an environment variable, unchanged. Raises Invalid."""
    if not _VARIABLE.fullmatch(name):
        raise Invalid(
            f"invalid environment variable name {shown(name)}",
            code="E-VARIABLE",
            next="letters, digits and '_', for example OPENAI_API_KEY",
        )
    return name


def check_json(what: str, value: Any, *, limit: int) -> None:
    """Raise Invalid if `value` is not JSON that both databases can store, TooLarge over `limit` characters."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"{what} is not JSON", code="E-JSON", why=str(error)[:MAX_SHOWN]) from None
    check_text(what, text.replace("\\u0000", "\0"), limit=limit)


def unknown(what: str, name: str, known: Iterable[str], listing: str) -> NotFound:
    """The error for an unknown name, with similar names and the command that lists all."""
    near = get_close_matches(name[:MAX_NAME], list(known), n=3, cutoff=0.5)
    guess = f"did you mean {' or '.join(near)}? Otherwise: " if near else ""
    advice = f"{guess}{listing}"
    return NotFound(f"{what} {shown(name)} not found", code=f"E-{what.upper()}-404", next=advice).of(name)


def is_storable(text: str) -> bool:
    """Whether both databases can store the text: it has no NUL and no unpaired surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
