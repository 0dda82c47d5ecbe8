"""A class name stands for one thing in the whole product."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.support.documents import INSTALLED, modules

SHARED_ON_PURPOSE = {"Agent"}
"""The row of an agent in the control plane, and the loop in the drone: each is the word of the product on its side."""


def classes() -> dict[str, list[str]]:
    """By name, the modules that define a class of it."""
    found = defaultdict(list)
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(INSTALLED)))
    return found


def test_every_class_name_is_used_once() -> None:
    twice = {name: paths for name, paths in classes().items() if len(paths) > 1}

    assert set(twice) == SHARED_ON_PURPOSE, twice
