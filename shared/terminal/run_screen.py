"""A run on the screen as it happens: lines that stay, and on a terminal, below them, what is in progress."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Self, TextIO

from shared.terminal.output import Style, console, only_colored, paint, printable, say, write
from shared.terminal.step_lines import Lines, output_lines, text_lines, thinking_lines

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.text import Text

Spoken = Literal["text", "thinking"]
TAIL_LINES = 5
"""Lines of the running call's output."""
_TAIL_CHARACTERS = 8_000
_SECONDS = 0.25
"""Between two redraws."""
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class RunScreen:
    """Shows lines on `stream`; use as a context manager.

    The lines that stay are the same wherever one joins. On a terminal, text also appears as the model writes it, with
    the end of the running call's output and a status line below; in a pipe or on a dumb terminal there is only what
    stays.
    """

    def __init__(self, stream: TextIO, status: Callable[[], str] = str) -> None:
        """`status`: the text of the status line; called at each redraw."""
        self._stream = stream
        self._status = status
        self._console = console(stream)
        self._live: Live | None = None
        self._lock = threading.RLock()
        """Held for everything that is written: Rich computes where the cursor is before it writes, not with it."""
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._redraw_regularly, name="screen", daemon=True)
        self._message = _Message()
        self._call = ""
        self._tail = ""
        self._redraws = 0

    def __enter__(self) -> Self:
        if self._stream.isatty() and os.environ.get("TERM") != "dumb":
            self._live = self._started()
            self._clock.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._over.set()
            self._clock.join()
            self.cut()
            self._live.stop()

    def redraw(self) -> None:
        """Draw what is in progress anew; done regularly, and with every line that stays."""
        if self._live is not None:
            with self._lock:
                self._live.refresh()

    def lines(self, lines: Lines) -> None:
        """Show lines that stay."""
        if not lines:
            return
        painted = (paint(line, style, self._stream) if style else line for line, style in lines)
        text = only_colored("\n".join(painted)) + "\n"
        if self._live is None:
            write(self._stream, text)
            return
        from rich.text import Text

        with self._lock:
            self._console.print(Text.from_ansi(text.removesuffix("\n")), soft_wrap=True)
            self._live.refresh()

    def note(self, text: str) -> None:
        """A line about the display itself, such as a lost connection; not part of the output in a pipe."""
        if self._live is None:
            say(text)
        else:
            self.lines([(printable(text), "yellow")])

    def message(self, kind: Spoken, text: str) -> None:
        """Show a whole message of the model, as far as it is not on the screen already."""
        with self._lock:
            rest = self._message.rest(kind, text)
            if kind == "text":
                self._message = _Message()
            self.lines(rest)

    def piece(self, kind: Spoken, text: str, offset: int | None) -> None:
        """A piece of a message that the model is writing; `offset` as in `shared.events.Delta`."""
        if self._live is not None:
            with self._lock:
                self.lines(self._message.add(kind, text, offset))

    def cut(self) -> None:
        """The model's message has ended without being complete; what is on the screen of it stays."""
        with self._lock:
            broken_off, self._message = self._message.finished_line(), _Message()
            self.lines(broken_off)

    def running(self, call: str) -> None:
        """The call that runs now, as one line; empty if there is none."""
        with self._lock:
            if call != self._call:
                self._call, self._tail = call, ""

    def output(self, text: str) -> None:
        """A piece of the running call's output."""
        if self._live is not None:
            with self._lock:
                self._tail = (self._tail + text)[-_TAIL_CHARACTERS:]

    def _started(self) -> Live:
        from rich.live import Live

        live = Live(
            console=self._console,
            get_renderable=self._in_progress,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        live.start()
        # A cursor that stays visible needs no repair after Ctrl-Z or a kill.
        self._console.show_cursor(True)
        return live

    def _redraw_regularly(self) -> None:
        while not self._over.wait(_SECONDS):
            self.redraw()

    def _in_progress(self) -> RenderableType:
        from rich.console import ConsoleDimensions, Group

        screen = self._console
        # Rich asks stdin for the size; this is the one of the stream, also after a resize.
        screen.size = ConsoleDimensions(*os.get_terminal_size(self._stream.fileno()))
        self._redraws += 1
        with self._lock:
            rows = [
                row
                for line, style in self._message.unfinished()
                for row in self._styled(line, style).wrap(screen, max(1, screen.width - 1))
            ][-max(3, screen.height // 2) :]
            for line, style in self._below():
                row = self._styled(line, style)
                row.truncate(max(1, screen.width - 1), overflow="ellipsis")
                rows.append(row)
        return Group(*rows)

    def _below(self) -> Lines:
        """The running call with the end of its output, and the status line."""
        lines: Lines = []
        if self._call:
            lines = [(f"● {self._call}", "cyan"), *output_lines(self._tail, TAIL_LINES)]
        if status := self._status():
            lines.append((f"{_SPINNER[self._redraws % len(_SPINNER)]} {printable(status)}", "dim"))
        return lines

    def _styled(self, line: str, style: Style | None) -> Text:
        from rich.text import Text

        return Text.from_ansi(only_colored(paint(line, style, self._stream) if style else line))


class _Message:
    """The model's current message, as far as its pieces arrived: whole lines, then one that is unfinished."""

    def __init__(self) -> None:
        self._position = 0
        self._kind: Spoken = "thinking"
        self._unfinished = ""
        self._shown: dict[Spoken, list[str]] = {"thinking": [], "text": []}

    def add(self, kind: Spoken, text: str, offset: int | None) -> Lines:
        """The lines that this piece completes. A piece after one that is missing is left out: the step has it."""
        if offset is not None and offset != self._position:
            return []
        self._position += len(text)
        finished = self.finished_line() if kind != self._kind else []
        self._kind = kind
        *whole, self._unfinished = (self._unfinished + printable(text)).split("\n")
        return [*finished, *self._complete(whole)]

    def finished_line(self) -> Lines:
        """The unfinished line, as one that stays."""
        line, self._unfinished = self._unfinished, ""
        return self._complete([line])

    def unfinished(self) -> Lines:
        return _spoken(self._kind, [self._unfinished])

    def rest(self, kind: Spoken, text: str) -> Lines:
        """The lines of the whole message that are not shown yet; all of it if something else was shown."""
        whole = [line for line in printable(text).split("\n") if line.strip()]
        shown = self._shown[kind]
        if kind == self._kind:
            self._unfinished = ""
        if not shown:
            return thinking_lines(text) if kind == "thinking" else text_lines(text)
        return _spoken(kind, whole[len(shown) :] if whole[: len(shown)] == shown else whole)

    def _complete(self, lines: list[str]) -> Lines:
        lines = [line for line in lines if line.strip()]
        self._shown[self._kind] += lines
        return _spoken(self._kind, lines)


def _spoken(kind: Spoken, lines: list[str]) -> Lines:
    return [each for line in lines for each in (thinking_lines(line) if kind == "thinking" else text_lines(line))]
