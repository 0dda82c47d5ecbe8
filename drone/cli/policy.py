"""`drone policy`: what the owner of this machine allows, and where each rule comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.foreign_text import decoded
from shared.terminal.command_line import JsonFlag, print_json, put

if TYPE_CHECKING:
    from pathlib import Path

    from drone.installation.policy_listing import Setting

EXAMPLES = ("drone policy", "drone policy --json")


def command(as_json: JsonFlag = False) -> None:
    """Show the policy in effect, with the line of the policy file that sets each rule."""
    import tomllib

    from drone.installation import policy, settings
    from drone.installation.policy_listing import settings_of

    file = settings.load().policy_file
    found = policy.load(file)
    document = tomllib.loads(decoded(file.read_bytes())) if file.exists() else {}
    rows = list(settings_of(found, document))
    if as_json:
        listed = [{"name": row.name, "value": row.value, "line": row.line} for row in rows]
        print_json({"file": str(file), "exists": file.exists(), "settings": listed})
    else:
        put(_lines(rows, file))


def _lines(rows: list[Setting], file: Path) -> str:
    from drone.installation.policy_listing import source_of

    head = f"policy file: {file}" if file.exists() else f"policy file: {file} (does not exist; everything is a default)"
    wide = max(len(row.name) for row in rows)
    lines = [f"  {row.name:{wide}}  {_shown(row)}  ({source_of(row, file)})" for row in rows]
    return "\n".join([head, *lines]) + "\n"


def _shown(row: Setting) -> str:
    match row.value:
        case None:
            return "only from a control plane on loopback" if row.name == "repositories.file_urls" else "no restriction"
        case bool():
            return "true" if row.value else "false"
        case list():
            return ", ".join(map(str, row.value)) or "none"
        case _:
            return str(row.value)
