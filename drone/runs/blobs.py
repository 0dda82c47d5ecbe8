"""What a drone exchanges over HTTP instead of Redis: blobs, and the permission to push."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import httpx
from pydantic import TypeAdapter

from shared.backoff import delay
from shared.blobs import MAX_BYTES, digest
from shared.budgets import Allowance, AllowanceRequest
from shared.clock import Clock
from shared.errors import Conflict, FleetError, FleetFault, NotFound, OrderError, Precondition, Unreachable
from shared.loopback import http_options
from shared.outcome import Verification
from shared.problems import error_of, kind_of
from shared.races import PushGrantRequest
from shared.rates import ModelPermit, PermitRequest
from shared.redaction import Redactor
from shared.tls import failed_handshake

log = logging.getLogger(__name__)

RETRY_BASE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 10.0
_PERMIT_WAIT = httpx.Timeout(5, connect=3)
_SUCCESS = {"GET": 200, "POST": 200, "PUT": 204}
"""The status with which the control plane answers; a proxy may answer in its place, with a page and another one."""
T = TypeVar("T")


class Store(Protocol):
    """Stores patches, bundles and logs, and provides long contexts and bundles."""

    def put(self, content: bytes) -> str:
        """Store a blob and return its SHA-256. Raises FleetError if it cannot be stored."""
        ...

    def get(self, run_id: str, sha256: str) -> bytes:
        """A blob of this or an earlier run. Raises FleetError if it is unavailable."""
        ...


@dataclass(frozen=True)
class Grant:
    """Permission to push the order's branch, for a short time."""

    expires_in: float
    """Seconds from the time of the request."""
    known: str | None = None
    """The last known head of the branch on the remote; None if it was never pushed."""


class Pushes(Protocol):
    """Decides whether this run may push."""

    def ask(self, verification: Verification) -> Grant:
        """Get a grant.

        Raises Conflict if another run holds the order, Precondition if the order may not push, Unreachable if there is
        no answer.
        """
        ...


class HeldByAnother:
    """Refuses pushes of a run that already knows that another run holds its order; implements Pushes."""

    def ask(self, verification: Verification) -> Grant:
        del verification
        raise Conflict("another run holds the order", code="E-PUSH-STALE")


class RunApi:
    """The part of the control plane's HTTP interface that one run may use; implements Store and Pushes."""

    def __init__(  # noqa: PLR0913, PLR0917 - where the server is, and how long it is waited for
        self,
        server_url: str,
        api_token: str,
        run_id: str,
        clock: Clock,
        patience: Callable[[], float],
        ca_file: str = "",
    ) -> None:
        """`patience` returns how many seconds to wait, at this moment, for a server that does not answer.

        `ca_file`: authorities to trust besides the machine's. Raises Precondition if it cannot be used.
        """
        self._run = f"/runs/{run_id}"
        self._clock = clock
        self._patience = patience
        self._http = httpx.Client(
            base_url=f"{server_url}/api/v1",
            headers={"Authorization": f"Bearer {api_token}"},
            timeout=httpx.Timeout(60, connect=5),
            **http_options(server_url, ca_file),
        )

    def put(self, content: bytes, kind: str = "") -> str:
        """See Store; the control plane keeps a blob of the kind `checkpoint` sealed."""
        if len(content) > MAX_BYTES:
            raise OrderError(
                f"the result is too large to store: {len(content)} bytes (maximum {MAX_BYTES})", code="E-BLOB-SIZE"
            )
        name = digest(content)
        headers = {"Content-Type": "application/octet-stream"}
        params = {"kind": kind} if kind else {}
        self._patiently("PUT", f"{self._run}/blobs/{name}", content=content, headers=headers, params=params)
        return name

    def get(self, run_id: str, sha256: str) -> bytes:
        content = self._patiently("GET", f"/runs/{run_id}/blobs/{sha256}").content
        if digest(content) != sha256:
            raise FleetFault("a blob is corrupt", code="E-BLOB-DIGEST", why=f"expected SHA-256 {sha256}")
        return content

    def ask(self, verification: Verification) -> Grant:
        request = PushGrantRequest(verification=verification)
        answer = self._send("POST", f"{self._run}/push-grant", json=request.model_dump(mode="json"))
        return _read(Grant, answer)

    def allow(self, request: AllowanceRequest) -> Allowance:
        """See `drone.runs.purse.AllowanceSource`."""
        answer = self._send("POST", f"{self._run}/allowance", json=request.model_dump(mode="json"))
        return _read(Allowance, answer)

    def permit(self, request: PermitRequest) -> ModelPermit:
        """Ask for permission to call the model. Raises Unreachable soon, so that a call does not wait long for it."""
        content, headers = request.model_dump_json(), {"Content-Type": "application/json"}
        answer = self._send("POST", f"{self._run}/model-permit", content=content, headers=headers, timeout=_PERMIT_WAIT)
        return _read(ModelPermit, answer)

    def close(self) -> None:
        self._http.close()

    def _patiently(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Like `_send`, but retry while the server does not answer and patience lasts."""
        began, attempt = self._clock.monotonic(), 0
        while True:
            attempt += 1
            try:
                return self._send(method, path, **options)
            except Unreachable:
                if self._clock.monotonic() - began >= self._patience():
                    raise
            self._clock.sleep(min(delay(attempt, base=RETRY_BASE_SECONDS), LONGEST_PAUSE_SECONDS))

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send one request and return its answer.

        Raises Unreachable on no answer, a proxy's, 429 or a 5xx, Conflict on 409, NotFound on 404, Precondition on 412,
        FleetFault otherwise.
        """
        try:
            answer = self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            failed = failed_handshake(str(self._http.base_url), error, trust="")
            raise failed or _no_answer(str(error) or type(error).__name__) from error
        if answer.status_code == _SUCCESS[method]:
            return answer
        raise _no_answer(f"another server answered {answer.status_code}") if answer.is_success else _problem(answer)


class Uploads:
    """Sends logs and checkpoints in the background: the loop does not wait for them."""

    def __init__(self, store: RunApi, redactor: Redactor) -> None:
        self._store = store
        self._redactor = redactor
        self._lock = threading.Condition()
        self._logs: deque[bytes] = deque()
        self._checkpoint: dict[str, bytes] = {}
        """The parts of the newest one that are not sent; those of an older one are useless."""
        self._sending = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="uploads", daemon=True)
        self._thread.start()

    def add_log(self, log_file: Path) -> str:
        """Queue a log for sending, without its secrets; return the SHA-256 that the blob will have."""
        content = self._redactor.text(log_file.read_text(errors="replace")).encode()
        with self._lock:
            self._logs.append(content)
            self._lock.notify_all()
        return digest(content)

    def add_checkpoint(self, content: bytes, part: str = "bundle") -> str:
        """See `drone.runs.context.CheckpointStore`."""
        with self._lock:
            self._checkpoint[part] = content
            self._lock.notify_all()
        return digest(content)

    def has_secret(self, content: bytes) -> bool:
        """See `drone.runs.context.CheckpointStore`."""
        return self._redactor.knows(content.decode("utf-8", "replace"))

    def settle(self, seconds: float) -> None:
        """See `drone.runs.context.CheckpointStore`."""
        with self._lock:
            self._lock.wait_for(lambda: not self._checkpoint and not self._sending, seconds)

    def finish(self, seconds: float) -> None:
        """Wait up to `seconds` for pending uploads; a log that is not sent by then stays on the drone."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        self._thread.join(seconds)

    def _run(self) -> None:
        while (waiting := self._next()) is not None:
            kind, content = waiting
            try:
                self._store.put(content, kind)
            except FleetError as error:
                log.warning("a %s was not stored: %s", kind or "command's full log", error)

    def _next(self) -> tuple[str, bytes] | None:
        """The next upload, a checkpoint before logs; None when everything is sent and nothing follows."""
        with self._lock:
            self._sending = False
            self._lock.notify_all()
            self._lock.wait_for(lambda: self._checkpoint or self._logs or self._closing)
            if self._checkpoint:
                self._sending = True
                return "checkpoint", self._checkpoint.pop(next(iter(self._checkpoint)))
            return ("", self._logs.popleft()) if self._logs else None


def _read(kind: type[T], answer: httpx.Response) -> T:
    """What the control plane answered. Raises Unreachable for another document, such as a proxy's page."""
    try:
        return TypeAdapter(kind).validate_json(answer.content)
    except ValueError as error:
        raise _no_answer(f"its answer is no {kind.__name__}") from error


def _no_answer(why: str) -> Unreachable:
    return Unreachable("the control plane does not answer", code="E-NO-SERVER", why=why)


def _problem(answer: httpx.Response) -> FleetError:
    """The error in an answer: Unreachable if it may be temporary, FleetFault if the drone cannot change it."""
    document = None
    with suppress(ValueError):
        document = answer.json()
    status = answer.status_code
    plain = kind_of(status)(f"the control plane answered {status}", code=f"E-HTTP-{status}")
    told = error_of(status, document) or plain
    if status >= 500 or status == 429:
        return Unreachable(told.what, code=told.code)
    final = isinstance(told, NotFound | Conflict | Precondition)
    return told if final else FleetFault(told.what, code=told.code, why=told.why)
