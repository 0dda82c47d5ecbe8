"""answer_review: how the agent answers each comment of a review, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from drone.agent.values import ToolResult
from drone.tools.arguments import AnswerReviewArguments
from drone.tools.wrong_use import WrongUse
from shared.events import ReviewAnswerStep
from shared.redaction import cut_short
from shared.work_order import CarriedComment

NAME = "answer_review"
MAX_TEXT = 10_000
"""Characters."""
SHORT_ID = 6
_SHORTEST_ID = 4


class AnswerReview:
    """Records one answer for each comment that the conversation carries."""

    def __init__(
        self,
        record: Callable[[ReviewAnswerStep], object],
        carried: Iterable[CarriedComment] = (),
        arrived: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`carried`: comments in the conversation so far. `arrived` returns those in messages since the run began."""
        self._record = record
        self._answered = {each.id: each.answered for each in carried}
        self._arrived = arrived

    @property
    def offered(self) -> bool:
        """Whether the conversation carries a review."""
        return bool(self._comments())

    def __call__(self, call: AnswerReviewArguments) -> ToolResult:
        comment, text = self._found(call.comment), call.text.strip()
        if not text and call.verdict != "done":
            what = "the reason" if call.verdict == "declined" else "the question"
            raise WrongUse(f"{NAME}: with the verdict {call.verdict}, `text` must say {what}")
        if len(text) > MAX_TEXT:
            raise WrongUse(f"{NAME}: the text has {len(text):,} characters; {MAX_TEXT:,} are allowed")
        # Recorded first: an answer that is in the journal counts, even if the run ends here.
        self._record(ReviewAnswerStep(comment=comment, verdict=call.verdict, text=text))
        self._answered[comment] = True
        left = [_short(each) for each, answered in self._comments().items() if not answered]
        return ToolResult(f"comment {_short(comment)} is {call.verdict}; {_left(left)}")

    def _found(self, given: str) -> str:
        """The comment's id. Raises WrongUse for an unknown or answered comment."""
        comments, wanted = self._comments(), given.strip().lower()
        found = [each for each in comments if len(wanted) >= _SHORTEST_ID and each.startswith(wanted)]
        open_ones = [_short(each) for each, answered in comments.items() if not answered]
        if len(found) != 1:
            shown = cut_short(given.strip(), 40)
            raise WrongUse(f"{NAME}: there is no review comment {shown!r}; {_left(open_ones)}")
        if comments[found[0]]:
            raise WrongUse(f"{NAME}: comment {_short(found[0])} already has an answer, which stays; {_left(open_ones)}")
        return found[0]

    def _comments(self) -> dict[str, bool]:
        for each in self._arrived():
            self._answered.setdefault(each, False)
        return self._answered


def _short(comment: str) -> str:
    return comment[:SHORT_ID]


def _left(comments: Sequence[str]) -> str:
    return f"not answered yet: {', '.join(comments)}" if comments else "all comments are answered"
