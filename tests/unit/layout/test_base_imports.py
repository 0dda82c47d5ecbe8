"""What drones and `fleet` as a client import is installed without the extra `server`."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.support.documents import INSTALLED, PACKAGES, modules
from tests.support.licenses import required

BASE = (
    "drone",
    "shared",
    *(f"control_plane/{part}" for part in ("cli", "client", "declarations", "documents", "validation")),
)
BESIDE = {"keeper"}
"""A file of ours that lies beside the importing one in a container."""


LIGHT = {"control_plane.core"}
"""The names in it alone: its modules need more."""
WORKS_IN_BASE = {"data_directory", "install_skill", "logs", "mcp", "own_settings", "settings_of"}
"""What imports parts of the control plane that need no server part, or is called after a check."""


def server_parts(tree: ast.AST) -> set[str]:
    """The modules of the control plane outside of BASE that this part of a module imports, not for types alone."""
    parts = {each.partition("/")[2] for each in BASE}
    for_types = {id(node) for each in ast.walk(tree) if _is_for_types(each) for node in ast.walk(each)}
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and id(node) not in for_types)
    named = {node.module or "" for node in found} - LIGHT
    return {each.split(".")[1] for each in named if each.startswith("control_plane.")} - parts


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imported(tree: ast.Module) -> set[str]:
    """The top names of all modules that a module imports, also inside functions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def is_in_base(path: Path) -> bool:
    return str(path.relative_to(INSTALLED)).startswith(tuple(f"{each}/" for each in BASE))


def test_the_base_installation_has_every_package_that_its_modules_import() -> None:
    base = set(required(""))
    owners = {
        module: {name.lower().replace("_", "-") for name in names} for module, names in packages_distributions().items()
    }
    known = {*sys.stdlib_module_names, *PACKAGES, *BESIDE}
    wanted = {
        (str(path.relative_to(INSTALLED)), name)
        for path, tree in modules().items()
        if is_in_base(path)
        for name in imported(tree) - known
    }

    assert len(wanted) > 100
    assert {each for each in wanted if not owners[each[1]] & base} == set()


def test_what_the_base_installation_imports_needs_no_server_part_and_commands_that_do_say_so() -> None:
    base = {path: tree.body for path, tree in modules().items() if is_in_base(path)}
    commands = [each for body in base.values() for each in body if isinstance(each, ast.FunctionDef)]
    top = {str(path): [node for node in body if not isinstance(node, ast.FunctionDef)] for path, body in base.items()}
    assert {path: parts for path, body in top.items() if (parts := server_parts(ast.Module(body, [])))} == {}

    need = {each.name for each in commands if server_parts(each) and not each.name.startswith("_")}
    checked = {each.name for each in commands if "require_server(" in ast.unparse(each)}
    assert {"up", "serve", "create", "restore", "upgrade"} <= need
    assert need - checked - WORKS_IN_BASE == set()
