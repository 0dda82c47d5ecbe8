"""LiteLLM, imported in one place: without its network fetch, its printing, its log threads and its own retries."""

from __future__ import annotations

import gc
import logging
import os
import threading
from collections import defaultdict
from functools import cache
from typing import Any

_SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # or the import fetches the price list from the network
    "LOGGING_EXECUTOR_MAX_PENDING_TASKS": "0",  # or tasks queue up for a thread that did not survive the fork
}


@cache
def litellm() -> Any:
    """Import litellm, which takes seconds where it was not preloaded, and return it quiet.

    Raises ImportError as it comes: that is a broken installation, never a reason to try again.
    """
    os.environ.update(_SETTINGS)
    collects = gc.isenabled()
    # A fifth of the import's time would go into looking through modules that all stay.
    gc.disable()
    try:
        import litellm as module
    finally:
        if collects:
            gc.enable()
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        # It logs tracebacks of what it then raises anyway, and warns that its log queue is as short as we made it.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    module.suppress_debug_info = True
    module.telemetry = False
    module.disable_streaming_logging = True
    module.num_retries = 0
    return module


class Client:
    """The HTTP client of litellm's own path, kept between the calls of a run so that its connection is reused."""

    def __init__(self) -> None:
        self._client: Any = None
        self._opened: defaultdict[int, list[Any]] = defaultdict(list)
        """Answers that began, by the thread that reads them."""

    def get(self) -> Any:
        """Return the client, a new one after `drop`; making one takes half a millisecond once litellm is there."""
        if self._client is None:
            litellm()
            from litellm.llms.custom_httpx.http_handler import HTTPHandler

            self._client = HTTPHandler()
            self._client.client.event_hooks = {"response": [self._note]}
        return self._client

    def settle(self) -> None:
        """Close what the calling thread has left of answers: litellm reads some of them almost to their end.

        Else the garbage collector closes them, at any moment. If that is while the same thread holds the lock of the
        pool of connections, which closing needs as well, it waits for itself for ever.
        """
        for answer in self._opened.pop(threading.get_ident(), ()):
            answer.close()

    def _note(self, answer: Any) -> None:
        self._opened[threading.get_ident()].append(answer)

    def drop(self) -> None:
        """Close every connection: nothing else makes an endpoint stop generating what nobody reads any more."""
        if self._client is not None:
            self._client.close()
            self._client = None
