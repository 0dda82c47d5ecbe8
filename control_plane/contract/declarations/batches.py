"""Batches: many orders from one file, of which a few are under way at a time, with one table of results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import Field

from control_plane.contract.declarations.operation import (
    ADDS_WORK,
    ENDS,
    READS,
    SETS_WORK,
    About,
    ByHand,
    Command,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.contract.declarations.orders import CancelRequest, OrderRequest
from control_plane.contract.documents.base import Document, Request
from shared.outcome import OrderOutcome

MOST_ROWS = 10_000
"""Rows of one batch."""
MOST_SENT = 1000
"""Rows of one request."""
MOST_PARALLEL = 500
MAX_ROW_ID = 200
MOST_DIFFERENT = 1000
"""Rows that a comparison lists one by one."""
ID = About("batch", "The batch's name or id, or a unique prefix of its id.", source="batches:name")
NAME = About("name", "Name of the batch, which no other batch has.")
BatchStatus = Literal["loading", "running", "canceling", "canceled", "finished"]
"""`loading`: not all rows are there yet, and none starts. `canceling`: its last orders are being stopped."""
RowState = Literal["waiting", "open", "succeeded", "failed", "canceled", "refused", "resolved", "unresolved"]
"""`open`: the order has not ended. `refused`: no order could be submitted. `resolved`: succeeded, with the project's
verification passed. `unresolved`: ended in any other way.
"""
Retried = Literal["failed", "canceled", "all"]
ROW_STATE = About("state", "Only rows in this state.", absent="all")


class BatchRowRequest(OrderRequest):
    """The order of one row. It has a session of its own; `provider` may also be the name of a provider's model."""

    id: str = Field(min_length=1, max_length=MAX_ROW_ID, pattern=r"^[^\s\x00-\x1f](.*[^\s\x00-\x1f])?$")
    project: str = Field(max_length=64)
    """Slug."""

    @property
    def digest(self) -> str:
        """SHA-256 over every field that is set to something else than its default."""
        fields = self.model_dump(mode="json", exclude_defaults=True)
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def fingerprint(digests: Iterable[str]) -> str:
    """A hash over rows in their order, equal for two batches with equal rows."""
    return sha256("\n".join(digests).encode()).hexdigest()


ROWS = About("rows", "The rows: each is an order with an id that is unique in the batch.")
MORE = About("more", "Whether further rows follow; the first order starts after the last rows.")


class BatchRequest(Request):
    name: Annotated[str, NAME] = Field(min_length=1, max_length=128, pattern=r"^[^\s/]([^/\x00-\x1f]*[^\s/])?$")
    parallel: Annotated[int, About("parallel", "Maximum number of its orders that are under way at a time.")] = Field(
        4, ge=1, le=MOST_PARALLEL
    )
    rows: Annotated[list[BatchRowRequest], ROWS] = Field(min_length=1, max_length=MOST_SENT)
    more: Annotated[bool, MORE] = False


class RowsRequest(Request):
    rows: Annotated[list[BatchRowRequest], ROWS] = Field(min_length=1, max_length=MOST_SENT)
    more: Annotated[bool, MORE] = False


class BatchFilter(Request):
    limit: Annotated[int, About("limit", "Maximum number of results, newest first.")] = Field(50, ge=1, le=500)


class RowFilter(Request):
    state: Annotated[RowState | None, ROW_STATE] = None
    after: Annotated[int, About("after", "Only rows after this one, by its number.")] = Field(0, ge=0, le=MOST_ROWS)
    patches: Annotated[bool, About("patches", "Include the patches.")] = False
    limit: Annotated[int, About("limit", "Maximum number of results; with patches, fewer if they are long.")] = Field(
        100, ge=1, le=MOST_SENT
    )


class RetryBatchRequest(Request):
    which: Annotated[
        Retried,
        About("which", "Rows to run again: failed (also those that were refused), canceled, or all of these."),
    ] = "failed"


class BatchSummary(Document):
    id: Annotated[str, About("batch")]
    name: Annotated[str, About("name")]
    status: Annotated[BatchStatus, About("status")]
    outcome: Annotated[OrderOutcome | None, About("outcome")]
    """The worst outcome of its rows, of which a refused one is failed; null until all of them have ended."""
    parallel: Annotated[int, About("parallel")]
    user: Annotated[str, About("submitted by")]
    created_at: Annotated[datetime, About("submitted")]
    total: Annotated[int, About("rows")]
    ended: Annotated[int, About("ended")]
    """Rows with nothing left to do."""
    resolved: Annotated[int, About("resolved")]
    """Rows whose order succeeded, with its verification passed."""
    cost_usd: Annotated[float | None, About("cost")]
    """Of all its orders; null if a price is unknown."""


class BatchDocument(BatchSummary):
    waiting: int
    open: int
    """Rows whose order has not ended."""
    succeeded: int
    failed: int
    canceled: int
    refused: int
    """Rows for which no order could be submitted."""
    outcomes: dict[str, int]
    """Ended orders by what came of them."""
    verifications: dict[str, int]
    """Ended orders by the result of their verification."""
    exit_statuses: dict[str, int]
    """Ended orders by how they ended."""
    steps: int
    """Tool calls of all orders."""
    cost_mean_usd: float | None
    """For each order that was started."""
    steps_mean: float | None
    duration_mean_s: float | None
    """Working time for each order that was started, in seconds."""
    remaining_s: float | None
    """Estimated seconds until all rows have ended, from the orders that ended last; null while nothing has ended."""
    fingerprint: str
    """Of its rows: equal for a batch of the same rows."""


class BatchRowDocument(Document):
    id: str
    number: int
    state: str
    """The order's status, or `waiting`, `refused`, `canceled`."""
    outcome: OrderOutcome | None
    """What came of its order; null until that has ended."""
    resolved: bool
    order: str | None
    reason: str
    """Why it is in its state, in one sentence."""
    project: str
    model: str | None
    verification: str | None
    exit_status: str | None
    base_commit: str | None
    branch: str | None
    """Null if nothing was pushed."""
    cost_usd: float | None
    steps: int
    """Tool calls."""
    duration_ms: int
    patch: str | None
    """Empty if nothing changed; null if it was not asked for, or there is none."""
    digest: str
    """Of the row as it was submitted: equal for an equal row."""


class ComparedRow(Document):
    """A row that only one of two batches resolved."""

    id: str
    resolved_by: Literal["a", "b"]
    order_a: str | None
    order_b: str | None


class BatchComparison(Document):
    """Two batches, paired by the ids of their rows. Only rows that have ended in both are counted."""

    a: BatchSummary
    b: BatchSummary
    pairs: int
    both: int
    only_a: int
    only_b: int
    neither: int
    p_value: float
    """McNemar's exact test, two-sided: how likely a difference at least this large is by chance alone."""
    unpaired_a: int
    """Rows of A that B does not have."""
    unpaired_b: int
    unfinished: int
    """Rows of both that have not ended in one of them."""
    cost_a_usd: float | None
    """Of the pairs; null if a price is unknown."""
    cost_b_usd: float | None
    steps_a: int
    steps_b: int
    different: list[ComparedRow]
    """The rows that only one of them resolved, at most 1000."""


NAMES = {"batch_id": Annotated[str, Field(max_length=128), ID]}
OTHER = About("other", "The batch to compare with: its name or id.", source="batches:name")

SUBMIT = Operation(
    name="submit_batch",
    role="operator",
    route="POST /batches",
    status=201,
    errors=(404, 409, 412, 413),
    request=BatchRequest,
    answer=BatchDocument,
    summary="Submit a batch of independent orders",
    more="At most `parallel` of them are under way at a time. The same rows with the same name return the same batch.",
    tool=Tool(
        "submit_batch",
        "Submit a batch",
        ADDS_WORK,
        "Submit many independent work orders as rows of one batch; at most parallel of them are under way at a time. "
        "Each row has an id that is unique in the batch, a project and a prompt, and may have what submit_order takes "
        "besides. Either all rows are accepted or none. Calling it again with the same name and rows returns the same "
        "batch. Then poll get_batch until its status is finished. Requires the operator role.",
    ),
    command=ByHand("batch run", "it reads a file, fills templates, and follows the batch"),
)
ADD_ROWS = Operation(
    name="add_batch_rows",
    role="operator",
    route="POST /batches/{batch_id}/rows",
    names=NAMES,
    errors=(404, 409, 412, 413),
    request=RowsRequest,
    answer=BatchDocument,
    summary="Add rows to a batch",
    more="A row that is already there has no effect if it is equal, and is a 409 if it differs.",
    tool=NoDoor("submit_batch takes as many rows as fit into a call"),
    command=NoDoor("`fleet batch run` sends a long file in parts, and adds rows with --extend"),
)
LIST = Operation(
    name="list_batches",
    role="viewer",
    route="GET /batches",
    request=BatchFilter,
    answer=list[BatchSummary],
    summary="List batches, newest first",
    tool=Tool(
        "list_batches",
        "List batches",
        READS,
        "List the batches, newest first, with the number of rows that have ended and that were resolved, and the cost.",
        defaults={"limit": 20},
    ),
    command=Command(
        "batch ls",
        "List the batches, newest first.",
        "fleet batch ls",
        columns=("name", "id", "status", "outcome", "ended", "total", "resolved", "cost_usd", "created_at"),
        empty="no batches yet; run one: fleet batch run FILE --project SLUG",
    ),
)
SHOW = Operation(
    name="show_batch",
    role="viewer",
    route="GET /batches/{batch_id}",
    names=NAMES,
    errors=(404,),
    answer=BatchDocument,
    summary="Show a batch with its statistics",
    tool=Tool(
        "get_batch",
        "Show a batch",
        READS,
        "A batch with its progress, an estimate of the remaining time, and statistics: resolved rows, exit statuses, "
        "cost and steps. list_batch_rows has the single rows.",
    ),
    command=Command("batch show", "Show a batch with its statistics.", "fleet batch show BATCH"),
)
LIST_ROWS = Operation(
    name="list_batch_rows",
    role="viewer",
    route="GET /batches/{batch_id}/rows",
    names=NAMES,
    errors=(404,),
    request=RowFilter,
    answer=list[BatchRowDocument],
    summary="List the rows of a batch with their results",
    more="In the order of the file; `after` with the number of the last row continues the list.",
    tool=Tool(
        "list_batch_rows",
        "List rows of a batch",
        READS,
        "The rows of a batch in their order, each with its state, order, verification, exit status, cost and steps. To "
        "continue, give the number of the last row as after. get_order and get_patch show more of a row's order.",
        about={
            "state": "Only rows in this state; open means that the order has not ended, resolved that it succeeded and "
            "its verification passed, refused that no order could be submitted. Default: all.",
        },
        defaults={"limit": 20},
    ),
    command=ByHand("batch results", "it writes files: JSON lines, CSV, or predictions for SWE-bench"),
)
CANCEL = Operation(
    name="cancel_batch",
    role="operator",
    route="POST /batches/{batch_id}/cancel",
    names=NAMES,
    errors=(404,),
    request=CancelRequest,
    answer=BatchDocument,
    summary="Cancel a batch",
    more="Its unfinished orders are canceled, and rows that have not started do not start.",
    tool=Tool(
        "cancel_batch",
        "Cancel a batch",
        ENDS,
        "Cancel the unfinished orders of a batch; rows that have not started do not start. What was done is kept. "
        "retry_batch continues it. Requires the operator role.",
    ),
    command=Command(
        "batch cancel",
        "Cancel the unfinished orders of a batch; further rows do not start.",
        "fleet batch cancel BATCH",
    ),
)
RETRY = Operation(
    name="retry_batch",
    role="operator",
    route="POST /batches/{batch_id}/retry",
    names=NAMES,
    errors=(404, 409),
    request=RetryBatchRequest,
    answer=BatchDocument,
    summary="Run failed or canceled rows of a batch again",
    more="Each keeps its order, which runs again from its beginning; `parallel` applies as before.",
    tool=Tool(
        "retry_batch",
        "Retry rows of a batch",
        SETS_WORK,
        "Run rows of a batch again from the beginning: those that failed or were refused, those that were canceled, or "
        "both. Then poll get_batch. Requires the operator role.",
    ),
    command=Command("batch retry", "Run failed or canceled rows of a batch again.", "fleet batch retry BATCH"),
)
COMPARE = Operation(
    name="compare_batches",
    role="viewer",
    route="GET /batches/{batch_id}/compare/{other_id}",
    names={**NAMES, "other_id": Annotated[str, Field(max_length=128), OTHER]},
    errors=(404,),
    answer=BatchComparison,
    summary="Compare two batches row by row",
    more="Paired by the ids of rows, with McNemar's exact test on resolved rows.",
    tool=Tool(
        "get_batch_comparison",
        "Compare batches",
        READS,
        "Compare two batches of the same rows, for example with two models: how many rows both, one or neither of them "
        "resolved, the p-value of McNemar's exact test, and cost and steps.",
    ),
    command=Command(
        "batch compare",
        "Compare two batches row by row.",
        "fleet batch compare BATCH OTHER",
    ),
)
