"""Colours of source code in a diff, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from control_plane.core.patches.hunks import Line
from control_plane.web.markup.code import class_of

MAX_CHARACTERS = 6000
"""Of one side of a hunk. The patterns of a lexer can be slow on hostile text, and each colour is an element."""
Spans = Sequence[tuple[int, int, str]]
"""First character, the one after the last, class."""

_LANGUAGES: Mapping[str, str] = {
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cc", "cpp", "cxx", "hpp", "hh"), "cpp"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "javascript"),
    **dict.fromkeys(("ts", "tsx", "mts"), "typescript"),
    **dict.fromkeys(("py", "pyi"), "python"),
    **dict.fromkeys(("sh", "bash", "zsh"), "bash"),
    **dict.fromkeys(("yml", "yaml"), "yaml"),
    **dict.fromkeys(("html", "htm"), "html"),
    **dict.fromkeys(("kt", "kts"), "kotlin"),
    **dict.fromkeys(("ex", "exs"), "elixir"),
    "cs": "csharp",
    "css": "css",
    "dart": "dart",
    "dockerfile": "docker",
    "go": "go",
    "java": "java",
    "json": "json",
    "lua": "lua",
    "makefile": "make",
    "php": "php",
    "rb": "ruby",
    "rs": "rust",
    "scala": "scala",
    "scss": "scss",
    "sql": "sql",
    "swift": "swift",
    "tf": "terraform",
    "toml": "toml",
    "xml": "xml",
}
"""By the end of the name. A list of our own: Pygments would load plugins, and look through hundreds of patterns."""


def language_of(path: str) -> str:
    """The language of a file by its name; empty if it is not known here."""
    name = PurePosixPath(path).name.lower()
    return _LANGUAGES.get(name.rpartition(".")[2], "")


def colours_of(path: str, lines: Sequence[Line]) -> Mapping[int, Spans]:
    """The colours of each line, by its place: hunk by hunk, and each side alone, for texts of many lines."""
    language = language_of(path)
    if not language:
        return {}
    found: dict[int, Spans] = {}
    for hunk in _hunks(lines):
        for other in ("add", "del"):
            side = [each for each in hunk if lines[each].sign in {"same", "del" if other == "add" else "add"}]
            found.update(_colours(language, side, lines))
    return found


def _hunks(lines: Sequence[Line]) -> Iterator[list[int]]:
    hunk: list[int] = []
    for index, line in enumerate(lines):
        if line.sign == "hunk":
            yield hunk
            hunk = []
        elif line.sign != "note":
            hunk.append(index)
    yield hunk


def _colours(language: str, side: Sequence[int], lines: Sequence[Line]) -> Iterator[tuple[int, Spans]]:
    # Pygments would replace these itself, and all places behind them would be wrong.
    texts = [lines[index].text.replace("\r", " ").replace("\ufeff", " ") for index in side]
    if sum(map(len, texts)) > MAX_CHARACTERS:
        return
    tokens = _lexer(language).get_tokens("\n".join(texts))
    spans: list[list[tuple[int, int, str]]] = [[] for _ in texts]
    line, at = 0, 0
    for kind, text in tokens:
        name = class_of(kind)
        for number, part in enumerate(text.split("\n")):
            if number:
                line, at = line + 1, 0
            if name and part.strip() and line < len(spans):
                spans[line].append((at, at + len(part), name))
            at += len(part)
    yield from zip(side, spans, strict=True)


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
