"""The tools that a model may call: read, write, edit, run a command, submit.

`build_toolbox` returns the tools of a mode; each call is checked by a pydantic model, and wrong use is answered with
one sentence that says how to fix the call.
"""

from __future__ import annotations

from drone.tools.answer_review import AnswerReview
from drone.tools.telling import AddComment, Remember
from drone.tools.toolbox import Tools, build_toolbox
from drone.tools.wrong_use import WrongUse

__all__ = ["AddComment", "AnswerReview", "Remember", "Tools", "WrongUse", "build_toolbox"]
