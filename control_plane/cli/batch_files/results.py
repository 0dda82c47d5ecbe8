"""Writes the results of a batch: JSON lines, CSV, or predictions for SWE-bench."""

from __future__ import annotations

import csv
import io
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from control_plane.cli.batch_files.swebench import predictions
from shared.errors import Precondition
from shared.outcome import Verification
from shared.terminal.output import content_writer

Doc = dict[str, Any]
ResultForm = Literal["jsonl", "csv", "preds"]
COLUMNS = (
    "id",
    "state",
    "resolved",
    "status",
    "verified",
    "verification",
    "exit_status",
    "outcome",
    "order",
    "project",
    "model",
    "base_commit",
    "branch",
    "cost_usd",
    "steps",
    "duration_s",
    "reason",
    "patch",
)


def write_results(rows: Iterable[Doc], form: ResultForm, output: str) -> int:
    """Write the rows to the file `output`, or to stdout for `-`; returns how many. Raises Precondition.

    A file gets its name when it is complete.
    """
    counted = _CountedRows(rows)
    pieces = {"jsonl": _as_lines, "csv": _as_csv, "preds": _as_predictions}[form](counted)
    if output == "-":
        writer = content_writer()
        for piece in pieces:
            writer(piece)
    else:
        _into(Path(output).expanduser(), pieces)
    return counted.number


class _CountedRows:
    def __init__(self, rows: Iterable[Doc]) -> None:
        self._rows = rows
        self.number = 0

    def __iter__(self) -> Iterator[Doc]:
        for row in self._rows:
            self.number += 1
            verified = row["verification"] == Verification.VERIFIED
            yield {**row, "status": row["state"], "verified": verified, "duration_s": row["duration_ms"] / 1000}


def _as_lines(rows: Iterable[Doc]) -> Iterator[bytes]:
    for row in rows:
        yield json.dumps({name: row.get(name) for name in COLUMNS}).encode() + b"\n"


def _as_csv(rows: Iterable[Doc]) -> Iterator[bytes]:
    yield _csv_line(COLUMNS)
    for row in rows:
        yield _csv_line([row.get(name) for name in COLUMNS])


def _csv_line(values: Iterable[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue().encode()


def _as_predictions(rows: Iterable[Doc]) -> Iterator[bytes]:
    yield json.dumps(predictions(list(rows)), indent=2).encode() + b"\n"


def _into(path: Path, pieces: Iterable[bytes]) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for piece in pieces:
                file.write(piece)
        draft.replace(path)
    except OSError as error:
        raise Precondition(f"{str(path)!r} cannot be written", code="E-FILE", why=str(error)) from error
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
