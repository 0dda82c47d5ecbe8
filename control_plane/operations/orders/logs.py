"""The full log of an order: the outputs of all its calls and checks, one after the other, with numbers that stay true.

Outputs are only ever added at the end, so a line keeps its number.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.core import Caller, Core
from control_plane.core.blob_store import Content
from control_plane.db.engine import pause
from control_plane.db.runs import Blob, Step
from control_plane.operations.orders.removed import no_longer_stored
from control_plane.operations.orders.step_reading import own_order
from shared.errors import NotFound

MOST_MATCHES = 200
REMEMBERED = 64
"""Orders whose index is kept in memory."""
BATCH = 500
"""Rows that are read at once."""
KINDS = ("tool_call", "tool_result", "verify")
CHUNK = 1 << 16
READ_AT_ONCE = CHUNK * 64
"""Bytes that are read at once where all of an output is read; in a bucket, one request."""
LONGEST = 4000
"""Bytes of a line that are shown."""


@dataclass(frozen=True)
class LogPart:
    """The output of one call or check."""

    seq: int
    """Of the step with the output."""
    run_id: str
    tool: str
    arguments: Any
    failed: bool
    return_code: int | None
    duration_ms: int
    sha256: str | None
    """The file with the whole output; None: it is in the step."""
    first: int
    """The number of its first line in the order's log, from 1."""
    index: LineIndex
    missing: bool = False
    """The file was lost: what the step itself has is shown."""

    @property
    def last(self) -> int:
        return self.first + self.index.lines - 1


@dataclass
class OrderLog:
    """The parts of an order's log so far."""

    parts: list[LogPart] = field(default_factory=list)
    calls: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """Calls without a result yet: tool and arguments."""
    seq: int = 0
    """Of the last step that was looked at."""

    @property
    def lines(self) -> int:
        return self.parts[-1].last if self.parts else 0

    def part_with(self, line: int) -> int:
        """The index of the part that contains this line."""
        return next((n for n, part in enumerate(self.parts) if part.last >= line), max(0, len(self.parts) - 1))


@dataclass(frozen=True)
class LogLine:
    """One line of a log."""

    number: int
    text: str
    left_out: int = 0
    """Bytes of it that are not shown."""

    @classmethod
    def of(cls, part: LogPart, line: IndexedLine) -> LogLine:
        return cls(part.first + line.number, line.text.decode("utf-8", "replace"), line.left_out)


@dataclass(frozen=True)
class Matches:
    """What a search found."""

    lines: list[LogLine]
    more: bool
    """There are further ones after these."""


@dataclass
class _Kept:
    """An order's index in memory. A large file is counted once, while readers of other orders do not wait."""

    log: OrderLog = field(default_factory=OrderLog)
    lock: threading.Lock = field(default_factory=threading.Lock)


_known: OrderedDict[str, _Kept] = OrderedDict()
_lock = threading.Lock()


def log_of_order(core: Core, caller: Caller, order_id: str) -> OrderLog:
    """The parts of the log. Raises NotFound."""
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        pause(db)
        with _lock:
            kept = _known.setdefault(order.id, _Kept())
            _known.move_to_end(order.id)
            while len(_known) > REMEMBERED:
                _known.popitem(last=False)
        with kept.lock:
            if order.step_count < kept.log.seq or not _is_stored(db, order.id, kept.log):
                # The retention removed some of it; or another database behind the same process, as in a test.
                kept.log = OrderLog()
            _extend(db, core, order.id, kept.log)
            return OrderLog(list(kept.log.parts), dict(kept.log.calls), kept.log.seq)


def lines_of(
    core: Core, caller: Caller, order_id: str, wanted: Sequence[tuple[LogPart, range]]
) -> Iterator[tuple[LogPart, list[LogLine]]]:
    """Lines of these parts, by their numbers in the order's log. Raises NotFound."""
    with core.database.read() as db:
        own_order(db, caller, order_id)
        contents = _contents(db, core, order_id, [part for part, _ in wanted])
        for (part, content), (_, numbers) in zip(contents, wanted, strict=True):
            page = part.index.page(content, numbers.start - part.first, len(numbers))
            yield part, [LogLine.of(part, line) for line in page]


def search(core: Core, caller: Caller, order_id: str, text: str, after: int = 0) -> Matches:
    """The first lines after `after` that contain the text; what is before `after` is not read. Raises NotFound."""
    log = log_of_order(core, caller, order_id)
    found: list[LogLine] = []
    with core.database.read() as db:
        own_order(db, caller, order_id)
        later = [part for part in log.parts if part.last > after]
        for part, content in _contents(db, core, order_id, later):
            for line in part.index.search(content, text.encode(), after - part.first + 1):
                if len(found) == MOST_MATCHES:
                    return Matches(found, more=True)
                found.append(LogLine.of(part, line))
    return Matches(found, more=False)


def _is_stored(db: Db, order_id: str, log: OrderLog) -> bool:
    """Whether the files and the steps that the index was made of are still there."""
    named = {(part.run_id, part.sha256) for part in log.parts if part.sha256 is not None}
    rows = select(Blob.run_id, Blob.sha256).where(Blob.run_id.in_({run_id for run_id, _ in named}))
    if named and not named <= {(run_id, name) for run_id, name in db.execute(rows)}:
        return False
    first = select(Step.id).where(Step.order_id == order_id, Step.seq == log.parts[0].seq) if log.parts else None
    return first is None or db.scalar(first) is not None


def _extend(db: Db, core: Core, order_id: str, log: OrderLog) -> None:
    """Add what arrived since. Only short outputs are in the rows; a long one is counted in its file."""
    rows = select(Step.seq, Step.run_id, Step.kind, Step.body).where(Step.order_id == order_id, Step.kind.in_(KINDS))
    while found := db.execute(rows.where(Step.seq > log.seq).order_by(Step.seq).limit(BATCH)).all():
        for seq, run_id, kind, body in found:
            log.seq = seq
            if kind == "tool_call":
                log.calls[str(body.get("call_id"))] = (str(body.get("tool", "")), body.get("arguments"))
            else:
                _add(db, core, log, (seq, run_id, kind), body)


def _add(db: Db, core: Core, log: OrderLog, place: tuple[int, str, str], body: dict[str, Any]) -> None:
    seq, run_id, kind = place
    sha256 = body.get("log_sha256")
    there = sha256 is not None and db.get(Blob, (run_id, sha256)) is not None and core.blobs.has(sha256)
    if there:
        pause(db)
        with core.blobs.content(str(sha256)) as content:
            index = LineIndex.of(content)
    else:
        index = LineIndex.of(_inline(body))
    tool, arguments = log.calls.pop(str(body.get("call_id")), ("call", None))
    if kind == "verify":
        tool, arguments = "check", {"command": body.get("command", "")}
    if index.lines:
        log.parts.append(
            LogPart(
                seq=seq,
                run_id=run_id,
                tool=tool,
                arguments=arguments,
                failed=bool(body.get("is_error") or body.get("return_code")),
                return_code=body.get("return_code"),
                duration_ms=int(body.get("duration_ms") or 0),
                sha256=sha256 if there else None,
                first=log.lines + 1,
                index=index,
                missing=sha256 is not None and not there,
            )
        )


def _contents(
    db: Db, core: Core, order_id: str, parts: Sequence[LogPart]
) -> Generator[tuple[LogPart, Content], None, None]:
    """The outputs one after the other; those in the rows are read many at once."""
    for start in range(0, len(parts), BATCH):
        some = parts[start : start + BATCH]
        in_rows = [part.seq for part in some if part.sha256 is None]
        rows = select(Step.seq, Step.body).where(Step.order_id == order_id, Step.seq.in_(in_rows))
        bodies = {seq: body for seq, body in db.execute(rows)} if in_rows else {}
        pause(db)
        for part in some:
            if part.sha256 is None:
                yield part, _inline(bodies.get(part.seq, {}))
                continue
            with ExitStack() as stack:
                try:
                    content = stack.enter_context(core.blobs.content(part.sha256))
                except NotFound as error:
                    # The file was lost: with a new index, the page shows what the step itself has.
                    _known.pop(order_id, None)
                    raise no_longer_stored(f"the log of step {part.seq}", "FLEET_KEEP_LOGS_DAYS", order_id) from error
                yield part, content


def _inline(body: dict[str, Any]) -> bytes:
    return str(body.get("output", "")).encode("utf-8", "replace")


@dataclass(frozen=True)
class IndexedLine:
    """A line of one output."""

    number: int
    """From 0."""
    text: bytes
    """Its beginning."""
    left_out: int
    """Bytes after that."""

    @classmethod
    def of(cls, number: int, content: Content, begin: int, end: int) -> IndexedLine:
        return cls(number, content[begin : min(end, begin + LONGEST)], max(0, end - begin - LONGEST))


@dataclass(frozen=True)
class LineIndex:
    """Where the lines of an output begin: the number of line feeds before each chunk of it."""

    size: int
    before: tuple[int, ...]
    lines: int
    """A last line without a line feed counts."""

    @classmethod
    def of(cls, content: Content) -> LineIndex:
        """One pass over the output."""
        size, before, count, part = len(content), list[int](), 0, b""
        for start in range(0, size, READ_AT_ONCE):
            part = content[start : start + READ_AT_ONCE]
            for place in range(0, len(part), CHUNK):
                before.append(count)
                count += part.count(b"\n", place, place + CHUNK)
        return cls(size, tuple(before), count if part.endswith(b"\n") or not size else count + 1)

    def page(self, content: Content, first: int, count: int) -> Iterator[IndexedLine]:
        """The lines from `first`, at most `count`. Reads what it gives, and a chunk before it."""
        begin, part, part_at = self._start_of(content, first), b"", 0
        for number in range(first, min(first + count, self.lines)):
            feed = part.find(b"\n", begin - part_at)
            if feed < 0:
                part_at, part = begin, content[begin : begin + CHUNK]
                feed = part.find(b"\n")
            end = part_at + feed if feed >= 0 else self._feed(content, number + 1)
            yield IndexedLine.of(number, content, begin, end)
            begin = end + 1

    def search(self, content: Content, text: bytes, first: int) -> Iterator[IndexedLine]:
        """The lines from `first` that contain the text; upper and lower case of ASCII letters are the same.

        Nothing before the chunk with `first` is read.
        """
        text, place = text.lower(), self._start_of(content, first)
        for start in range(place - place % CHUNK, self.size, READ_AT_ONCE):
            # A match may reach into the next part.
            part = content[start : start + READ_AT_ONCE + len(text) - 1]
            lowered, number, counted = part.lower(), self.before[start // CHUNK], 0
            while (found := lowered.find(text, max(0, place - start))) >= 0:
                number, counted = number + part.count(b"\n", counted, found), found
                begin, feed = part.rfind(b"\n", 0, found) + 1, part.find(b"\n", found)
                if begin and feed >= 0:
                    yield IndexedLine.of(number, part, begin, feed)
                    place = start + feed + 1
                else:
                    yield from self.page(content, number, 1)
                    place = self._start_of(content, number + 1)

    def _start_of(self, content: Content, line: int) -> int:
        return min(self._feed(content, line) + 1, self.size) if line > 0 and self.size else 0

    def _feed(self, content: Content, number: int) -> int:
        """The place of this line feed, counted from 1; the end of the output if it has fewer."""
        chunk = bisect_right(self.before, number - 1) - 1
        part, place = content[chunk * CHUNK : (chunk + 1) * CHUNK], -1
        for _ in range(number - self.before[chunk]):
            place = part.find(b"\n", place + 1)
            if place < 0:
                return self.size
        return chunk * CHUNK + place
