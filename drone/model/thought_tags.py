"""Separates thoughts from the text of a streamed answer: many endpoints leave them in it, in tags such as `<think>`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from drone.model.actions import FenceReader

_TAG = re.compile(r"(?i:</?(?:\w{1,10}:)?(?:think(?:ing)?|thoughts?|reasoning)>)|◁/?think▷|\[/?THINK\]")
_PARTIAL = re.compile(r"[<◁\[][^\s<◁\[]{0,24}\Z")
_LONGEST_PARTIAL = 25
_LONGEST_LINE = 1_000
"""Characters of a line that are kept to judge the tags in it."""
_SENTENCE_ENDS = (".", "!", "?", "…", ")", "*", '"', "”")
_CONTINUES = re.compile(r"[ ][a-z]")

Kind = Literal["text", "thinking"]


class ThoughtTags:
    """The text of one answer, piece by piece.

    Tags count where a template puts them: an opening one at the beginning of a line or after a sentence, and its
    closing one. A closing one without an opening one ends a thought that began with the answer: the endpoint had put
    the opening one into the question. A tag in code or within a sentence is text.
    """

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thoughts: list[list[str]] = []
        self._held = ""
        """The end of the last piece, which may be the beginning of a tag."""
        self._fence = FenceReader()
        self._line = ""
        """The line of text so far."""
        self._opened = ""
        """The tag of the thought that is not closed yet."""
        self._begins_line = False
        self._quoted = False
        """An opening tag was text; so is the closing one that follows."""

    @property
    def text(self) -> str:
        text = "".join(self._text)
        return text.lstrip() if self._thoughts else text

    @property
    def thoughts(self) -> str:
        """All thoughts, with blank lines in between."""
        return "\n\n".join(filter(None, ("".join(thought).strip() for thought in self._thoughts)))

    def feed(self, piece: str) -> Iterator[tuple[Kind, str]]:
        """Add a piece, and yield what is certain by now, as text or as thinking."""
        pending = self._held + piece
        self._held = ""
        at = 0
        while tag := _TAG.search(pending, at):
            if tag.end() == len(pending):
                break  # what follows the tag decides
            yield from self._taken(pending[at : tag.start()])
            yield from self._tagged(tag[0], pending[tag.end()])
            at = tag.end()
        held = tag or _PARTIAL.search(pending, max(at, len(pending) - _LONGEST_PARTIAL))
        certain = held.start() if held else len(pending)
        self._held = pending[certain:]
        yield from self._taken(pending[at:certain])

    def end(self) -> Iterator[tuple[Kind, str]]:
        """Add what was held back, and judge a thought that was not closed: within a sentence its tag was text."""
        held, self._held = self._held, ""
        yield from self._tagged(held, "") if _TAG.fullmatch(held) else self._taken(held)
        if self._opened and (not self._begins_line or _CONTINUES.match("".join(self._thoughts[-1])[:2])):
            self._text += (self._opened, *self._thoughts.pop())
        self._opened = ""

    def _taken(self, piece: str) -> Iterator[tuple[Kind, str]]:
        if not piece:
            return
        if self._opened:
            self._thoughts[-1].append(piece)
            yield "thinking", piece
            return
        self._text.append(piece)
        first, *others = piece.split("\n")
        self._line += first
        for line in others:
            self._fence.take(self._line)
            self._line = line
        if len(self._line) > 2 * _LONGEST_LINE:
            self._line = "…" + self._line[-_LONGEST_LINE:]
        yield "text", piece

    def _tagged(self, tag: str, following: str) -> Iterator[tuple[Kind, str]]:
        closes = "/" in tag
        if self._opened and closes and following != "`":
            self._opened = ""
        elif self._opened:
            yield from self._taken(tag)
        elif closes and self._closes(following):
            # All text so far was a thought.
            self._thoughts.append(self._text)
            self._text, self._line = [], ""
        elif not closes and self._opens():
            self._opened, self._begins_line = tag, not self._line.strip()
            self._thoughts.append([])
        else:
            self._quoted = not closes
            yield from self._taken(tag)

    def _opens(self) -> bool:
        if self._in_code():
            return False
        before = self._line.rstrip()
        return not before or before.endswith(_SENTENCE_ENDS)

    def _closes(self, following: str) -> bool:
        if self._quoted or self._in_code() or (following and following in ".,;:!?)]'\"`"):
            return False
        before = self._line.rstrip()
        if before != self._line and before:
            return before.endswith(_SENTENCE_ENDS)
        return not before.endswith(("(", "[", "'", '"', "`"))

    def _in_code(self) -> bool:
        indented = self._line.startswith(("    ", "\t")) and not self._line.strip()
        return bool(self._fence.mark) or indented or len(re.findall("`+", self._line)) % 2 == 1
