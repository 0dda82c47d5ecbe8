"""add_comment: the only way for an agent to write to the thread of its task (S-065)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from drone.agent.values import ToolResult
from drone.tools.arguments import AddCommentArguments
from drone.tools.wrong_use import WrongUse
from shared.blobs import MAX_EVENT, sealed_size
from shared.events import CommentStep

NAME = "add_comment"
MAX_COMMENT = 100_000
"""Characters; longer texts belong in a file (S-072)."""


class AddComment:
    """Records each comment once and permanently, as soon as it is called.

    A comment does not wait for the end of its step: people read it while the agent continues. So it stays when the step
    is cut off, and the resumed run may write the same text again, which is not recorded a second time.
    """

    def __init__(self, record: Callable[[CommentStep], object], unseen: Iterable[str] = ()) -> None:
        """`unseen`: comments of earlier runs of this turn that the conversation does not show."""
        self._record = record
        self._unseen = Counter(map(str.strip, unseen))
        self.written = 0
        """Number of comments written by this run."""

    def __call__(self, call: AddCommentArguments) -> ToolResult:
        text = call.message.strip()
        if not text:
            raise WrongUse("add_comment: the message is empty; write what the others need to know")
        if self._unseen[text]:
            self._unseen[text] -= 1
            return ToolResult("this comment is already in the thread, from before the run was interrupted")
        step = CommentStep(text=text, to_task=True)
        if len(text) > MAX_COMMENT or sealed_size(step.model_dump_json()) > MAX_EVENT:
            raise WrongUse(
                f"add_comment: {len(text):,} characters are too long for a comment; write them to a file in the "
                "repository, and a comment with its path and a summary"
            )
        self._record(step)
        self.written += 1
        return ToolResult(f"comment {self.written} of this turn is in the thread")
