"""The program's texts: none is missing, the check of their words, and the commands that they name.

Every `fleet` or `drone` command that is printed anywhere must exist, with the options that it names, and be called
what the help calls it.
"""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from control_plane.cli.main import app as fleet
from drone.cli.main import app as drone
from shared.errors import Invalid
from tests.support.command_tree import built, walk
from tests.support.documents import ROOT, modules, parse
from tests.support.texts_page import error_texts, explained, page, reasons

CHECK = ROOT / ".ci" / "plain_words.py"
_COMMANDS = {"fleet": set(built(fleet).commands), "drone": set(built(drone).commands)}
_MENTION = re.compile(r"(?<![\w/.-])(?<!fleet )(fleet|drone) ([a-z][a-z-]*)(?![\w:])")
_BEGINS_A_COMMAND = re.compile(r"(^|[`:;,(|]\s*|\bor |\bthen |\bwith |\s{2,})$")
"""What stands before a command, and not before `fleet` or `drone` as a noun."""
_END = re.compile(
    r"[;,`()\]\n|…]|\s{2,}|\.$|\. |: |&&| [#<] | (?:or:?|and|to|then|where|on|with|creates|starts|shows|needs|without) "
)
_NOUNS = {"is", "that", "has", "must", "cannot", "does", "accepts", "takes", "opens", "with", "and", "of"} | {
    "gone",
    "removed",
    "reports",
}
"""What follows the nouns at the beginning of a sentence."""
_QUOTED = re.compile(r"(?<=[ =])'[^']*'")
_CUT_SHORT = {"MissingParameter", "BadOptionUsage"}
"""A mention of the command, or one that ends with an option whose value is left to the reader."""
_VALUE = "{value}"


def test_no_command_option_error_or_reason_is_without_its_text() -> None:
    nodes = [(name, node) for name, app in (("fleet", fleet), ("drone", drone)) for node in walk(app)]
    unexplained = [(name, node.words) for name, node in nodes if not node.command.help]
    unexplained += [
        (name, [*node.words, each.name]) for name, node in nodes for each in explained(node) if not each.help
    ]
    assert unexplained == []
    assert [(code, texts) for code, texts in error_texts() if "" in texts.values()] == []
    assert [reason for reason, text in reasons() if not text] == []
    shown = page()
    assert [code for code, _ in error_texts() if f"\n- {code}\n" not in shown] == []


def test_words_to_avoid_are_found_in_texts_and_not_in_docstrings(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "part.py").write_text(
        '"""What nobody sees."""\n\ndef _go_on(value: str) -> str:\n    return f"{value} goes on; mend it"\n'
    )
    done = subprocess.run([sys.executable, CHECK, "room"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "room/part.py:4: 'goes on': use continue, resume",
        "room/part.py:4: 'mend': use fix",
    ]


def printed_commands(tree: ast.Module) -> Iterator[str]:
    """The commands in a module's texts, each without what follows it; docstrings are not printed."""
    nodes = list(ast.walk(tree))
    quiet = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    quiet |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    # The words of a declared command, without the program's name.
    quiet |= {
        id(part) for node in nodes if isinstance(node, ast.Call) and _name(node) == "Command" for part in node.args
    }
    for node in nodes:
        text = _text(node) if id(node) not in quiet else ""
        for found in _MENTION.finditer(text):
            known = found[2] in _COMMANDS[found[1]]
            if known or (_BEGINS_A_COMMAND.search(text[: found.start()]) and found[2] not in _NOUNS):
                yield _END.split(_QUOTED.sub("'text'", text[found.start() :]))[0].strip()


def _name(call: ast.Call) -> str:
    return getattr(call.func, "id", "") or getattr(call.func, "attr", "")


def _text(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else _VALUE for part in parts)
    return ""


def problem(command: str) -> str:
    """Why a command line cannot be used as it is printed; empty if it can."""
    try:
        words = shlex.split(command)
        names = parse(words)
    except Invalid as refused:
        # A value stands for the word that selects the command.
        return "" if _VALUE in refused.what else refused.what
    except Exception as refused:  # noqa: BLE001 - the errors of typer's parser are not public
        # A value may stand for an option, and in an example for the time at which it is printed.
        return "" if type(refused).__name__ in {*_CUT_SHORT, "Exit"} or _VALUE in str(refused) else str(refused)
    return "" if words[: len(names)] == names else f"the help lists it as {' '.join(names)}"


def test_every_command_that_is_printed_can_be_used_as_it_stands() -> None:
    found = {(path.name, command) for path, tree in modules().items() for command in printed_commands(tree)}
    assert len(found) > 250
    assert sorted((name, command, why) for name, command in found if (why := problem(command))) == []


def test_a_command_that_does_not_exist_is_noticed() -> None:
    cases: list[str] = [
        "next='fleet checkout 12'",
        "f'{x}; or fleet sumbit {y}'",
        "'look: fleet show ORDER --lgo 7'",
        "'fleet session chekout S'",
        "'drone statsu'",
        "'fleet token create'",
    ]
    for text in cases:
        (command,) = printed_commands(ast.parse(f"f({text})"))
        assert problem(command), text


def test_words_are_no_commands() -> None:
    assert list(printed_commands(ast.parse('f("the fleet will notice", "drone is removed", "of the drone oka")'))) == []
