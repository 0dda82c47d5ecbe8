"""What can go wrong with a server, as one sentence; never the run's failure."""

from __future__ import annotations


class ServerFailed(Exception):
    """A server could not be started, or did not do what it was asked. The text goes on from the server's name."""
