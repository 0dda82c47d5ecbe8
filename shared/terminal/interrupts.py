"""Ctrl-C while a command line is still being imported, before `shared.terminal.boundary` can answer it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Ctrl-C ends the process at once, without a traceback; the shell sees exit code 130, as it does later.

    A process that was told to ignore Ctrl-C keeps ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
