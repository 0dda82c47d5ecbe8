"""A terminal in memory: what a program writes to it is what a person sees, colors and scrolled lines included."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import pyte

from tests.support import warm_processes

_SCROLLED = 5_000
_OWN = re.compile(r"\x1b\[(?:0|1|2|3[1-6]|9[0-7]|1;3[1-6]|2;3[1-6])?m|\x1b\[\d+A|\x1b\[2K|\x1b\[\?25[lh]|\r(?=\n|\x1b)")
"""What our command lines send themselves: their colors, and what redraws the status line."""
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)


class _Screen(pyte.HistoryScreen):
    """Shows faint text, which pyte does not know, in bright black, as some terminals do."""

    def select_graphic_rendition(self, *attributes: int, **options: Any) -> None:
        seen: list[int] = []
        left = list(attributes)
        while left:
            if left[0] in {38, 48}:
                # A color by number or by its parts, in which a 2 means something else.
                many = 3 if left[1:2] == [5] else 5
                seen, left = [*seen, *left[:many]], left[many:]
            else:
                first = left.pop(0)
                seen.append(90 if first == 2 else first)
        super().select_graphic_rendition(*seen, **options)


class Terminal:
    """The master's end of a pseudo-terminal, and a screen that interprets what arrives there."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.screen = _Screen(columns, rows, history=_SCROLLED, ratio=0.5)
        self.raw = b""
        self._stream = pyte.ByteStream(self.screen)
        self._master, self._slave = pty.openpty()
        self._lock = threading.Lock()
        self._size(columns, rows)
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    @property
    def slave(self) -> int:
        """The file descriptor of the program's end."""
        return self._slave

    def resize(self, columns: int, rows: int) -> None:
        """As a person does with the mouse: the programs get SIGWINCH."""
        with self._lock:
            self.screen.resize(rows, columns)
        self._size(columns, rows)

    def types(self, keys: str) -> None:
        """Send keys; `\\x03` is Ctrl-C, `\\x1a` is Ctrl-Z."""
        os.write(self._master, keys.encode())

    @property
    def rows(self) -> list[list[pyte.screens.Char]]:
        """The cells of all lines, from the first that scrolled away to the last on the screen."""
        with self._lock:
            visible = [self.screen.buffer[y] for y in range(self.screen.lines)]
            return [[row[x] for x in range(self.screen.columns)] for row in [*self.screen.history.top, *visible]]

    @property
    def lines(self) -> list[str]:
        """The text of all lines, without trailing spaces and empty lines at the end."""
        text = ["".join(cell.data for cell in row).rstrip() for row in self.rows]
        while text and not text[-1]:
            text.pop()
        return text

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def close(self) -> None:
        """End it once everything that was written has been read."""
        os.close(self._slave)
        self._reader.join(timeout=60)
        os.close(self._master)

    def _size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            if not data:
                return
            with self._lock:
                self.raw += data
                self._stream.feed(data)


@contextmanager
def terminal(columns: int = 80, rows: int = 24) -> Iterator[tuple[Terminal, TextIO]]:
    """A terminal, and a stream for this process to write to it; after the block everything written is on the screen."""
    shown = Terminal(columns, rows)
    with os.fdopen(os.dup(shown.slave), "w", encoding="utf-8") as stream:
        yield shown, stream
    shown.close()


@contextmanager
def running(
    command: Sequence[str], environ: Mapping[str, str], *, columns: int = 80, rows: int = 24
) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    """A program whose input and output are a new terminal; killed at the end of the block if it still runs."""
    shown = Terminal(columns, rows)
    process = warm_processes.popen(
        command,
        stdin=shown.slave,
        stdout=shown.slave,
        stderr=shown.slave,
        # They would override the size of the terminal; no shell exports them.
        env={name: value for name, value in environ.items() if name not in {"COLUMNS", "LINES"}},
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    try:
        yield shown, process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=60)
        shown.close()


def _take_terminal() -> None:
    """Make stdin's terminal the one whose Ctrl-C and Ctrl-Z this process gets."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def acting(written: str) -> list[str]:
    """What of a text acts on a terminal or hides something from its reader, apart from what we send ourselves."""
    return re.findall(f"{_HIDDEN.pattern}.{{,12}}", _OWN.sub("", written))
