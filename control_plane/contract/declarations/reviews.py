"""Reviews: comments on the diff of an order, which the agent answers one by one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from control_plane.contract.declarations.operation import (
    ADDS,
    ADDS_WORK,
    ENDS,
    READS,
    About,
    Command,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.contract.declarations.orders import NAMES as OF_ORDER
from control_plane.contract.documents.base import Document, Request
from control_plane.contract.documents.orders import OrderSummary

MAX_LINE = 10_000_000
COMMENT_ID = About("comment", "The comment's id, or a unique prefix of it.")
NAMES = {**OF_ORDER, "comment_id": Annotated[str, Field(max_length=64), COMMENT_ID]}
TEXT = About("text", "What to say about the lines.")
FILE = About("file", "Path of the file in the repository.", flag="--file")
LINE = About("line", "First line, as numbered on that side of the diff.", absent="the whole file", flag="--line")
END_LINE = About("end line", "Last line.", absent="the first line", flag="--end-line")
PARENT = About("parent", "Id of a sent comment that this one replies to, in place of file and lines.", flag="--parent")
PATCH = About("patch", "SHA-256 of the patch with these line numbers.", absent="the newest", flag="--patch")
Status = Literal["pending", "sent", "done", "declined", "asks"]


class ReviewCommentRequest(Request):
    """Either a file, with or without lines, or the comment that this one replies to."""

    text: Annotated[str, TEXT]
    path: Annotated[str | None, FILE] = Field(None, max_length=4096)
    side: Annotated[
        Literal["old", "new"], About("side", "Side of the diff: old or new.", flag="--side", absent="new")
    ] = "new"
    start_line: Annotated[int | None, LINE] = Field(None, ge=1, le=MAX_LINE)
    end_line: Annotated[int | None, END_LINE] = Field(None, ge=1, le=MAX_LINE)
    parent: Annotated[str | None, PARENT] = Field(None, max_length=64)
    patch: Annotated[str | None, PATCH] = Field(None, pattern="^[0-9a-f]{64}$")


class ReviewCommentEdit(Request):
    text: Annotated[str, TEXT]


class ReviewFilter(Request):
    status: Annotated[Status | None, About("status", "Only comments with this status.", absent="all")] = None


class SendReviewRequest(Request):
    text: Annotated[str, About("text", "What to say about the review as a whole.", flag="--text")] = ""


class ReviewCommentDocument(Document):
    id: Annotated[str, About("comment")]
    order: str
    """The order whose result it is about."""
    user: Annotated[str, About("user")]
    mine: bool
    """You wrote it: while it is pending, only you see it, and can edit or remove it."""
    place: Annotated[str, About("place")]
    """`calc.py:3-9`, with `(old)` for the old side."""
    path: str
    side: Literal["old", "new"]
    start_line: int | None
    """Null: the whole file."""
    end_line: int | None
    quote: str
    """The lines, each with its sign in the diff."""
    commit: str | None
    """The head commit of the result that it is about."""
    parent: str | None
    status: Annotated[Status, About("status")]
    """`sent`: no answer so far. The agent answers with `done`, `declined` or `asks`."""
    text: Annotated[str, About("text")]
    answer: Annotated[str | None, About("answer")]
    """What the agent says: for `declined` the reason, for `asks` its question."""
    done_commit: str | None
    """For `done`, once the work is delivered: the head commit in which the run ended."""
    created_at: datetime
    updated_at: datetime
    sent_at: datetime | None
    sent_to: str | None
    """The order whose agent received it."""
    answered_at: datetime | None
    answered_in: str | None
    """The order whose agent answered."""


ADD = Operation(
    name="add_review_comment",
    role="operator",
    route="POST /orders/{order_id}/review",
    names=OF_ORDER,
    status=201,
    errors=(404, 409, 413),
    request=ReviewCommentRequest,
    answer=ReviewCommentDocument,
    summary="Comment a file or lines of an order's diff",
    more="The comment is pending, and visible to you only, until the review is sent.",
    tool=Tool(
        "add_review_comment",
        "Comment lines of an order's diff",
        ADDS,
        "Add a comment to a file or some lines of the diff of an order's result (get_order has it as patch). It is "
        "pending until send_review sends all your pending comments to the agent at once. Requires the operator role.",
        about={
            "start_line": "First line, which the diff must show. Default: the whole file.",
            "end_line": "Last line. Default: start_line.",
        },
    ),
    command=Command(
        "review add",
        "Comment a file or lines of an order's diff; `fleet review send` sends all comments.",
        "fleet review add ORDER 'Use sum()' --file calc.py --line 4 --end-line 6",
        arguments=("text",),
        done="comment {id} on {place} is pending",
        then="  next  fleet review send {order}",
    ),
)
LIST = Operation(
    name="list_review",
    role="viewer",
    route="GET /orders/{order_id}/review",
    names=OF_ORDER,
    errors=(404,),
    request=ReviewFilter,
    answer=list[ReviewCommentDocument],
    summary="List the review comments on an order, oldest first",
    more="Other users' comments are listed once they are sent.",
    tool=Tool(
        "list_review",
        "List the review comments on an order",
        READS,
        "List the review comments on an order's result with their status: pending (yours, not sent), sent (no answer "
        "so far), done (with commit), declined (with reason), asks (with a question; reply with add_review_comment and "
        "parent).",
    ),
    command=Command(
        "review ls",
        "List the review comments on an order, with the agent's answers.",
        "fleet review ls ORDER --status asks",
        columns=("id", "place", "status", "user", "text", "answer"),
        empty="no review comments on this order",
    ),
)
EDIT = Operation(
    name="edit_review_comment",
    role="operator",
    route="PATCH /orders/{order_id}/review/{comment_id}",
    names=NAMES,
    errors=(404, 409, 413),
    request=ReviewCommentEdit,
    answer=ReviewCommentDocument,
    summary="Change the text of a pending review comment",
    tool=NoDoor("a program removes its pending comment and adds another one"),
    command=Command(
        "review edit",
        "Change the text of a pending comment.",
        "fleet review edit ORDER COMMENT 'Use sum(), please'",
        arguments=("text",),
        done="comment {id} on {place} is changed",
    ),
)
REMOVE = Operation(
    name="remove_review_comment",
    role="operator",
    route="DELETE /orders/{order_id}/review/{comment_id}",
    names=NAMES,
    errors=(404, 409),
    answer=ReviewCommentDocument,
    summary="Remove a pending review comment",
    tool=Tool(
        "remove_review_comment",
        "Remove a pending review comment",
        ENDS,
        "Remove a comment of yours that is not sent yet. list_review has the ids. Requires the operator role.",
    ),
    command=Command(
        "review rm",
        "Remove a pending comment.",
        "fleet review rm ORDER COMMENT",
        done="comment {id} on {place} is removed",
    ),
)
SEND = Operation(
    name="send_review",
    role="operator",
    route="POST /orders/{order_id}/review/send",
    names=OF_ORDER,
    errors=(404, 409, 412, 413),
    request=SendReviewRequest,
    answer=OrderSummary,
    summary="Send your pending review comments to the agent, as one message",
    more="A running order receives it after its current step. If the order has ended, the message is the next turn of "
    "its session: a new order, which continues from its work. The answer is the order that received the message.",
    tool=Tool(
        "send_review",
        "Send your pending review comments to the agent",
        ADDS_WORK,
        "Send all your pending comments on an order's result to its agent as one message: to the run, or, if the order "
        "has ended, as a new order that continues from its work. Returns the order that received it; list_review shows "
        "the agent's answers. Requires the operator role.",
    ),
    command=Command(
        "review send",
        "Send your pending comments to the agent, as one message.",
        "fleet review send ORDER --text 'Nearly there'",
        done="the review was sent to order {id}",
        then="  next  fleet follow {id}",
    ),
)
