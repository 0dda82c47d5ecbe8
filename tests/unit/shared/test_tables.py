"""Tables in terminals of every width: ids and states stay whole, and every row is one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from shared.terminal.output import fitted, print_table

COLUMNS = ("ORDER", "STATUS", "TITLE", "PROJECT", "REASON")
ROWS = [
    ("0123456789ab", "awaiting_approval", "Fix the login page so that it works\nagain", "web", "waiting for approval"),
    (
        "ba9876543210",
        "succeeded",
        "古い会話は短い要約に置き換えられます。" * 3,
        None,
        "The model submitted its work. " * 4,
    ),
]


def printed(capsys: pytest.CaptureFixture[str], width: int) -> list[str]:
    print_table(COLUMNS, ROWS, width=width)
    return capsys.readouterr().out.splitlines()


def test_ids_and_states_stay_whole_each_row_is_one_line_and_columns_are_left_out_from_the_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for width, headings in ((40, COLUMNS[:2]), (60, COLUMNS[:3]), (80, COLUMNS[:4]), (120, COLUMNS), (200, COLUMNS)):
        lines = printed(capsys, width)
        assert tuple(lines[0].split()) == headings, width
        assert (len(lines), max(map(cell_len, lines)) <= width) == (1 + len(ROWS), True), width
        assert [line.split()[:2] for line in lines[1:]] == [list(row[:2]) for row in ROWS], width


def test_without_a_terminal_nothing_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, ROWS)
    out = capsys.readouterr().out
    assert "Fix the login page so that it works again" in out
    assert str(ROWS[1][2]) in out
    assert "…" not in out
    print_table(COLUMNS, [], empty="no orders yet")
    assert capsys.readouterr() == ("", "no orders yet\n")


@given(
    widths=st.lists(st.integers(1, 90), min_size=1, max_size=7),
    prose=st.sets(st.integers(0, 6)),
    width=st.integers(10, 200),
)
def test_whatever_fits_is_shown_and_only_prose_is_cut(widths: list[int], prose: set[int], width: int) -> None:
    columns = [f"c{number}" for number in range(len(widths))]
    natural = dict(zip(columns, widths, strict=True))
    cuttable = [name for number, name in enumerate(columns) if number in prose]
    shown = fitted(columns, natural, cuttable, width)
    assert list(shown) == columns[: len(shown)]
    assert all(shown[name] == natural[name] for name in shown if name not in cuttable)
    assert all(min(natural[name], 20) <= shown[name] <= natural[name] for name in shown)
    total = sum(shown.values()) + 2 * (len(shown) - 1)
    assert total <= width or len(shown) <= 2
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        assert shown == natural
