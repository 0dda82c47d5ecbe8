"""LiteLLM, imported in one place: without its network fetch, its printing, its log threads and its own retries."""

from __future__ import annotations

import gc
import logging
import os
import threading
import warnings
from collections import defaultdict
from functools import cache
from typing import Any

from drone.model.answer_bytes import rewrite, shut
from drone.model.raw_chunks import RawChunks, reason_of

_SETTINGS = {
    "LITELLM_MODE": "PRODUCTION",  # otherwise the import reads variables from a file .env in the current directory
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise the import fetches the price list from the network
    "LOGGING_EXECUTOR_MAX_PENDING_TASKS": "0",  # otherwise tasks queue up for a thread that did not survive the fork
}


@cache
def litellm() -> Any:
    """Import litellm, which takes seconds unless it was preloaded, and return it with its output silenced.

    Raises ImportError unchanged: it means a broken installation, which a retry cannot fix.
    """
    os.environ.update(_SETTINGS)
    collects = gc.isenabled()
    # A fifth of the import's time would be spent on collecting modules that all stay.
    gc.disable()
    try:
        import litellm as module
    finally:
        if collects:
            gc.enable()
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        # It logs tracebacks of exceptions that it raises anyway, and warns about the short log queue that we set.
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL)
        # Its own handler writes to stderr, which is the owner's terminal.
        logger.handlers.clear()
    module.suppress_debug_info = True
    module.telemetry = False
    module.disable_streaming_logging = True
    module.num_retries = 0
    _repair()
    _hear_all_clients()
    # It validates what it logs, and warns about its own values.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    return module


_calling: dict[int, Client] = {}
"""Whose call a thread makes: the clients that litellm creates itself serve all calls of the process."""


def _hear_all_clients() -> None:
    """Have the answers to every client that litellm creates read here. It has no setting for them all."""
    from litellm.llms.custom_httpx.http_handler import HTTPHandler

    create_client = HTTPHandler.create_client

    def heard(handler: Any) -> Any:
        client = create_client(handler)
        client.event_hooks = {"request": [_hurry], "response": [_hear]}
        return client

    HTTPHandler.create_client = heard


def _hurry(request: Any) -> None:
    if (caller := _calling.get(threading.get_ident())) is not None:
        caller.hurry(request)


def _hear(answer: Any) -> None:
    if (caller := _calling.get(threading.get_ident())) is not None:
        caller.hear(answer)


@cache
def _share_client() -> None:
    """Give the packages of OpenAI and Azure a client whose answers are read here."""
    from litellm.llms.custom_httpx.http_handler import HTTPHandler

    litellm().client_session = HTTPHandler().client


class Client:
    """The HTTP client for litellm's own providers, kept between the calls of a run so that its connection is reused.

    It also reads and closes the answers of providers that accept no client.
    """

    def __init__(self) -> None:
        self._client: Any = None
        self._connect: float | None = None
        """Seconds in which a connection must be there."""
        self._opened: defaultdict[int, list[Any]] = defaultdict(list)
        """Responses that have started, by the thread that reads them."""
        self._raw: dict[int, RawChunks | None] = {}
        """What hears their chunks, by the same thread; None for a call that was dropped."""

    def get(self, timeout: Any = None, *, accepted: bool = True) -> Any:
        """Return the client, a new one after `drop`; creating one takes half a millisecond once litellm is loaded.

        `timeout` applies to calls that litellm makes without one of their own, as it does for Gemini. `accepted`: the
        provider takes a client; None if it does not.
        """
        self._connect = timeout.connect if timeout is not None else None
        if not accepted:
            _share_client()
            return None
        if self._client is None:
            litellm()
            from litellm.llms.custom_httpx.http_handler import HTTPHandler

            self._client = HTTPHandler(timeout=timeout)
            self._client.client.event_hooks = {"request": [self.hurry], "response": [self.hear]}
        return self._client

    def listen(self, raw: RawChunks) -> None:
        """Let `raw` hear the answers that the calling thread gets until it settles."""
        self._raw[threading.get_ident()] = raw
        _calling[threading.get_ident()] = self

    def settle(self) -> None:
        """Close responses left open by the calling thread: litellm does not read all of them to their end.

        Otherwise the garbage collector closes them, at any moment. If the same thread then holds the lock of the
        connection pool, which closing needs as well, it deadlocks.
        """
        _calling.pop(threading.get_ident(), None)
        self._raw.pop(threading.get_ident(), None)
        for answer in self._opened.pop(threading.get_ident(), ()):
            answer.close()

    def hurry(self, request: Any) -> None:
        """Bound the time for a connection: litellm gives each request a single limit, that for the whole answer."""
        given = request.extensions.get("timeout", {})
        bounds = [each for each in (self._connect, given.get("connect")) if each]
        request.extensions["timeout"] = {**given, "connect": min(bounds, default=None)}

    def hear(self, answer: Any) -> None:
        """Read a response of the calling thread, which has just begun."""
        thread = threading.get_ident()
        self._opened[thread].append(answer)
        raw = self._raw.get(thread, RawChunks())
        if raw is None:
            shut(answer)
        else:
            rewrite(answer, raw)

    def drop(self) -> None:
        """Close every connection: this is the only way to stop an endpoint from generating an unwanted answer."""
        # First: an answer that begins meanwhile is then among the opened ones, or closed as it begins.
        self._raw = dict.fromkeys(self._raw)
        for answer in [answer for answers in list(self._opened.values()) for answer in list(answers)]:
            shut(answer)
        if self._client is not None:
            self._client.close()
            self._client = None


class _Reasons(dict[str, str]):
    """litellm's table of finish reasons; it passes on words that are not known to be a model's, for `RawChunks`."""

    def get(self, word: Any, _: Any = None) -> Any:
        return reason_of(word or "") or word


def _repair() -> None:
    """Repair litellm, once it is imported, where it has no setting.

    Each repair has a test in tests/integration/protocols or tests/integration/model that fails without it.
    """
    from litellm.litellm_core_utils import core_helpers
    from litellm.litellm_core_utils.litellm_logging import Logging
    from litellm.litellm_core_utils.prompt_templates.factory import BedrockConverseMessagesProcessor as Converse
    from litellm.llms.vertex_ai.gemini import transformation as gemini

    # It would work out three times what each call costs, in a quarter of the call's time. Ours is in `prices`.
    Logging.response_cost_calculator = lambda *_, **__: None
    # It would take every other word for the regular end of an answer.
    core_helpers._FINISH_REASON_MAP = _Reasons(core_helpers._FINISH_REASON_MAP)
    # It would send two equal calls as one, and Gemini refuses a question with more results than calls.
    gemini.check_if_part_exists_in_parts = lambda *_, **__: False
    convert = Converse.translate_thinking_blocks_to_reasoning_content_blocks

    def with_redacted(thinking_blocks: list[Any]) -> list[Any]:
        # It would send an empty text without a signature in the place of thinking that Bedrock encrypted.
        return [
            {"reasoningContent": {"redactedContent": block["data"]}}
            if block.get("type") == "redacted_thinking"
            else convert([block])[0]
            for block in thinking_blocks
        ]

    Converse.translate_thinking_blocks_to_reasoning_content_blocks = staticmethod(with_redacted)
