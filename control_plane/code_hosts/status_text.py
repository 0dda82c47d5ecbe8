"""The one comment in a thread that shows the work which was asked for there, and the answers to review comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from control_plane.db.orders import Order
from control_plane.db.reviews import ReviewComment
from control_plane.services.pull_request_text import quiet
from shared.states import ENDED, OrderStatus

MAX_RESPONSE = 6_000
"""Characters of the agent's last message."""
MOST_LISTED = 20
_HEAD: Mapping[str, str] = {
    OrderStatus.QUEUED: "Queued",
    OrderStatus.ASSIGNED: "Queued",
    OrderStatus.RUNNING: "Working",
    OrderStatus.AWAITING_APPROVAL: "Waiting for a user",
    OrderStatus.CANCELING: "Canceling",
    OrderStatus.SUCCEEDED: "Done",
    OrderStatus.FAILED: "Failed",
    OrderStatus.CANCELED: "Canceled",
}


def status_text(orders: Sequence[Order], causes: Mapping[str, str], url: str) -> str:
    """The state of all orders of a thread's session, oldest first, and the last result.

    `causes`: what each order came from, by its id. It changes only when an order changes its state, so that the comment
    is not edited for every step.
    """
    last = orders[-1]
    pull = next((each.pull_request for each in reversed(orders) if (each.pull_request or {}).get("number")), None)
    parts = [f"**{_HEAD[last.status]}**{_pull(pull)}"]
    parts.append("\n".join(_line(each, causes.get(each.id, "submitted in the fleet"), url) for each in _shown(orders)))
    if last.status in ENDED:
        parts.append(_result(last))
    return "\n\n".join(filter(None, parts))


def answer_text(comment: ReviewComment) -> str:
    """The answer to a review comment; for one that the agent did not answer, that."""
    answer = quiet(comment.answer or "").strip()
    match comment.verdict:
        case "done":
            commit = f" in {comment.done_commit[:12]}" if comment.done_commit else ""
            return f"Done{commit}. {answer}".strip()
        case "declined":
            return f"Left as it is: {answer}"
        case "asks":
            return f"Question: {answer}"
        case _:
            return "The work ended without an answer to this comment."


def _shown(orders: Sequence[Order]) -> Sequence[Order]:
    return orders[-MOST_LISTED:]


def _line(order: Order, cause: str, url: str) -> str:
    return f"- [`{order.id}`]({url}/orders/{order.id}) {_HEAD[order.status].lower()}: {cause}"


def _pull(pull: Mapping[str, object] | None) -> str:
    if pull is None:
        return ""
    state = {"merged": "merged", "closed": "closed"}.get(str(pull["state"]), "open")
    return f" · pull request [#{pull['number']}]({pull['url']}), {state}" if pull.get("url") else ""


def _result(order: Order) -> str:
    if order.status != OrderStatus.SUCCEEDED:
        return quiet(order.reason)
    response = quiet((order.response or "").strip())
    cut = f"{response[:MAX_RESPONSE].rstrip()}\n\n… (cut)" if len(response) > MAX_RESPONSE else response
    why = (order.pull_request or {}).get("why") if (order.pull_request or {}).get("state") == "failed" else None
    return "\n\n".join(filter(None, (cut, f"The pull request: {why}" if why else "")))
