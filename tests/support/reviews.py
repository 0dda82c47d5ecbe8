"""Orders with a result to review, and the comments on it."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from control_plane.contract.declarations.reviews import ReviewCommentDocument, ReviewCommentRequest, SendReviewRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.runs import Blob
from control_plane.operations.reviews import commenting, sending
from shared.blobs import digest
from tests.support.turns import play

HEAD = "c" * 40
PATCH = b"""\
diff --git a/calc.py b/calc.py
index 1111111..2222222 100644
--- a/calc.py
+++ b/calc.py
@@ -2,4 +2,5 @@ def first():

 def add(a, b):
-    return a - b
+    total = a + b
+    return total

@@ -20,2 +21,2 @@
-old end
+new end
 last
diff --git a/data.bin b/data.bin
index 3333333..4444444 100644
GIT binary patch
literal 3
KcmZQzU|?XT000XO

"""
"""Changes calc.py, which shows lines 2 to 5 and 20 to 21 of the old side, and data.bin, which shows none."""


def reviewed(core: Core, caller: Caller, prompt: str = "mend it", patch: bytes = PATCH, **how: Any) -> str:
    """An order that has ended with this patch."""
    order_id = play(core, caller, prompt, head_commit=HEAD, branch="fleet/one", **how)
    with_patch(core, order_id, patch)
    return order_id


def with_patch(core: Core, order_id: str, patch: bytes = PATCH) -> None:
    """Give the order the result of its current run."""
    core.blobs.store(digest(patch), BytesIO(patch))
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        run_id = str(order.run_id)
        order.result_run_id, order.patch_sha256, order.patch_bytes = run_id, digest(patch), len(patch)
        order.head_commit = HEAD
        owned = {"organization_id": order.organization_id, "created_at": core.clock.now()}
        db.add(Blob(run_id=run_id, sha256=digest(patch), size=len(patch), **owned))


def comment(core: Core, caller: Caller, order_id: str, text: str = "Use sum()", **fields: Any) -> ReviewCommentDocument:
    """A pending comment, by default on a line of calc.py."""
    place = {} if "parent" in fields else {"path": "calc.py", "start_line": 4}
    return commenting.add(core, caller, order_id, ReviewCommentRequest(text=text, **{**place, **fields}))


def send(core: Core, caller: Caller, order_id: str, text: str = "") -> OrderSummary:
    """Send the caller's pending comments on the order."""
    return sending.send(core, caller, order_id, SendReviewRequest(text=text))
