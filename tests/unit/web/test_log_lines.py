"""Lines of a large output by number, and a search, without the whole of it in memory."""

from __future__ import annotations

from control_plane.core.blob_store import PartlyRead
from control_plane.operations.orders.logs import CHUNK, LONGEST, READ_AT_ONCE, LineIndex

OUTPUTS = (
    b"",
    b"\n",
    b"one",
    b"one\n",
    b"one\ntwo",
    b"\n\n\n",
    b"x" * (CHUNK * 2 + 7),
    b"x" * (CHUNK * 2 + 7) + b"\nafter",
    b"before\n" + b"x" * (CHUNK * 2),
    b"x" * (CHUNK - 1) + b"\n" + b"y" * (CHUNK - 1) + b"\n",
    b"x" * CHUNK + b"\n" + b"y" * CHUNK,
    b"a\n" * CHUNK,
    b"ab\r\n" * 40_000,
    (b"x" * LONGEST + b"\n" + b"y" * (LONGEST + 1) + b"\n") * 20,
)
MANY = b"a line that says nothing at all, as most do\n" * (READ_AT_ONCE // 20)


def read_of(content: bytes, reads: list[tuple[int, int]]) -> PartlyRead:
    """The content, with a note of what is read of it."""

    def read(start: int, end: int) -> bytes:
        reads.append((start, end))
        return content[start:end]

    return PartlyRead(len(content), read)


def test_every_line_is_found_by_its_number() -> None:
    for output in OUTPUTS:
        index = LineIndex.of(output)
        lines = output.removesuffix(b"\n").split(b"\n") if output else []
        assert index.lines == len(lines)
        for first in {0, 1, len(lines) // 2, len(lines) - 1} & set(range(len(lines))):
            shown = [(line.number, line.text, line.left_out) for line in index.page(output, first, 3)]
            expected = list(enumerate(lines))[first : first + 3]
            assert shown == [(n, line[:LONGEST], max(0, len(line) - LONGEST)) for n, line in expected]


def test_a_search_finds_each_line_once_from_any_line_on() -> None:
    edge = b"x" * (READ_AT_ONCE - 3)
    wrong = {}
    cases = {
        "twice in a line": b"Error error\nfine\nERROR\nlast error",
        "across two reads": b"an error\n" + edge + b"error\nlast error",
        "in a line of several reads": edge + edge + b"error" + edge + b"error\nerror\n",
        "alone": b"error",
        "nowhere": b"fine\n" + edge,
        "nothing": b"",
        **{f"{cut} before the end of a read": edge[cut:] + b"error\nerror" for cut in range(9)},
    }
    for name, output in cases.items():
        lines = output.removesuffix(b"\n").split(b"\n")
        expected = [n for n, line in enumerate(lines) if b"error" in line.lower()]
        index = LineIndex.of(output)
        for first in range(len(lines) + 1):
            found = [line.number for line in index.search(output, b"Error", first)]
            if found != [n for n in expected if n >= first]:
                wrong[name, first] = found
    assert wrong == {}


def test_the_further_search_goes_the_less_is_read() -> None:
    reads = list[tuple[int, int]]()
    content, index = read_of(MANY, reads), LineIndex.of(MANY)
    for first in (0, index.lines // 2, index.lines - 10):
        reads.clear()
        found = [line.number for line, _ in zip(index.search(content, b"nothing", first), range(200), strict=False)]
        assert found == list(range(first, min(first + 200, index.lines)))
        assert sum(end - start for start, end in reads) <= READ_AT_ONCE + 3 * CHUNK
        assert min(start for start, _ in reads) >= first * 44 - CHUNK
        reads.clear()
        assert [line.number for line in index.search(content, b"not there", first)] == []
        assert sum(end - start for start, end in reads) <= len(MANY) - first * 44 + 3 * CHUNK


def test_a_page_reads_little_wherever_it_is() -> None:
    reads = list[tuple[int, int]]()
    content, index = read_of(MANY, reads), LineIndex.of(MANY)
    for first in (0, 1, index.lines // 3, index.lines - 250):
        reads.clear()
        assert len(list(index.page(content, first, 250))) == 250
        assert sum(end - start for start, end in reads) <= 3 * CHUNK
