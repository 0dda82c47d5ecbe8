"""Lines of a large output by number, and a search, without the whole of it in memory."""

from __future__ import annotations

from pathlib import Path

from control_plane.operations.orders.log_lines import CHUNK, LONGEST, SEARCH_CHUNK, LineIndex, found_in, opened

OUTPUTS = (
    b"",
    b"\n",
    b"one",
    b"one\n",
    b"one\ntwo",
    b"\n\n\n",
    b"x" * (CHUNK * 2 + 7),
    b"a\n" * CHUNK,
    b"ab\r\n" * 40_000,
)


def test_every_line_is_found_by_its_number() -> None:
    for output in OUTPUTS:
        index = LineIndex.of(output)
        lines = output.removesuffix(b"\n").split(b"\n") if output else []
        assert index.lines == len(lines)
        for first in {0, 1, len(lines) // 2, len(lines) - 1} & set(range(len(lines))):
            shown = list(index.page(output, first, 3))
            assert [text for text, _ in shown] == [line[:LONGEST] for line in lines[first : first + 3]]
            assert shown[0][1] == max(0, len(lines[first]) - LONGEST)


def test_a_match_is_found_once_for_each_line_wherever_it_is() -> None:
    edge = b"x" * (SEARCH_CHUNK - 3)
    output = b"Error error\nfine\nERROR\n" + edge + b"error\nlast error"
    index = LineIndex.of(output)
    assert [index.line_at(output, place) for place in found_in(output, b"Error")] == [0, 2, 3, 4]


def test_a_match_across_two_chunks_is_found() -> None:
    for cut in range(8):
        output = b"x" * (SEARCH_CHUNK - cut) + b"needle\n" + b"needle\n"
        assert list(found_in(output, b"needle")) == [SEARCH_CHUNK - cut, SEARCH_CHUNK - cut + 7]


def test_ten_megabytes_are_indexed_and_searched(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a line of output that says nothing at all\n" * 250_000 + b"the needle\n")
    with opened(path) as source:
        index = LineIndex.of(source)
        (place,) = found_in(source, b"NEEDLE")
        lines = list(index.page(source, index.line_at(source, place), 1))
    assert lines == [(b"the needle", 0)]
