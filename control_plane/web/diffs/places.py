"""Where comments stand in a diff: below the last of their lines, or at the top of their file."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from markupsafe import Markup

from control_plane.contract.declarations.reviews import ReviewCommentDocument
from control_plane.core.patches.patch import FilePatch
from control_plane.web.diffs.code_text import attribute
from control_plane.web.diffs.following import Follower, Standing
from control_plane.web.diffs.labels import path_key, section_id
from control_plane.web.diffs.shown import ShownFile

Side = Literal["old", "new"]
MOST_FORMS = 20
_WRITTEN = re.compile(r"([0-9a-f]{8})(?::(old|new):(\d{1,8})(?:-(\d{1,8}))?)?")
_KEYED = re.compile(r"([0-9a-f]{8})\.(?:file|(old|new)\.(\d{1,8})(?:-(\d{1,8}))?)")


@dataclass(frozen=True)
class CommentPlace:
    """A file of a patch, or some of its lines."""

    index: int
    path: str
    side: Side = "new"
    start: int | None = None
    """None: the whole file."""
    end: int | None = None
    section: str = ""
    """The id of the file's part of the page."""

    @property
    def file(self) -> str:
        """The key of the file: another turn, or the next report of a running one, may change files before it."""
        return path_key(self.path)

    @property
    def id(self) -> str:
        """The id of its form on the page."""
        return f"c-{self.file}-{self.side}-{self.start}" if self.start else f"c-{self.file}"

    @property
    def key(self) -> str:
        """What it is called in the subject of a draft."""
        if not self.start:
            return f"{self.file}.file"
        return f"{self.file}.{self.side}.{self.start}{f'-{self.end}' if self.end != self.start else ''}"

    @property
    def attribute(self) -> Markup:
        return attribute(self.path)


@dataclass(frozen=True)
class Thread:
    """A comment with the replies to it."""

    comment: ReviewCommentDocument
    replies: Sequence[ReviewCommentDocument] = ()
    standing: Standing = field(default_factory=Standing)

    @property
    def last(self) -> ReviewCommentDocument:
        return self.replies[-1] if self.replies else self.comment

    @property
    def is_settled(self) -> bool:
        """Whether the agent did what it asks for, or said why not, and its author did not reply."""
        return self.last.status in {"done", "declined"}


@dataclass(frozen=True)
class CommentForm:
    """A form that is open, with what was typed into it."""

    place: CommentPlace
    text: str = ""


@dataclass
class PlacedComments:
    """The threads and open forms of a page, by where they stand."""

    _threads: dict[tuple[int, str, int], list[Thread]] = field(default_factory=lambda: defaultdict(list))
    _forms: dict[tuple[int, str, int], list[CommentForm]] = field(default_factory=lambda: defaultdict(list))
    elsewhere: list[Thread] = field(default_factory=list)
    """About files that the patch does not change any more."""
    in_files: dict[int, list[Thread]] = field(default_factory=lambda: defaultdict(list))
    """All threads of each file, by their lines."""

    def threads(self, index: int, places: Iterable[tuple[str, int]]) -> list[Thread]:
        """Below the row with these lines."""
        return [each for side, line in places for each in self._threads.get((index, side, line), ())]

    def forms(self, index: int, places: Iterable[tuple[str, int]]) -> list[CommentForm]:
        """Below the row with these lines."""
        return [each for side, line in places for each in self._forms.get((index, side, line), ())]

    def add(self, index: int, side: str, line: int, found: Thread | CommentForm) -> None:
        """Put a thread or a form below a line; line 0 is the top of the file."""
        key = index, side if line else "new", line
        if isinstance(found, Thread):
            self._threads[key].append(found)
        else:
            self._forms[key].append(found)


TOP = (("new", 0),)
"""The place of what is about a whole file, or about lines that are not shown."""


def placed(
    shown: Sequence[ShownFile], threads: Sequence[Thread], forms: Sequence[CommentForm], follower: Follower
) -> PlacedComments:
    """Put each thread and each form where it belongs among what is shown."""
    found = PlacedComments()
    lines = {each.file.index: each.places for each in shown}
    for thread in threads:
        comment = thread.comment
        file = follower.files.get(comment.path)
        if file is None:
            found.elsewhere.append(replace(thread, standing=Standing(0, "gone")))
            continue
        standing = follower.standing(comment)
        standing_thread, index = replace(thread, standing=standing), file.index
        is_shown = (comment.side, standing.line) in lines.get(index, ())
        found.add(index, comment.side, standing.line if is_shown else 0, standing_thread)
        found.in_files[index].append(standing_thread)
    for of_file in found.in_files.values():
        of_file.sort(key=lambda thread: thread.standing.line)
    for form in forms:
        place = form.place
        line = place.end or place.start or 0
        found.add(place.index, place.side, line if (place.side, line) in lines.get(place.index, ()) else 0, form)
    return found


def threads_of(comments: Sequence[ReviewCommentDocument]) -> list[Thread]:
    """Comments with their replies, oldest first."""
    ids = {each.id for each in comments}
    replies: dict[str, list[ReviewCommentDocument]] = defaultdict(list)
    roots = []
    above: dict[str, str] = {}
    for each in comments:
        if each.parent in ids:
            above[each.id] = above.get(each.parent or "", each.parent or "")
            replies[above[each.id]].append(each)
        else:
            roots.append(each)
    return [Thread(each, replies[each.id]) for each in roots]


def place_written(written: str, files: Sequence[FilePatch]) -> CommentPlace | None:
    """The place that an address names: `KEY`, `KEY:new:41`, `KEY:new:41-45`; None for nonsense."""
    return _place(_WRITTEN.fullmatch(written), files)


def place_keyed(key: str, files: Sequence[FilePatch]) -> CommentPlace | None:
    """The place with this `CommentPlace.key`."""
    return _place(_KEYED.fullmatch(key), files)


def _place(found: re.Match[str] | None, files: Sequence[FilePatch]) -> CommentPlace | None:
    key, side, start, end = found.groups() if found else ("", None, None, None)
    of_path = [each for each in files if path_key(each.path) == key]
    if not of_path:
        return None
    # A file that became a symlink is in the patch twice: as it was deleted, then as it was added.
    file = of_path[0 if side == "old" else -1]
    place = CommentPlace(file.index, file.path, section=section_id(file))
    if not start or not int(start):
        return place
    first = int(start)
    return replace(place, side="old" if side == "old" else "new", start=first, end=max(first, int(end or first)))
