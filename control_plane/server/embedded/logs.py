"""The logs of the parts of `fleet up`: their files, their last lines, and their rotation (S-108)."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from control_plane.server.embedded.data_dir import DataDir

LARGEST = 10 * 1000 * 1000
"""Bytes from which a log is rotated (S-108)."""
KEPT = 5
"""Files of one log, including the current one (S-108)."""
_BLOCK = 64 * 1024
_EVERY = 0.3


def logs_of(data: DataDir) -> dict[str, Path]:
    """The current log of each part, by name; parts that have ended included."""
    return {_part(path.stem): path for path in sorted(data.logs.glob("*.log"))}


def last_lines(path: Path, count: int) -> str:
    """The last `count` lines; control characters are as the part wrote them."""
    if count == 0:
        return ""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        text = b""
        while end > 0 and text.count(b"\n") <= count:
            begin = max(0, end - _BLOCK)
            file.seek(begin)
            text = file.read(end - begin) + text
            end = begin
    return "\n".join(text.decode(errors="replace").splitlines()[-count:])


def new_lines(logs: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """What each part writes from now on, as whole lines, without end; a rotated log continues from its beginning."""
    # Not in the generator, which would look at the sizes only when the first line is asked for.
    return _new_lines(logs, {name: path.stat().st_size for name, path in logs.items()})


def _new_lines(logs: Mapping[str, Path], places: dict[str, int]) -> Iterator[tuple[str, str]]:
    while True:
        for name, path in logs.items():
            try:
                with path.open("rb") as file:
                    if path.stat().st_size < places[name]:
                        places[name] = 0
                    file.seek(places[name])
                    whole = file.read().rpartition(b"\n")[0]
            except FileNotFoundError:
                # Somebody removed it; the part begins a new one when it is started again.
                places[name], whole = 0, b""
            if whole:
                places[name] += len(whole) + 1
                yield name, whole.decode(errors="replace")
        time.sleep(_EVERY)


def rotate(path: Path, largest: int = LARGEST, kept: int = KEPT) -> bool:
    """Move a log over `largest` bytes to `<name>.log.1`, the older ones by one number each; whether it was moved.

    The part keeps writing to the same file, so its content is copied and then removed; it was opened for appending.
    Lines written between the two are lost: a part that writes that fast has written 10 MB of the same. Raises OSError
    if there is no room for the copy, for example; the log and the older ones are as before then.
    """
    if not path.exists() or path.stat().st_size <= largest:
        return False
    draft = _numbered(path, 0)
    try:
        shutil.copyfile(path, draft)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    for number in range(kept - 1, 1, -1):
        with suppress(FileNotFoundError):
            _numbered(path, number - 1).replace(_numbered(path, number))
    draft.replace(_numbered(path, 1))
    os.truncate(path, 0)
    return True


def _part(stem: str) -> str:
    return {"valkey": "broker", "serve": "server"}.get(stem, stem.removeprefix("drone-"))


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
