"""Every regular expression of the product takes time with the length of a text, whatever the text is.

Patterns of fields, `Field(pattern=…)`, are not among them: pydantic matches these in linear time.
"""

from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest

from tests.support.expressions import BusyText, Expression, busy_texts, expressions

LOCAL = {
    "control_plane/operations/code_hosts/texts.py": {"mention": "@fleet"},
    "control_plane/teams/tags.py": {"opened": {"marks": "```"}},
    "drone/model/spoken_calls.py": {"key": "arguments"},
    "drone/replay/path_mapping.py": {"old": "/work"},
    "drone/workspace/failures.py": {"host": "proxy.internal"},
    "drone/workspace/plain_head.py": {"name": b"refs/heads/main"},
    "shared/redaction/spellings.py": {"values": "hunter2|ab12"},
}
"""Examples of what a function inserts into its expression."""
GIVEN = {
    "control_plane/cli/batch_files/choosing.py text": "a user's, for their own file",
    "control_plane/db/migrations/versions/r0004_order_facts.py pattern": "history",
    "drone/replay/trajectory_file.py regex": "of the recording that a user replays",
    "drone/tools/file_tree.py anywhere + _expression(pattern.lstrip('/'))": "of the model, in a bounded command",
}
"""Expressions that are data, and where from."""
SHORT = {"drone/model/spoken_calls.py _TAIL": "searches 70 characters"}
"""Expressions that may be slow, because they never see a long text."""
SIZES = (6, 12, 16, 20, 24, 48, 96, 400, 4_000)
"""The first ones are for expressions whose time doubles with each character."""
FLOOR_S = 0.002


def test_every_expression_takes_time_with_the_length_of_a_text() -> None:
    found = {(each.compiled, each.uses): each for each in expressions(LOCAL, GIVEN)}
    assert len(found) > 250
    slow = {each.place: text for each in found.values() if (text := slow_text(each))}
    assert {place: text for place, text in slow.items() if place not in SHORT} == {}
    assert SHORT.keys() <= slow.keys()


@pytest.mark.parametrize(
    ("pattern", "is_slow"),
    [
        (r"\s+$", True),
        (r"<a[^>]*b", True),
        (r"\A(?:\w+\s?)*:", True),
        (r"\A.*?,.*?,.*?!", True),
        (r"(?<!\s)\s+$", False),
        (r"<a[^>]{0,250}b", False),
        (r"\A\w++:\w++:", False),
    ],
)
def test_an_expression_that_takes_more_is_found(pattern: str, is_slow: bool) -> None:
    searched = Expression("here", re.compile(pattern), frozenset({"search"}))
    assert (slow_text(searched) is not None) is is_slow


def slow_text(expression: Expression) -> BusyText | None:
    """A text for which the time grows faster than its length; None if there is none among those that are tried."""
    for text in busy_texts(expression):
        for shorter, longer in pairwise(SIZES):
            most = 3.2 * longer / shorter  # with the square, it would be `(longer / shorter) ** 2`
            if seconds(expression, text.of(longer)) > FLOOR_S and (
                seconds(expression, text.of(longer), 3) > most * seconds(expression, text.of(shorter), 3)
            ):
                return text
    return None


def seconds(expression: Expression, text: str, times: int = 1) -> float:
    """The least processor time of so many runs."""
    taken = []
    for _ in range(times):
        began = time.thread_time()
        expression.run(text)
        taken.append(time.thread_time() - began)
    return min(taken)
