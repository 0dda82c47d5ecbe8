"""The documents say what is true: commands, options, errors, settings, tests and pages that are made from the code."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import get_args

import pytest

from control_plane.cli.main import app as fleet
from control_plane.core.settings import FleetSettings
from control_plane.drones.reports import REPORTS
from drone.cli.main import app as drone
from shared.envelope import Direction
from shared.errors import Invalid
from tests.hostile.removed_defenses import REMOVALS
from tests.support import needs
from tests.support.command_tree import built
from tests.support.documents import INSTALLED, PACKAGES, ROOT, examples, pages, parse, texts
from tests.support.licenses import PAGE, licenses
from tests.support.man_pages import PROGRAMS, page, path_of

_SPANS = {
    "S": "1-7 10-17 20-26 30-34 40-43 50-55 60-65 70-73 80-89 100-108 110-114 120-128",
    "O": "1-3 10-11 20-23 30-34 40-46 50-57 60-62 70-73 80-82 90-93 100-111",
    "G": "1-11 20-35",
    "M": "1-12 20-26 30-34 40-43 50-52",
}
RULES = [
    f"{system}-{number:03}"
    for system, spans in _SPANS.items()
    for first, last in (map(int, span.split("-")) for span in spans.split())
    for number in range(first, last + 1)
]
"""The numbered rules of the four systems."""


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def is_there(test: str) -> bool:
    """Is there such a file, and in it a test of that name where one is given?"""
    path, _, name = test.partition("::")
    return (ROOT / path).is_file() and (not name or f"def {name}(" in read(path))


def test_every_rule_of_coverage_has_one_line_and_every_test_it_names_exists() -> None:
    lines = re.findall(r"(?m)^\| ([SOGM]-\d{3}) \| (.+?) \| (.+) \|$", read("docs/coverage.md"))
    named = {name for *_, shown in lines for name in re.findall(r"`(tests/[^`]+)`", shown)}
    allowed = re.compile(r"`tests/\S+`|left out: \w+|different: \w+")
    assert [number for number, *_ in lines] == RULES
    assert [line for line in lines if not allowed.search(line[2])] == []
    assert sorted(name for name in named if not is_there(name)) == []


def test_every_attack_names_a_test_of_its_own_with_one_change_of_the_source_that_makes_it_fail() -> None:
    lines = read("docs/security.md").split("\n## Attacks\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]
    tests = [re.findall(r"`([\w/]+\.py::\w+)`", row[3]) for row in rows]
    assert len(rows) > 40
    assert [row for row, named in zip(rows, tests, strict=True) if not all(row[1:]) or not named] == []
    assert [name for named in tests for name in named if not is_there(f"tests/{name}")] == []
    assert len({row[3] for row in rows}) == len(rows)
    assert Counter(removal.test for removal in REMOVALS) == Counter(named[0] for named in tests)
    for edit in (edit for removal in REMOVALS for edit in removal.edits):
        text = (INSTALLED / edit.path).read_text(encoding="utf-8")
        assert edit.applied(text) != text


def test_each_side_opens_envelopes_in_its_own_places_alone() -> None:
    """So that no new kind of message can do without the checks there."""
    opening = {
        str(path.relative_to(INSTALLED))
        for path, text in texts().items()
        if re.search(r"open_envelope(?!\(recip)", text)
    }
    boxes = {str(path.relative_to(INSTALLED)) for path, text in texts().items() if re.search(r"\bBox\b", text)}
    assert opening == {
        "control_plane/drones/reports.py",
        "drone/reporting/uplink.py",
        "drone/installation/registration.py",
        "shared/envelope.py",
    }
    assert boxes == {"shared/envelope.py"}
    assert set(get_args(Direction)) == {"order", "control", "credentials"} | set(REPORTS.values())


# --- commands --------------------------------------------------------------------------------------

_COMMANDS = {"fleet": set(built(fleet).commands), "drone": set(built(drone).commands)}
_MENTION = re.compile(r"(?<![\w/.-])(?<!fleet )(fleet|drone) ([a-z][a-z-]*)(?![\w:])")
_BEGINS_A_COMMAND = re.compile(r"(^|[`:;,(|]\s*|\bor |\bthen |\bwith |\s{2,})$")
"""What stands before a command, and not before `fleet` or `drone` as a noun."""
_END = re.compile(
    r"[;,`()\]\n|…]|\s{2,}|\.$|\. |: |&&| [#<] | (?:or:?|and|to|then|where|on|with|creates|starts|shows|needs|without) "
)
_NOUNS = re.compile("is|that|has|must|cannot|does|accepts|takes|opens|with|and|of|gone|removed|reports")
"""What follows the nouns at the beginning of a sentence."""
_CUT_SHORT = {"MissingParameter", "BadOptionUsage", "Exit"}
"""A mention of the command, or one that ends with an option whose value is left to the reader."""
_VALUE = "{value}"


def printed_commands(text: str) -> Iterator[str]:
    """The commands in a module's texts, each without what follows it; docstrings are not printed."""
    nodes = list(ast.walk(ast.parse(text)))
    quiet = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    quiet |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    # The words of a declared command, without the program's name.
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    quiet |= {id(part) for call in calls if ast.unparse(call.func).endswith("Command") for part in call.args}
    for node in nodes:
        said = _said(node) if id(node) not in quiet else ""
        for found in _MENTION.finditer(said):
            known = found[2] in _COMMANDS[found[1]]
            if known or (_BEGINS_A_COMMAND.search(said[: found.start()]) and not _NOUNS.fullmatch(found[2])):
                yield _END.split(re.sub(r"(?<=[ =])'[^']*'", "'text'", said[found.start() :]))[0].strip()


def _said(node: ast.AST) -> str:
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
        return "" if type(refused).__name__ in _CUT_SHORT or _VALUE in str(refused) else str(refused)
    return "" if words[: len(names)] == names else f"the help lists it as {' '.join(names)}"


def test_every_command_that_is_printed_can_be_used_as_it_stands() -> None:
    for wrong in ("fleet checkout 12", "look: fleet show ORDER --lgo 7", "fleet session chekout S", "drone statsu"):
        (command,) = printed_commands(f"f({wrong!r})")
        assert problem(command), wrong
    assert list(printed_commands('f("the fleet will notice", "drone is removed", "of the drone oka")')) == []

    mentioning = {path.name: text for path, text in texts().items() if _MENTION.search(text)}
    found = {(name, command) for name, text in mentioning.items() for command in printed_commands(text)}
    assert len(found) > 250
    assert sorted((name, command, why) for name, command in found if (why := problem(command))) == []


def test_every_command_in_the_documents_exists_with_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRONE_TOKEN", "stands for --token, as the documents say")
    wrong = {}
    for words in (words for words in examples() if words[0] in {"fleet", "drone"}):
        try:
            parse(words)
        except Exception as refused:  # noqa: BLE001 - the errors of typer's parser are not public
            wrong[" ".join(words)] = str(refused)
    assert wrong == {}
    targets = {words[1] for words in examples() if words[0] == "make"}
    assert targets
    assert [target for target in sorted(targets) if f"\n{target}:" not in read("Makefile")] == []


# --- links, errors, settings and pages that are made -----------------------------------------------


def test_every_link_and_every_module_that_a_document_names_is_there() -> None:
    links = [(page, link) for page, text in pages().items() for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text)]
    relative = [(page, link) for page, link in links if not link.startswith("http")]
    assert relative
    assert [(str(page), link) for page, link in relative if not (page.parent / link).exists()] == []

    rooms = [ROOT, ROOT / "tests", INSTALLED, *(INSTALLED / each for each in PACKAGES)]
    named = {(page.name, path) for page, text in pages().items() for path in re.findall(r"`([\w./-]+\.py)`", text)}
    assert len(named) > 20
    assert [each for each in named if not any((room / each[1]).is_file() for room in rooms)] == []


STOP = re.compile(r"`((?:control_plane|drone|shared)/[\w/]+\.py)`:\s+`(\w+)`")


def test_each_stop_of_the_tour_names_a_function_or_class_that_is_in_its_file() -> None:
    tour = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    stops = re.split(r"^## ", tour, flags=re.MULTILINE)[1:]
    named = [STOP.findall(stop) for stop in stops]
    assert [number for number, found in enumerate(named, 1) if not found] == []
    defined = {
        file: {each.name for each in ast.parse((ROOT / file).read_text(encoding="utf-8")).body if hasattr(each, "name")}
        for found in named
        for file, _ in found
    }
    assert [(file, name) for found in named for file, name in found if name not in defined[file]] == []


def test_every_error_code_in_the_code_is_explained_and_no_other() -> None:
    explained = re.findall(r"(?m)^#+ (E-[A-Z0-9-]+)$", read("docs/errors.md"))
    whole = "\n".join(texts().values())
    codes = set(re.findall(r"""["'](E-[A-Z0-9]+(?:-[A-Z0-9]+)*)["']""", whole))
    made = re.findall(r"""f["'](E-[A-Z0-9-]*\{[^"']*)["']""", whole)
    families = {re.sub(r"\{[^}]*\}", "[A-Z0-9]+", code) for code in made}
    assert explained == sorted(set(explained))
    assert codes - set(explained) == set()
    assert [code for code in set(explained) - codes if not any(re.fullmatch(each, code) for each in families)] == []
    assert [each for each in families if not any(re.fullmatch(each, code) for code in explained)] == []


def test_every_setting_of_the_control_plane_is_in_the_example_and_in_the_documents() -> None:
    settings = {f"FLEET_{name.upper()}" for name in FleetSettings.model_fields}
    example = set(re.findall(r"(?m)^#?(FLEET_\w+)=", read("deploy/example.env")))
    assert settings - example == set()
    assert settings - set(re.findall(r"FLEET_\w+", read("docs/operations.md"))) == set()


def test_the_manual_pages_are_up_to_date_and_groff_finds_nothing_wrong_in_them() -> None:
    assert {name for name in PROGRAMS if path_of(name).read_text(encoding="ascii") != page(name)} == set(), "make man"
    needs("groff")
    for program in PROGRAMS:
        command = ["groff", "-man", "-Tutf8", "-ww", path_of(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr, program.upper() in done.stdout) == (0, "", True)


def test_every_installed_package_is_listed_with_a_license_that_is_known() -> None:
    """Other platforms and versions of Python install a few others, so the page may list more."""
    listed = set(PAGE.read_text().splitlines())
    found = licenses()
    assert {f"| {name} | {license} | {part} |" for name, (license, part) in found.items()} <= listed, "make licenses"
    assert [name for name, (license, _) in found.items() if license == "unknown"] == []
