"""The full log of an order: the outputs of all its calls and checks, one after the other, with numbers that stay true.

Outputs are only ever added at the end, so a line keeps its number.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.core import Caller, Core
from control_plane.db.engine import pause
from control_plane.db.runs import Blob, Step
from control_plane.operations.orders.log_lines import LineIndex, Source, found_in, opened
from control_plane.operations.orders.removed import no_longer_stored
from control_plane.operations.orders.step_reading import own_order
from shared.errors import NotFound

MOST_MATCHES = 200
REMEMBERED = 64
"""Orders whose index is kept in memory."""
BATCH = 500
KINDS = ("tool_call", "tool_result", "verify")


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


@dataclass(frozen=True)
class Matches:
    """What a search found."""

    lines: list[LogLine]
    more: bool
    """There are further ones after these."""


_known: OrderedDict[str, OrderLog] = OrderedDict()
_lock = threading.Lock()


def log_of_order(core: Core, caller: Caller, order_id: str) -> OrderLog:
    """The parts of the log. Raises NotFound."""
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        with _lock:
            log = _known.setdefault(order.id, OrderLog())
            _known.move_to_end(order.id)
            while len(_known) > REMEMBERED:
                _known.popitem(last=False)
            if order.step_count < log.seq or not _is_stored(db, core, order.id, log):
                # The retention removed some of it; or another database behind the same process, as in a test.
                log = _known[order.id] = OrderLog()
            _extend(db, core, order.id, log)
            return OrderLog(list(log.parts), dict(log.calls), log.seq)


def lines_of(core: Core, caller: Caller, order_id: str, part: LogPart, numbers: range) -> list[LogLine]:
    """Lines of one part, by their numbers in the order's log. Raises NotFound."""
    with core.database.read() as db, _source(db, core, own_order(db, caller, order_id).id, part) as source:
        found = part.index.page(source, numbers.start - part.first, len(numbers))
        return [LogLine(numbers.start + n, _text(line), left_out) for n, (line, left_out) in enumerate(found)]


def search(core: Core, caller: Caller, order_id: str, text: str, after: int = 0) -> Matches:
    """The first lines after `after` that contain the text. Raises NotFound."""
    log = log_of_order(core, caller, order_id)
    found: list[LogLine] = []
    with core.database.read() as db:
        own_order(db, caller, order_id)
        for part in log.parts:
            if part.last <= after:
                continue
            with _source(db, core, order_id, part) as source:
                found += _found(source, part, text.encode(), after, MOST_MATCHES + 1 - len(found))
            if len(found) > MOST_MATCHES:
                break
    return Matches(found[:MOST_MATCHES], len(found) > MOST_MATCHES)


def _found(source: Source, part: LogPart, wanted: bytes, after: int, most: int) -> list[LogLine]:
    found: list[LogLine] = []
    for place in found_in(source, wanted):
        line = part.index.line_at(source, place)
        if part.first + line <= after:
            continue
        if len(found) >= most:
            break
        (text, left_out), *_ = part.index.page(source, line, 1)
        found.append(LogLine(part.first + line, _text(text), left_out))
    return found


def _is_stored(db: Db, core: Core, order_id: str, log: OrderLog) -> bool:
    """Whether the files and the steps that the index was made of are still there."""
    pause(db)
    if not all(core.blobs.has(part.sha256) for part in log.parts if part.sha256 is not None):
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
        with core.blobs.on_disk(str(sha256)) as path, opened(path) as source:
            index = LineIndex.of(source)
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


@contextmanager
def _source(db: Db, core: Core, order_id: str, part: LogPart) -> Iterator[Source]:
    if part.sha256 is None:
        body = db.scalar(select(Step.body).where(Step.order_id == order_id, Step.seq == part.seq))
        yield _inline(body or {})
        return
    pause(db)
    with ExitStack() as stack:
        try:
            path = stack.enter_context(core.blobs.on_disk(part.sha256))
        except NotFound as error:
            raise no_longer_stored(f"the log of step {part.seq}", "FLEET_KEEP_LOGS_DAYS", order_id) from error
        yield stack.enter_context(opened(path))


def _inline(body: dict[str, Any]) -> bytes:
    return str(body.get("output", "")).encode("utf-8", "replace")


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
