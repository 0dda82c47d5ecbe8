"""What git says when it fails, and what people are told: whose fault it is, why, and what to do."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from drone.workspace.failures import explain, explained
from drone.workspace.git import GitFailed, at_once
from drone.workspace.remote import Remote
from shared.errors import FleetError, FleetFault, OrderError, UnsuitableDrone

SAYINGS = [
    ("fatal: unable to access 'https://h/x/': Could not resolve host: h", UnsuitableDrone, "E-GIT-HOST"),
    ("ssh: Could not resolve hostname h: Name or service not known", UnsuitableDrone, "E-GIT-HOST"),
    ("ssh: Could not resolve hostname h: Temporary failure in name resolution", FleetFault, "E-GIT-UNREACHABLE"),
    ("fatal: unable to access 'https://h/x/': SSL certificate problem: expired", UnsuitableDrone, "E-GIT-TLS"),
    ("fatal: unable to access 'https://h/x/': The requested URL returned error: 503", FleetFault, "E-GIT-UNREACHABLE"),
    (
        "ssh: connect to host h port 22: Connection refused\nfatal: Could not read from remote repository.\n\n"
        "Please make sure you have the correct access rights\nand the repository exists.",
        FleetFault,
        "E-GIT-UNREACHABLE",
    ),
    ("took too long", FleetFault, "E-GIT-UNREACHABLE"),
    ("fatal: write error: No space left on device", FleetFault, "E-DISK-FULL"),
    (
        "remote: Invalid username or password.\nfatal: Authentication failed for 'https://h/x/'",
        UnsuitableDrone,
        "E-GIT-AUTH",
    ),
    ("fatal: could not read Username for 'https://h': terminal prompts disabled", UnsuitableDrone, "E-GIT-AUTH"),
    (
        "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\n"
        "Please make sure you have the correct access rights\nand the repository exists.",
        UnsuitableDrone,
        "E-GIT-AUTH",
    ),
    ("ERROR: Repository not found.\nfatal: Could not read from remote repository.", UnsuitableDrone, "E-GIT-NOT-FOUND"),
    ("fatal: '/x' does not appear to be a git repository", UnsuitableDrone, "E-GIT-NOT-FOUND"),
    ("Host key verification failed.\nfatal: Could not read from remote repository.", UnsuitableDrone, "E-GIT-HOST-KEY"),
    ("fatal: transport 'file' not allowed", UnsuitableDrone, "E-GIT-PROTOCOL"),
    ("fatal: something that nobody has seen before", OrderError, "E-GIT"),
]


@pytest.mark.parametrize(("said", "kind", "code"), SAYINGS)
def test_each_saying_has_its_class_its_code_and_a_way_out(said: str, kind: type[FleetError], code: str) -> None:
    error = explain(GitFailed("fetch", 128, said), Remote("https://h/x.git"))
    assert (type(error), error.code) == (kind, code)
    assert error.why
    assert error.next


PROXY = "http://ada:secret@p.example:3128"
REFUSING = [
    ("Received HTTP code 403 from proxy after CONNECT", UnsuitableDrone, "E-GIT-PROXY"),
    ("CONNECT tunnel failed, response 403", UnsuitableDrone, "E-GIT-PROXY"),
    ("The requested URL returned error: 407", UnsuitableDrone, "E-GIT-PROXY"),
    ("Could not resolve proxy: p.example", UnsuitableDrone, "E-GIT-HOST"),
    ("Failed to connect to p.example port 3128: Connection refused", FleetFault, "E-GIT-UNREACHABLE"),
    ("Proxy CONNECT aborted; unexpected disconnect", FleetFault, "E-GIT-UNREACHABLE"),
]


@pytest.mark.usefixtures("owner_home")
@pytest.mark.parametrize(("said", "kind", "code"), REFUSING)
def test_a_proxy_of_the_environment_that_does_not_lead_to_the_remote_is_named(
    monkeypatch: pytest.MonkeyPatch, said: str, kind: type[FleetError], code: str
) -> None:
    failure = GitFailed("fetch", 128, f"fatal: unable to access 'https://h/x/': {said}")
    without = explain(failure, Remote("https://h/x.git"))
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    error = explain(failure, Remote("https://h/x.git"))
    assert (type(error), error.code) == (kind, code)
    assert "through the proxy p.example:3128 of HTTPS_PROXY" in error.what
    assert "NO_PROXY=h" in error.next
    assert "HTTPS_PROXY" not in without.what
    # Nor is it named for a remote that is not reached through it.
    assert "p.example" not in explain(failure, Remote("git@h:x.git")).what


@pytest.mark.usefixtures("owner_home")
@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("The requested URL returned error: 403", "E-GIT-AUTH"),
        ("Could not resolve host: h", "E-GIT-HOST"),
        ("Failed to connect to h port 443 after 0 ms: Couldn't connect to server", "E-GIT-UNREACHABLE"),
    ],
)
def test_a_proxy_is_not_named_for_what_the_remote_said(monkeypatch: pytest.MonkeyPatch, said: str, code: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    error = explain(GitFailed("fetch", 128, f"fatal: {said}"), Remote("https://h/x.git"))
    assert (error.code, "p.example" in error.what) == (code, False)


def test_a_full_disk_is_the_fleets_fault_and_another_error_of_the_system_is_not_dressed_up() -> None:
    with pytest.raises(FleetFault, match="disk is full"), explained(Remote("https://h/x.git")):
        raise OSError(errno.ENOSPC, "No space left on device", "/workspace/x")
    with pytest.raises(FileNotFoundError), explained(Remote("https://h/x.git")):
        Path("/no/such/file").read_text()


def test_a_password_shows_neither_in_the_address_nor_in_gits_own_words_nor_in_the_advice() -> None:
    remote = Remote("https://robot:pa55%2Fw0rd@h/x.git")
    message = "fatal: unable to access 'https://robot:pa55%2Fw0rd@h/x.git': pa55/w0rd, Could not resolve host: h"

    error = explain(GitFailed("fetch", 128, message), remote)
    denied = explain(GitFailed("ls-remote", 128, "fatal: Authentication failed"), remote)

    assert "pa55" not in f"{error.what} {error.why} {error.next} {denied.next}"
    assert "h/x.git" in error.what
    assert "git ls-remote https://" in denied.next
    # Every login shares one mirror of an address.
    assert (remote.key, remote.address) == (Remote("https://h/x.git").key, "https://h/x.git")


def test_of_two_commands_at_once_the_error_of_either_is_raised_after_both_have_ended() -> None:
    failing, raised = threading.Event(), threading.Event()
    raised_before_the_end: list[bool] = []

    def ends() -> None:
        assert failing.wait(60)
        raised_before_the_end.append(raised.wait(0.1))

    def fails() -> None:
        failing.set()
        raise GitFailed("bundle", 128, "fatal: no space left")

    for first, second in ((ends, fails), (fails, ends)):
        failing.clear()
        raised.clear()
        with pytest.raises(GitFailed):
            at_once(first, second)
        raised.set()

    assert raised_before_the_end == [False, False]
