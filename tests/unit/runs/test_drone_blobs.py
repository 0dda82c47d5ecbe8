"""Blobs over real HTTP: stored under their digest, waited for while patience lasts, and refused in plain words."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from drone.runs.blobs import RunApi, Uploads
from shared.blobs import digest
from shared.errors import Conflict, FleetFault, NotFound, Precondition, Unreachable
from shared.outcome import Verification
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


def test_a_blob_is_stored_under_its_digest_and_comes_back_as_it_was(server: BlobServer) -> None:
    run = api(server.url)
    name = run.put(b"patch")
    assert name == digest(b"patch")
    assert run.get("run000000000", name) == b"patch"


def test_a_blob_that_came_back_altered_is_not_taken(server: BlobServer) -> None:
    name = api(server.url).put(b"patch")
    server.blobs[name] = b"other"
    with pytest.raises(FleetFault, match="corrupt"):
        api(server.url).get("run000000000", name)


def test_a_blob_that_is_not_there_is_not_found(server: BlobServer) -> None:
    with pytest.raises(NotFound):
        api(server.url).get("run000000000", digest(b"nothing"))


def test_a_wrong_token_is_refused_without_trying_again(server: BlobServer) -> None:
    with pytest.raises(FleetFault):
        api(server.url, token="fd_wrong", patience=600).put(b"patch")
    assert server.seen == 1


def test_a_server_that_does_not_answer_is_waited_for_as_long_as_patience_lasts() -> None:
    clock = HandClock()
    with HeldPort() as closed_port, pytest.raises(Unreachable):
        api(f"http://127.0.0.1:{closed_port}", patience=60, clock=clock).put(b"patch")
    assert 60 <= clock.passed < 90


def test_a_push_is_granted_or_refused_to_a_late_run(server: BlobServer) -> None:
    assert api(server.url).ask(Verification.VERIFIED).expires_in == 60
    for status, refusal in ((409, Conflict), (412, Precondition)):
        server.grants["run000000000"] = status
        with pytest.raises(refusal):
            api(server.url).ask(Verification.VERIFIED)


def test_a_log_is_sent_without_its_secrets(server: BlobServer, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("the key is hunter2-secret\n")
    uploads = Uploads(api(server.url), Redactor(["hunter2-secret"]))
    name = uploads.add_log(tmp_path / "log")
    uploads.finish(10)
    assert server.blobs[name] == b"the key is [redacted]\n"


def test_a_checkpoint_is_sent_as_it_is_and_is_there_once_it_was_waited_for(server: BlobServer) -> None:
    uploads = Uploads(api(server.url), Redactor(["hunter2-secret"]))
    name = uploads.add_checkpoint(b"a bundle with hunter2-secret in its name")
    uploads.settle(10)
    assert server.blobs[name] == b"a bundle with hunter2-secret in its name"
    uploads.finish(10)


def test_a_file_with_a_secret_of_the_run_is_known_in_each_spelling_and_one_of_others_is_not(server: BlobServer) -> None:
    uploads = Uploads(api(server.url), Redactor(["hunter2-secret"]))
    assert uploads.has_secret(b"\xff\x00 key=hunter2-secret;")
    assert uploads.has_secret(base64.b64encode(b"hunter2-secret"))
    assert not uploads.has_secret(b"sk-ABCDEFGHIJKLMNOPQRSTUVWX is in the documentation")
    uploads.finish(10)
