"""Why a provider did not answer: the cause in one sentence, with the command that fixes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from drone.agent.values import ModelCallFailed
from drone.services.context import ServiceContext
from shared.errors import FleetError, LimitsExceeded, OrderError
from shared.loopback import http_options
from shared.outcome import ExitStatus
from shared.redaction import shortened
from shared.work_order import OrderProvider, WorkOrder

_PORTS = {"http": 80, "https": 443}
_REFUSED = re.compile(r"connection refused|all connection attempts failed", re.IGNORECASE)
_NO_HOST = re.compile(
    r"name or service not known|name resolution|nodename nor servname|no address associated", re.IGNORECASE
)
_NO_ROUTE = re.compile(r"no route to host|network is unreachable", re.IGNORECASE)
_UNTRUSTED = re.compile(r"certificate.?verif|self.signed certificate|hostname mismatch", re.IGNORECASE)
_NOT_TLS = re.compile(r"wrong.version.number|record layer failure|unknown protocol|http request", re.IGNORECASE)
_NO_STREAM = re.compile(r"was not an answer stream")


def explained(failed: ModelCallFailed, provider: OrderProvider, context: ServiceContext) -> FleetError:
    """The cause of a failed call. An endpoint that found nothing is asked for its list of models."""
    failure = _FailedCall(failed, provider)
    if failed.unconnected:
        return _no_connection(failure)
    if failed.error_class == "model_not_found":
        return _not_found(failure, context)
    return (_BY_CLASS.get(failed.error_class) or _rejected)(failure)


def limit_reached(limit: LimitsExceeded, order: WorkOrder) -> FleetError:
    """The check was ended by its time limit, or there is no money for its calls."""
    outcome, provider = limit.outcome, order.provider
    if outcome is not None and outcome.exit_status is not ExitStatus.TIME_LIMIT:
        return OrderError(outcome.reason, code="E-CHECK-MONEY", next="fleet budget ls")
    return OrderError(
        f"{where(provider)} did not answer within {order.limits.max_run_seconds:g} s.",
        code="E-CHECK-TIMEOUT",
        next=f"fleet provider test {provider.name}",
    )


def where(provider: OrderProvider) -> str:
    """The endpoint, as the subject of a sentence: without a login that the address may hold."""
    return f"The endpoint {_address(provider)}" if provider.api_base else f"The provider of {provider.model}"


@dataclass(frozen=True)
class _FailedCall:
    failed: ModelCallFailed
    provider: OrderProvider

    @property
    def where(self) -> str:
        return where(self.provider)

    @property
    def detail(self) -> str:
        return shortened(self.failed.detail, 2_000)

    def says(self, pattern: re.Pattern[str]) -> bool:
        return bool(pattern.search(self.failed.detail))


def _key(failure: _FailedCall) -> FleetError:
    provider = failure.provider
    if failure.failed.error_class == "auth_permanent":
        what = f"{failure.where} does not allow this API key to use {provider.model} (403)."
    elif provider.api_key or provider.key_variable:
        what = f"{failure.where} rejected the API key (401)."
    else:
        what = f"{failure.where} requires an API key (401)."
    from drone.model.errors import set_key

    return OrderError(what, code="E-CHECK-KEY", why=failure.detail, next=set_key(provider))


def _no_connection(failure: _FailedCall) -> FleetError:
    """There was none: a proxy of the drone's environment, if one leads to the endpoint, or the endpoint is at fault."""
    from drone.model.errors import proxy_to

    provider = failure.provider
    if (proxy := proxy_to(provider)) is None:
        return _connection(failure)
    return OrderError(
        f"{failure.where} cannot be reached through {proxy}: {failure.detail}.",
        code="E-CHECK-PROXY",
        why=failure.detail,
        next=proxy.advice(provider.api_base or ""),
    )


def _connection(failure: _FailedCall) -> FleetError:
    """It could not be connected to, or it did not answer as an endpoint does."""
    provider, address = failure.provider, _address(failure.provider)
    code, what = "E-CHECK-ANSWER", f"{failure.where} failed, or what it sent is no answer of a model."
    following = f"fleet provider edit {provider.name} --api-base URL"
    host = urlsplit(provider.api_base or "").hostname or "of the provider"
    if failure.says(_UNTRUSTED):
        return _untrusted(failure)
    if failure.says(_NOT_TLS):
        plain = (provider.api_base or "").replace("https://", "http://", 1)
        code, what = "E-CHECK-TLS", f"{failure.where} does not speak TLS."
        following = f"fleet provider edit {provider.name} --api-base {plain}"
    elif failure.says(_NO_HOST):
        code, what = "E-CHECK-HOST", f"The drone's machine knows no host {host}."
    elif failure.says(_NO_ROUTE):
        code, what = "E-CHECK-HOST", f"The drone's machine has no route to {host}."
    elif failure.failed.unconnected and failure.failed.error_class == "timeout":
        code, what = "E-CHECK-PORT", f"{address} accepts no connection, as seen from the drone's machine."
    elif failure.says(_REFUSED):
        code, what = "E-CHECK-PORT", f"Nothing listens at {address}, as seen from the drone's machine."
    elif failure.says(_NO_STREAM):
        code, what = "E-CHECK-STREAM", f"{failure.where} sent no complete answer of a model."
    return OrderError(what, code=code, why=failure.detail, next=following)


def _untrusted(failure: _FailedCall) -> FleetError:
    return OrderError(
        f"The certificate of {_address(failure.provider)} is not trusted on the drone's machine.",
        code="E-CHECK-TLS",
        why=failure.detail,
        next="on the drone: export SSL_CERT_FILE=FILE with the authority's certificate, then drone start",
    )


def _timeout(failure: _FailedCall) -> FleetError:
    return OrderError(
        f"{failure.where} did not answer in time.",
        code="E-CHECK-TIMEOUT",
        why=failure.detail,
        next=f"fleet provider test {failure.provider.name}",
    )


def _busy(failure: _FailedCall) -> FleetError:
    limited = failure.failed.error_class == "rate_limit"
    why = "reports that its rate limit is reached" if limited else "is overloaded"
    return OrderError(
        f"{failure.where} {why}, so it could not be tried.",
        code="E-CHECK-BUSY",
        why=failure.detail,
        next=f"fleet provider test {failure.provider.name}",
    )


def _billing(failure: _FailedCall) -> FleetError:
    return OrderError(
        f"{failure.where} reports a billing problem with the account.",
        code="E-CHECK-BILLING",
        why=failure.detail,
        next=f"fleet provider test {failure.provider.name}",
    )


def _rejected(failure: _FailedCall) -> FleetError:
    return OrderError(
        f"{failure.where} rejected the request: {shortened(' '.join(failure.failed.detail.split()), 160)}",
        code="E-CHECK-REQUEST",
        why=failure.detail,
        next=f"fleet provider show {failure.provider.name}",
    )


_BY_CLASS: Mapping[str, Callable[[_FailedCall], FleetError]] = {
    "auth": _key,
    "auth_permanent": _key,
    "server": _connection,
    "timeout": _timeout,
    "rate_limit": _busy,
    "overloaded": _busy,
    "billing": _billing,
}


def _not_found(failure: _FailedCall, context: ServiceContext) -> FleetError:
    """An unknown model, or a wrong path: both are a 404."""
    provider = failure.provider
    if not provider.api_base:
        return _no_model(failure, ())
    key = provider.api_key or context.environ.get(provider.key_variable or "", "")
    found = _find_path(provider.api_base, key, context.controls.check_end)
    if found.exists or (not found.corrected and provider.model.rpartition("/")[2] in failure.failed.detail):
        return _no_model(failure, found.models)
    path = urlsplit(provider.api_base).path or "/"
    elsewhere = f"; they are at {urlsplit(found.corrected).path}" if found.corrected else " (404)"
    return OrderError(
        f"{failure.where} has no models at the path {path}{elsewhere}.",
        code="E-CHECK-PATH",
        why=failure.detail,
        next=f"fleet provider edit {provider.name} --api-base {found.corrected or 'URL'}",
    )


def _no_model(failure: _FailedCall, others: tuple[str, ...]) -> FleetError:
    known = f"; it has {', '.join(others[:5])}" if others else ""
    return OrderError(
        f"{failure.where} has no model {failure.provider.model.rpartition('/')[2]}{known}.",
        code="E-CHECK-MODEL",
        why=failure.detail,
        next=f"fleet provider edit {failure.provider.name} --model MODEL",
    )


def _address(provider: OrderProvider) -> str:
    """Host and port."""
    parts = urlsplit(provider.api_base or "")
    return f"{parts.hostname}:{parts.port or _PORTS.get(parts.scheme)}"


# --- whether an address is where an endpoint has its models: it is asked for their list -----------

_ANSWER_SECONDS = 10.0
_MOST_BYTES = 1_000_000
_USUAL = "/v1"


@dataclass(frozen=True)
class _AnsweredPath:
    """What an endpoint has at an address."""

    exists: bool
    models: tuple[str, ...] = ()
    """Their names, if it lists them."""
    corrected: str = ""
    """The address at which it lists models, if it does not at the given one."""


def _find_path(api_base: str, key: str, check: Callable[[], None]) -> _AnsweredPath:
    """Ask the endpoint for its models, at this address and then at the usual path below it."""
    base = api_base.rstrip("/")
    found = _models(base, key, check)
    if found is not None:
        return _AnsweredPath(exists=True, models=found)
    if not base.endswith(_USUAL) and _models(f"{base}{_USUAL}", key, check) is not None:
        return _AnsweredPath(exists=False, corrected=f"{base}{_USUAL}")
    return _AnsweredPath(exists=False)


def _models(base: str, key: str, check: Callable[[], None]) -> tuple[str, ...] | None:
    """The models listed below this address; None if there is nothing at this path."""
    check()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with httpx.Client(
            headers=headers, timeout=_ANSWER_SECONDS, follow_redirects=False, **http_options(base)
        ) as http:
            answer = http.get(f"{base}/models")
    except (httpx.HTTPError, httpx.InvalidURL):
        # It did answer the call with 404, so this says nothing about the path.
        return ()
    if answer.status_code in {404, 405}:
        return None
    if not answer.is_success or len(answer.content) > _MOST_BYTES:
        return ()
    return _names(answer)


def _names(answer: httpx.Response) -> tuple[str, ...] | None:
    """The names in an answer of OpenAI's format; None for anything else, such as a page."""
    try:
        listed = answer.json()
    except ValueError:
        return None
    entries = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        return None
    return tuple(str(each["id"]) for each in entries if isinstance(each, dict) and "id" in each)
