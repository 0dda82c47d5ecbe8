"""Patches for tests of the pages, and orders that delivered them."""

from __future__ import annotations

from shared.blobs import digest
from shared.events import CheckpointStep, Delivered
from tests.support.fleet import Api, PlayedRun

SMALL = b"""\
diff --git a/docs/guide.md b/docs/guide.md
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/docs/guide.md
+++ b/docs/guide.md
@@ -1,2 +1,3 @@
 # Guide
-Refunds are rounded.
+Refunds are rounded half to even.
+See the contract.
diff --git a/src/refund.py b/src/refund.py
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/src/refund.py
+++ b/src/refund.py
@@ -38,4 +38,5 @@ from decimal import Decimal
 def refund(amount):
     \"\"\"The amount to pay back.\"\"\"
-    return round(amount, 2)
+    # The contract, section 4.
+    return amount.quantize(CENT, ROUND_HALF_EVEN)
 # Half a cent goes to even.
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
"""


def many_lines(files: int, lines: int) -> bytes:
    """A patch that adds files of Python."""
    head = b"diff --git a/src/f%d.py b/src/f%d.py\nnew file mode 100644\n--- /dev/null\n+++ b/src/f%d.py\n"
    return b"".join(
        head % (number, number, number) + b"@@ -0,0 +1,%d @@\n" % lines + b"+x = total(1, 'a')  # one\n" * lines
        for number in range(files)
    )


def report(api: Api, run: PlayedRun, patch: bytes, branch: bytes | None = None, *, stored: bool = True) -> None:
    """A checkpoint of the run with the changes so far, and those of the whole branch, if they are others."""
    parts = (patch, patch if branch is None else branch)
    names = [api.store_blob(run, each, "checkpoint") if stored else digest(each) for each in parts]
    run.step(CheckpointStep(commit="d" * 40, patch_sha256=names[0], branch_patch_sha256=names[1]))


def deliver(api: Api, run: PlayedRun, patch: bytes = SMALL, branch: bytes | None = None) -> str:
    """End the run with this patch, and this one of its whole branch, if it is another; returns the order's id."""
    run.step(
        Delivered(
            branch=f"fleet/{run.order_id}",
            base_commit="a" * 40,
            head_commit="b" * 40,
            pushed=True,
            patch_sha256=api.store_blob(run, patch) if patch else None,
            patch_bytes=len(patch),
            branch_patch_sha256=api.store_blob(run, branch or patch) if branch or patch else None,
            files_changed=patch.count(b"diff --git "),
        )
    )
    run.ends(response="Fixed.")
    return run.order_id
