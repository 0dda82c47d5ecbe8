"""Classifies failed model calls: one table of litellm's exceptions, and texts that are more specific than their class.

Only the class of an error decides whether the call is retried. A test fails when litellm gains an exception that the
table lacks.
"""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit

import httpx

from drone.model.retry_after import asked_for
from shared.proxies import Proxy, proxy_of
from shared.redaction import shortened
from shared.work_order import OrderProvider


class ErrorClass(StrEnum):
    """How a model call failed; RETRIED contains the classes that may be temporary."""

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"
    TIMEOUT = "timeout"
    CONTEXT_OVERFLOW = "context_overflow"
    UNKNOWN = "unknown"
    AUTH = "auth"
    AUTH_PERMANENT = "auth_permanent"
    BILLING = "billing"
    MODEL_NOT_FOUND = "model_not_found"
    CONTENT_BLOCKED = "content_blocked"
    FORMAT = "format"


_E = ErrorClass
RETRIED = frozenset({_E.RATE_LIMIT, _E.OVERLOADED, _E.SERVER, _E.TIMEOUT, _E.CONTEXT_OVERFLOW, _E.UNKNOWN})


class StreamBroken(Exception):
    """The connection broke while an answer was read."""


class AnswerInterrupted(StreamBroken):
    """The answer was not ended by the model, or cannot be read to its end; says why, with "it" for the answer."""


class StreamSilent(Exception):
    """Nothing was received for too long."""


class ContentFiltered(Exception):
    """The endpoint ended the answer because of its content."""


BY_EXCEPTION: dict[str, ErrorClass] = {
    "APIConnectionError": _E.SERVER,
    "APIError": _E.UNKNOWN,
    "APIResponseValidationError": _E.SERVER,
    "AuthenticationError": _E.AUTH,
    "BadGatewayError": _E.SERVER,
    "BadRequestError": _E.FORMAT,
    "BlockedPiiEntityError": _E.CONTENT_BLOCKED,
    "BudgetExceededError": _E.BILLING,
    "ContentPolicyViolationError": _E.CONTENT_BLOCKED,
    "ContextWindowExceededError": _E.CONTEXT_OVERFLOW,
    "GuardrailRaisedException": _E.CONTENT_BLOCKED,
    "ImageFetchError": _E.FORMAT,
    "InternalServerError": _E.SERVER,
    "InvalidRequestError": _E.FORMAT,
    "JSONSchemaValidationError": _E.SERVER,
    "LiteLLMUnknownProvider": _E.MODEL_NOT_FOUND,
    "MidStreamFallbackError": _E.SERVER,
    "MockException": _E.UNKNOWN,
    "ModelNotMappedError": _E.MODEL_NOT_FOUND,
    "ModifyResponseException": _E.CONTENT_BLOCKED,
    "NotFoundError": _E.MODEL_NOT_FOUND,
    "OpenAIError": _E.UNKNOWN,
    "PaymentRequiredError": _E.BILLING,
    "PermissionDeniedError": _E.AUTH_PERMANENT,
    "RateLimitError": _E.RATE_LIMIT,
    "RejectedRequestError": _E.CONTENT_BLOCKED,
    "SensitiveDataRouteException": _E.CONTENT_BLOCKED,
    "ServiceUnavailableError": _E.OVERLOADED,
    "Timeout": _E.TIMEOUT,
    "UnprocessableEntityError": _E.FORMAT,
    "UnsupportedParamsError": _E.FORMAT,
    "VectorStoreSearchError": _E.FORMAT,
}
"""By the exception's name, so that this table does not need litellm, whose import takes seconds."""

_OURS: dict[type[Exception], ErrorClass] = {
    StreamBroken: _E.SERVER,
    StreamSilent: _E.TIMEOUT,
    ContentFiltered: _E.CONTENT_BLOCKED,
    httpx.TimeoutException: _E.TIMEOUT,
    httpx.HTTPError: _E.SERVER,
    httpx.InvalidURL: _E.FORMAT,
}

_BY_STATUS = {
    401: _E.AUTH,
    402: _E.BILLING,
    403: _E.AUTH_PERMANENT,
    404: _E.MODEL_NOT_FOUND,
    408: _E.TIMEOUT,
    413: _E.CONTEXT_OVERFLOW,
    424: _E.SERVER,  # Bedrock: the model failed while it answered
    429: _E.RATE_LIMIT,
    504: _E.TIMEOUT,
    503: _E.OVERLOADED,
    529: _E.OVERLOADED,
}

_BY_ITS_STATUS = frozenset({_E.UNKNOWN, _E.FORMAT})
"""Classes of exceptions that litellm also uses for statuses with a class of their own."""

_TEXTS: tuple[tuple[re.Pattern[str], frozenset[ErrorClass], ErrorClass], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), frozenset(within), meaning)
    for pattern, within, meaning in (
        (
            # A quota that is available again in a minute is a rate limit, although some endpoints word it the same.
            r"\A(?!.*(?:(?:retry|try again) in|retrydelay)).*(?:insufficient.(?:quota|balance|credit)"
            r"|exceeded your current quota|credit balance|billing (?:hard |account|issue)|enable billing"
            r"|payment required|out of credit)",
            {_E.RATE_LIMIT, _E.FORMAT, _E.AUTH_PERMANENT, _E.UNKNOWN},
            _E.BILLING,
        ),
        (
            r"\A(?!.*max_(?:completion_)?tokens\W{0,3} (?:must|is too)).*(?:context.(?:length|window|size)"
            r"|maximum.{0,20}tokens|too many (?:input )?tokens|(?:prompt|input) is too long|reduce the length)",
            {_E.FORMAT, _E.SERVER, _E.UNKNOWN},
            _E.CONTEXT_OVERFLOW,
        ),
        (
            # If one request alone exceeds a limit of tokens per minute, waiting does not help either.
            r"request.{0,3}too.large|entity too large",
            {_E.FORMAT, _E.SERVER, _E.UNKNOWN, _E.RATE_LIMIT},
            _E.CONTEXT_OVERFLOW,
        ),
        (
            r"model.{0,80}(does not exist|not found|not supported)|(no such|unknown|invalid) model\b"
            r"|model identifier is invalid|LLM Provider NOT provided",
            {_E.FORMAT, _E.UNKNOWN},
            _E.MODEL_NOT_FOUND,
        ),
        (
            r"content.(policy|filter|management)|safety system|responsible ai",
            {_E.FORMAT, _E.UNKNOWN},
            _E.CONTENT_BLOCKED,
        ),
        (
            r"invalid.{0,10}api.?key|incorrect api key|api key not valid",
            {_E.FORMAT, _E.UNKNOWN, _E.AUTH_PERMANENT},
            _E.AUTH,
        ),
        (r"\btimed out\b|timeout", {_E.SERVER, _E.UNKNOWN}, _E.TIMEOUT),
        (r"overloaded", {_E.SERVER, _E.UNKNOWN, _E.RATE_LIMIT}, _E.OVERLOADED),
        (r"exceed.{0,20}rate limit|rate limit (?:reached|exceeded)", {_E.SERVER, _E.UNKNOWN}, _E.RATE_LIMIT),
        # An error in the middle of Ollama's stream, which litellm takes for a malformed answer.
        (r"unexpected response from ollama", {_E.FORMAT}, _E.SERVER),
    )
)
"""For endpoints that answer with the wrong status: the text decides, but only within the given classes."""

_UNREACHABLE = re.compile(
    r"connection refused|connection error|name or service not known|name resolution|nodename nor servname"
    r"|no route to host|network is unreachable|all connection attempts failed",
    re.IGNORECASE,
)


_UNCONNECTED = frozenset(
    {"ConnectError", "ConnectTimeout", "ProxyError", "EndpointConnectionError", "ProxyConnectionError"}
)
"""Exceptions of httpx and botocore before there is a connection, by name: botocore is loaded by few runs."""
_MAYBE_CUT = frozenset({_E.SERVER, _E.TIMEOUT, _E.UNKNOWN})
_WRAPPED = re.compile(r"\A(?:(?:litellm\.)?\w*(?:Error|Exception)(?::| -)?\s+)+")
"""What litellm puts before the endpoint's own words."""
_MESSAGE = re.compile(r'"message"\s*:\s*"((?:[^"\\]|\\.)+)')
_MCP_TOOL = re.compile(r"\bmcp__(\w+?)__([\w-]+)")
_SHORT = 200
"""Characters of the endpoint's own words in a sentence."""


@dataclass(frozen=True)
class Failure:
    """One failed call: its class, its full text, and the seconds that the server asked to wait."""

    error_class: ErrorClass
    detail: str
    retry_after: float | None = None
    interrupted: str = ""
    """Why the answer is not complete, if one began and the connection held."""
    unconnected: bool = False
    """There was no connection: with the endpoint, or through the proxy."""

    @property
    def retried(self) -> bool:
        return self.error_class in RETRIED


def classify(error: BaseException, now: datetime) -> Failure | None:
    """Classify a failed call; None if the error is not a failed call but a bug or a signal.

    An ImportError is a bug even if litellm wrapped it several times: a retry would never help.
    """
    if _import_error(error):
        return None
    error = cause_of(error)
    error_class = _class_of(error)
    if error_class is None:
        return None
    text = str(error)
    for pattern, within, meaning in _TEXTS:
        if error_class in within and pattern.search(text):
            error_class = meaning
            break
    interrupted = text if isinstance(error, AnswerInterrupted) else ""
    if why := _unconnected(error):
        return Failure(error_class, why, unconnected=True)
    own = shortened(_WRAPPED.sub("", text) or text, 4000)
    return Failure(error_class, own, asked_for(error, now), interrupted)


def cause_of(error: BaseException) -> BaseException:
    """The failure itself, if litellm wrapped it because it occurred while a stream was read.

    For some providers, even the refusal of a request occurs only then.
    """
    inner = getattr(error, "original_exception", None)
    return inner if isinstance(inner, Exception) and _class_of(inner) is not None else error


def may_be_charged(error: BaseException) -> bool:
    """Whether the provider may have done the work of a call that failed before any part of its answer arrived.

    A provider charges nothing for what it refuses with a status. What broke off or timed out, it may have answered.
    """
    error = cause_of(error)
    if not isinstance(error, Exception):
        return True
    if _unconnected(error):
        return False
    error_class = _class_of(error)
    if error_class is None:
        return True  # a signal, such as a person's message: the request was under way
    if error_class is _E.TIMEOUT or isinstance(error, StreamBroken | ContentFiltered):
        return not _UNREACHABLE.search(str(error))
    cut_off = isinstance(error, httpx.HTTPError) or type(error).__name__ == "APIConnectionError"
    return cut_off and not _UNREACHABLE.search(str(error))


def sentence(failure: Failure, provider: OrderProvider) -> str:
    """Return one sentence for people on why there is no answer (S-084); the failure's detail has the full text."""
    where, proxy = _where(provider), proxy_to(provider)
    short = shortened(" ".join(_message(failure.detail).split()), _SHORT)
    if failure.unconnected or (failure.error_class is _E.SERVER and _UNREACHABLE.search(failure.detail)):
        return f"{where} cannot be reached{f' through {proxy}: {short}' if proxy else ''}."
    # Without encryption, a proxy may have answered itself; with it, it may have cut the connection.
    if proxy and (failure.error_class in _MAYBE_CUT or proxy.variable.lower() == "http_proxy"):
        where = f"{where} (through {proxy})"
    if failure.interrupted:
        return f"{where} did not complete its answer: {failure.interrupted}."
    return _SENTENCES[failure.error_class].format(where=where, model=provider.model, short=short)


def remedy(failure: Failure, provider: OrderProvider, key: str) -> str:
    """What a user can do about a failure that would be the same each time; `key`: how to set the key."""
    if failure.unconnected and (proxy := proxy_to(provider)):
        return proxy.advice(provider.api_base or "")
    if failure.error_class in {_E.AUTH, _E.AUTH_PERMANENT}:
        return key
    return leave_out(failure.detail) if failure.error_class is _E.FORMAT else ""


def leave_out(said: str) -> str:
    """How a user leaves out the tool of an MCP server that this text names; empty if it names none."""
    found = _MCP_TOOL.search(said)
    return f"leave out the tool {found[2]} of the MCP server {found[1]}, with `tools` in mcp.json" if found else ""


def set_key(provider: OrderProvider) -> str:
    """The command that gives the provider another key."""
    if provider.key_variable:
        return f"on the drone: export {provider.key_variable}=…, then drone start"
    return f"fleet provider edit {provider.name} --api-key-stdin"


def _message(detail: str) -> str:
    """The message in an endpoint's JSON, else all of it."""
    found = _MESSAGE.search(detail)
    if found is None:
        return detail
    try:
        return str(json.loads(f'"{found[1]}"', strict=False))
    except ValueError:
        return found[1]


_SENTENCES = {
    _E.RATE_LIMIT: "{where} refused the request: rate limit reached.",
    _E.OVERLOADED: "{where} is overloaded.",
    _E.SERVER: "{where} failed or sent an invalid answer.",
    _E.TIMEOUT: "{where} did not answer in time.",
    _E.CONTEXT_OVERFLOW: "Context window exceeded: the conversation is too long for {model}.",
    _E.UNKNOWN: "{where} failed with an unknown error: {short}",
    _E.AUTH: "{where} rejected the API key.",
    _E.AUTH_PERMANENT: "{where} does not allow this API key to use {model}.",
    _E.BILLING: "{where} reports a billing problem with the account.",
    _E.MODEL_NOT_FOUND: "{where} has no model {model}.",
    _E.CONTENT_BLOCKED: "{where} refused to answer because of the content.",
    _E.FORMAT: "{where} rejected the request: {short}",
}


def _where(provider: OrderProvider) -> str:
    if not provider.api_base:
        return f"The provider of {provider.model}"
    # Only host and port: an address may contain a password.
    parts = urlsplit(provider.api_base)
    return f"The model endpoint {parts.hostname or '?'}{f':{parts.port}' if parts.port else ''}"


def _class_of(error: BaseException) -> ErrorClass | None:
    for ours, meaning in _OURS.items():
        if isinstance(error, ours):
            return meaning
    named = next(
        (BY_EXCEPTION[c.__name__] for c in type(error).__mro__ if _foreign(c) and c.__name__ in BY_EXCEPTION), None
    )
    status = getattr(error, "status_code", None)
    if named not in _BY_ITS_STATUS or not isinstance(status, int):
        return named
    return _BY_STATUS.get(status) or (_E.SERVER if status >= 500 else named)


def proxy_to(provider: OrderProvider) -> Proxy | None:
    """The proxy through which the provider is called; one without an address is on the web."""
    return proxy_of(provider.api_base or "https://", os.environ)


def _unconnected(error: BaseException) -> str:
    """Why there was no connection, if that is why it failed; a proxy that wants a login gives none, either."""
    if getattr(error, "status_code", None) == httpx.codes.PROXY_AUTHENTICATION_REQUIRED:
        return "407 Proxy Authentication Required"
    chain = list(_chain(error))
    found = next((each for each in chain if type(each).__name__ in _UNCONNECTED), None)
    # A certificate that is not trusted is one of an endpoint that was reached.
    if found is None or any(isinstance(each, ssl.SSLError) for each in chain):
        return ""
    return "no connection was accepted in time" if isinstance(found, httpx.ConnectTimeout) else str(found)


def _foreign(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in {"litellm", "openai"}


def _import_error(error: BaseException) -> bool:
    return any(isinstance(each, ImportError) for each in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it was raised for."""
    seen: set[int] = set()
    inner: BaseException | None = error
    while inner is not None and id(inner) not in seen:
        yield inner
        seen.add(id(inner))
        inner = inner.__cause__ or inner.__context__
