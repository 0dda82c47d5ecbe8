"""Failures of a server, as one sentence; they never fail the run."""

from __future__ import annotations


class ServerFailed(Exception):
    """A server could not be started, or a call failed. The text continues a sentence that begins with its name."""
