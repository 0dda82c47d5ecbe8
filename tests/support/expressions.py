"""All regular expressions of the product, and texts that keep each of them busy, made from the expression itself."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, cast

from tests.support.documents import INSTALLED, PACKAGES

_parser: Any = importlib.import_module("re._parser")
_ANCHORED = frozenset({"match", "fullmatch"})
_FUNCTIONS = _ANCHORED | {"search", "sub", "subn", "split", "findall", "finditer", "compile"}
_CHARACTERS = [chr(code) for code in (*range(1, 127), 0xA0, 0xE9, 0x2028)]
_Atom = tuple[str, Hashable]
_SHORT = 300
"""What is repeated at most so many times takes a bounded time at each place of a text."""


@dataclass(frozen=True)
class Expression:
    """An expression, where it is, and how it is used: with `match`, `fullmatch`, or in another way."""

    place: str
    compiled: re.Pattern[Any]
    uses: frozenset[str]

    def run(self, text: str) -> None:
        """Find all that it finds in the text; only at its beginning if it is used in no other way."""
        written: Any = text.encode() if isinstance(self.compiled.pattern, bytes) else text
        if self.uses <= _ANCHORED:
            for use in self.uses:
                getattr(self.compiled, use)(written)
        else:
            for _ in self.compiled.finditer(written):
                pass


def expressions(local: Mapping[str, Mapping[str, Any]], left_out: Collection[str]) -> Iterator[Expression]:
    """Every expression in the constants of the product's modules, and every one that a function or class writes.

    Args:
        local: By module, values for a function's own names in its expressions.
        left_out: Expressions that are data, as `MODULE EXPRESSION`.

    Raises:
        NameError: Another expression has a function's own name in it.
    """
    for file in sorted(path for package in PACKAGES for path in (INSTALLED / package).rglob("*.py")):
        text, place = file.read_text(encoding="utf-8"), str(file.relative_to(INSTALLED))
        if "import re\n" in text:
            tree = ast.parse(text)
            names = vars(importlib.import_module(place.removesuffix(".py").replace("/", ".")))
            for name, value in names.items():
                yield from (Expression(f"{place} {name}", each, _uses(tree, name)) for each in _within(value))
            for each in tree.body:
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    yield from _written(each, {**names, **local.get(place, {})}, place, left_out)


def _uses(tree: ast.AST, name: str) -> frozenset[str]:
    """How a name is used: the methods, and an empty text for any other use."""
    methods = {each.value: each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
    loads = [each for each in ast.walk(tree) if isinstance(each, ast.Name) and each.id == name]
    compared = [each.left for each in ast.walk(tree) if isinstance(each, ast.Compare)]
    found = {methods.get(each, "") for each in loads if isinstance(each.ctx, ast.Load) and each not in compared}
    return frozenset(found or {""})


def _within(value: object) -> Iterator[re.Pattern[Any]]:
    """The expressions in a constant: itself, or those in its tables."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _within(each)
    elif isinstance(value, Mapping):
        yield from _within([*value.values()])
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _within([getattr(value, each.name) for each in fields(value)])


def _written(part: ast.AST, names: dict[str, Any], place: str, left_out: Collection[str]) -> Iterator[Expression]:
    assigned = {
        each.value: each.targets[0].id
        for each in ast.walk(part)
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
    }
    for call in ast.walk(part):
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=function)) if function in _FUNCTIONS:
                first, *rest = [*call.args, *(each.value for each in call.keywords)]
                if f"{place} {ast.unparse(first)}" in left_out:
                    continue
                flags = [_value(each, names) for each in rest if ast.unparse(each).startswith("re.")]
                uses = _uses(part, assigned[call]) if call in assigned and function == "compile" else {function}
                yield Expression(f"{place}:{call.lineno}", re.compile(_value(first, names), *flags), frozenset(uses))


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(ast.unparse(node), names)


@dataclass(frozen=True)
class BusyText:
    """A text of any size: how it begins, what follows many times, and how it ends."""

    begun: str
    repeated: str
    end: str

    def of(self, size: int) -> str:
        """The text with about so many characters; with more, the longer what is repeated is."""
        return self.begun + self.repeated * int(size / len(self.repeated) ** 0.5) + self.end


def busy_texts(expression: Expression) -> list[BusyText]:
    """Texts in which a part of the expression that may repeat does so for long, or begins again and again.

    For each such part: what comes before it and then, many times, what it accepts; both, many times; and only what it
    accepts. An end that it does not accept has it give back what it took.
    """
    tree = _parser.parse(expression.compiled.pattern, expression.compiled.flags)
    kinds = _kinds(tree)
    texts: dict[BusyText, None] = {}
    for before, body in _repeated(tree, ""):
        words = dict.fromkeys(word for kind in kinds if (word := _example(body, kind)))
        refused = next((each for each in "\x01\na" if each not in words), "")
        for word in words:
            for end in dict.fromkeys(("", refused)):
                both = (BusyText(before, word, end), BusyText("", before + word, end))
                texts.update(dict.fromkeys([*both, BusyText("", word, end)]))
    return list(texts)


def _atoms(tree: Iterable[Any]) -> Iterator[_Atom]:
    """All parts of an expression that accept one character."""
    for operation, argument in tree:
        if (atom := _atom(operation, argument)) is not None:
            yield atom
        for part in _parts(operation, argument):
            yield from _atoms(part)


def _atom(operation: Any, argument: Any) -> _Atom | None:
    if str(operation) in {"LITERAL", "NOT_LITERAL", "ANY", "IN"}:
        return str(operation), tuple(argument) if isinstance(argument, list) else argument
    return None


def _parts(operation: Any, argument: Any) -> Sequence[Any]:
    """The expressions within one."""
    match str(operation):
        case "BRANCH":
            return cast("Sequence[Any]", argument[1])
        case "SUBPATTERN" | "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [argument[-1]]
        case "ASSERT" | "ASSERT_NOT":
            return [argument[1]]
        case "ATOMIC_GROUP":
            return [argument]
    return []


def _kinds(tree: Any) -> list[str]:
    """One character for each set that the expression tells from the others."""
    accepted = [_accepted(atom) for atom in dict.fromkeys(_atoms(tree))]
    found: dict[tuple[bool, ...], str] = {}
    for each in _CHARACTERS:
        found.setdefault(tuple(each in some for some in accepted), each)
    return list(found.values())


@cache
def _accepted(atom: _Atom) -> Mapping[str, None]:
    """The characters that a part for one character accepts."""
    return dict.fromkeys(each for each in _CHARACTERS if _accepts(*atom, each))


def _accepts(operation: object, argument: Any, character: str) -> bool:
    match str(operation):
        case "LITERAL":
            return bool(argument == ord(character))
        case "NOT_LITERAL":
            return bool(argument != ord(character))
        case "RANGE":
            return bool(argument[0] <= ord(character) <= argument[1])
        case "CATEGORY":
            kind = str(argument).removeprefix("CATEGORY_").replace("UNI_", "").lower()
            letter = kind.removeprefix("not_")[0]  # of digit, space, word
            return bool(re.match(f"\\{letter.upper() if kind.startswith('not_') else letter}", character))
        case "IN":
            negated = str(argument[0][0]) == "NEGATE"
            return any(_accepts(*each, character) for each in argument[negated:]) != negated
    return True


def _repeated(tree: Iterable[Any], before: str) -> Iterator[tuple[str, Any]]:
    """Every part that may repeat for long, with a text that leads to it."""
    for operation, argument in tree:
        inner = _parts(operation, argument)
        if str(operation).endswith("REPEAT") and argument[1] > _SHORT:
            yield before, argument[2]
        for part in inner:
            yield from _repeated(part, before)
        before += _example([(operation, argument)], "")


def _example(tree: Iterable[Any], preferred: str) -> str:
    """A text that the expression accepts, of the preferred character where it has the choice."""
    text = ""
    for operation, argument in tree:
        name = str(operation)
        if (atom := _atom(operation, argument)) is not None:
            accepted = _accepted(atom)
            text += preferred if preferred in accepted else next(iter(accepted), "")
        elif name == "BRANCH":
            texts = [_example(part, preferred) for part in argument[1]]
            text += next((each for each in texts if preferred and preferred in each), texts[0])
        elif name.endswith("REPEAT"):
            once = _example(argument[2], preferred)
            text += once * max(argument[0], 1 if preferred and preferred in once else 0)
        elif not name.startswith("ASSERT"):
            text += "".join(_example(part, preferred) for part in _parts(operation, argument))
    return text
