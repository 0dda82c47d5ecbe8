"""Fail on words in user-visible texts that the house style avoids: string literals, help, pages and documents.

Words of the style that are unusual in technical English read as translated; the list names the usual one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

USUAL = {
    r"nobody|somebody|someone'?s|whoever|whomever": "no one, a user, the caller",
    r"whatever|whichever": "any, all",
    r"mend(s|ed|ing)?": "fix",
    r"go(es|ing)? on": "continue, resume",
    r"went on|gone on": "continued, resumed",
    r"not to be had|could not be had": "unavailable",
    r"(by|of) itself": "automatically",
    r"anew": "again, new",
    r"in hand": "running, tracked",
    r"asked for by": "requested by",
    r"is(n't| not)? heard": "received, read",
    r"all that is known": "details",
    r"begun ?anew": "restarted",
    r"stood in for": "replaced",
    r"a person": "a user",
}
AVOIDED = re.compile("|".join(f"(?P<p{n}>\\b(?:{pattern})\\b)" for n, pattern in enumerate(USUAL)), re.IGNORECASE)
READ = {".py", ".md", ".html", ".js"}
SKIPPED = ("control_plane/db/migrations/", "control_plane/web/static/vendor/")
"""Migrations, which never change, and scripts of others."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of each string literal; docstrings only where they are the help of a command."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = set(_docstrings(tree)) - (set(_help(tree)) if "cli" in path.parts else set())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden:
            yield node.lineno, node.value


def _docstrings(tree: ast.AST) -> Iterator[int]:
    """Statements that are only a text: docstrings, and the descriptions below fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)


def _help(tree: ast.AST) -> Iterator[int]:
    """Docstrings of public functions, which are the help of commands in the packages of the command lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and isinstance(node.body[0], ast.Expr):
            yield id(node.body[0].value)


def problems(path: Path) -> Iterator[str]:
    """One line for each word to avoid."""
    lines = texts(path) if path.suffix == ".py" else enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    for number, text in lines:
        for found in AVOIDED.finditer(text):
            usual = list(USUAL.values())[int((found.lastgroup or "p0")[1:])]
            yield f"{path}:{number}: {found.group()!r}: use {usual}"


def main(places: list[str]) -> None:
    files = [file for place in map(Path, places) for file in ([place] if place.is_file() else sorted(place.rglob("*")))]
    read = [file for file in files if file.suffix in READ and not str(file).startswith(SKIPPED)]
    if found := [line for file in read for line in problems(file)]:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main(sys.argv[1:])
