"""What most tests of the tools begin with: a workspace, and a function that calls the tools of one toolbox on it."""

from __future__ import annotations

from tests.support.toolboxes import call, workspace

__all__ = ["call", "workspace"]
