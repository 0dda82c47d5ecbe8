"""A review as one message to the agent: plain text, in which quoted lines cannot pass for the form around them.

Every line of a comment, of code and of a path is foreign: it follows `| `, or is on one line with its label, so that no
text begins a line of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from control_plane.db.reviews import ReviewComment
from shared.visible_text import visible

SHORT_ID = 6
MAX_QUOTED = 40
"""Lines of code that are quoted of one comment."""
_LONGEST_LINE = 400
_HEAD = """\
Answer each comment once with the tool answer_review, by its id: done if your work has what it asks for, declined with \
the reason, or asks with a question. Without that tool, answer them in your last message. \
Lines after "| " are quoted."""


def review_message(
    order_id: str, comments: Sequence[ReviewComment], text: str, parents: Mapping[str, ReviewComment]
) -> str:
    """The message. `text` is about the whole review, and may be empty; `parents`: the comments that are replied to."""
    count = "1 comment" if len(comments) == 1 else f"{len(comments)} comments"
    parts = [f"Review of the work of order {order_id}: {count}.", _HEAD]
    if text.strip():
        parts.append(_labeled("About the whole review:", text))
    parts += [_comment(each, parents.get(each.parent_id or "")) for each in comments]
    return "\n\n".join([*parts, "=== end of the review"])


def _comment(comment: ReviewComment, parent: ReviewComment | None) -> str:
    parts = [f"=== comment {comment.id[:SHORT_ID]}", f"file: {_on_one_line(comment.path)}"]
    if comment.start_line is not None:
        parts.append(f"lines: {place_of(comment)} ({comment.side} side of the diff)")
    if comment.commit:
        parts.append(f"commit: {comment.commit[:12]}")
    if comment.quote:
        parts.append(_labeled("code:", _cut(comment.quote)))
    if parent is not None:
        parts.append(_labeled(f"in reply to your answer to comment {parent.id[:SHORT_ID]}:", parent.answer or ""))
    return "\n".join([*parts, _labeled("text:", comment.text)])


def place_of(comment: ReviewComment) -> str:
    """The lines: `3-9`, or `3`; empty for the whole file."""
    if comment.start_line is None:
        return ""
    same = comment.end_line in {None, comment.start_line}
    return str(comment.start_line) if same else f"{comment.start_line}-{comment.end_line}"


def _labeled(label: str, text: str) -> str:
    # splitlines also ends a line at the rarer separators, which a model may take for one.
    return "\n".join([label, *(f"| {visible(line)}".rstrip() for line in text.splitlines() or [""])])


def _cut(quote: str) -> str:
    lines = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} […]" for line in quote.split("\n")]
    more = [f"[… {len(lines) - MAX_QUOTED} more lines]"] if len(lines) > MAX_QUOTED else []
    return "\n".join([*lines[:MAX_QUOTED], *more])


def _on_one_line(text: str) -> str:
    return visible(text.replace("\n", "␊"))
