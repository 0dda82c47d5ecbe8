"""Blobs over real HTTP: stored under their digest, waited for while patience lasts, and refused in plain words."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from drone.runs.blobs import RunApi, Uploads
from shared.blobs import digest
from shared.budgets import AllowanceRequest
from shared.errors import Conflict, FleetFault, NotFound, Precondition, Unreachable
from shared.outcome import Verification
from shared.rates import PermitRequest
from shared.redaction import Redactor
from tests.support import HeldPort
from tests.support.clocks import HandClock
from tests.support.control_stand_in import API_TOKEN, BlobServer


@pytest.fixture
def server() -> Iterator[BlobServer]:
    with BlobServer() as running:
        yield running


def api(url: str, *, token: str = API_TOKEN, patience: float = 0.0, clock: HandClock | None = None) -> RunApi:
    return RunApi(url, token, "run000000000", clock or HandClock(), lambda: patience)


def test_a_blob_is_stored_under_its_digest_and_comes_back_as_it_was_or_not_at_all(server: BlobServer) -> None:
    run = api(server.url)
    name = run.put(b"patch")
    assert name == digest(b"patch")
    assert run.get("run000000000", name) == b"patch"
    server.blobs[name] = b"other"
    with pytest.raises(FleetFault, match="corrupt"):
        run.get("run000000000", name)
    with pytest.raises(NotFound):
        run.get("run000000000", digest(b"nothing"))


def test_a_log_is_sent_without_its_secrets_and_a_checkpoint_as_it_is(server: BlobServer, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("the key is hunter2-secret\n")
    uploads = Uploads(api(server.url), Redactor(["hunter2-secret"]))
    log = uploads.add_log(tmp_path / "log")
    checkpoint = uploads.add_checkpoint(b"a bundle with hunter2-secret in its name")
    uploads.settle(10)
    assert server.blobs[checkpoint] == b"a bundle with hunter2-secret in its name"
    uploads.finish(10)
    assert server.blobs[log] == b"the key is [redacted]\n"
    # Which files may not be in a checkpoint: those with a secret of this run, in each spelling.
    assert uploads.has_secret(b"\xff\x00 key=hunter2-secret;")
    assert uploads.has_secret(base64.b64encode(b"hunter2-secret"))
    assert not uploads.has_secret(b"sk-ABCDEFGHIJKLMNOPQRSTUVWX is in the documentation")


def test_a_server_that_does_not_answer_is_waited_for_and_one_that_refuses_is_not(server: BlobServer) -> None:
    clock = HandClock()
    with HeldPort() as closed_port, pytest.raises(Unreachable):
        api(f"http://127.0.0.1:{closed_port}", patience=60, clock=clock).put(b"patch")
    assert 60 <= clock.passed < 90
    with pytest.raises(FleetFault):
        api(server.url, token="fd_wrong", patience=600).put(b"patch")
    assert server.seen == 1


def test_a_push_is_granted_or_refused_to_a_late_run(server: BlobServer) -> None:
    assert api(server.url).ask(Verification.VERIFIED).expires_in == 60
    for status, refusal in ((409, Conflict), (412, Precondition)):
        server.grants["run000000000"] = status
        with pytest.raises(refusal):
            api(server.url).ask(Verification.VERIFIED)


def test_a_page_of_a_proxy_counts_as_no_answer(server: BlobServer) -> None:
    clock = HandClock()
    run = api(server.url, patience=60, clock=clock)
    for server.page in (b"<html>Welcome</html>", b"", b'{"granted": "perhaps"}'):
        for request in (
            lambda: run.permit(PermitRequest(provider="main")),
            lambda: run.ask(Verification.VERIFIED),
            lambda: run.allow(AllowanceRequest(model="openai/x")),
        ):
            with pytest.raises(Unreachable):
                request()
    with pytest.raises(Unreachable):
        run.put(b"patch")
    assert clock.passed >= 60
