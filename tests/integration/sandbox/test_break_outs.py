"""`drone doctor --sandbox`: the break-outs are real, and the sandboxes hold them all."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

from drone.installation.break_outs import examine_sandbox
from drone.installation.policy import Policy
from drone.sandbox import Sandbox, account
from drone.sandbox.bubblewrap import SYSTEM
from drone.sandbox.network import AccessKind, NetworkAccess
from shared.terminal.doctor import State
from tests.support.sandboxes import sandbox_of

OF_THE_NETWORK = {"D-WALL-ABSTRACT", "D-WALL-LOOPBACK"}
ANYBODY = {f"D-WALL-{name}" for name in ("HOME", "TMP", "WRITE", "KEYS", "ENVIRONMENT", "PROCESSES")} | OF_THE_NETWORK
"""What every user can do without a sandbox."""


OF_ROOT = {
    f"D-WALL-{name}"
    for name in (
        "SYSTEM",
        "KERNEL",
        "HOSTNAME",
        "ROOT",
        "RIGHTS",
        "SUDO",
        "MOUNT",
        "DEVICE",
        "PASSWORDS",
        "SOCKETS",
        "PROXY",
    )
}
"""What root can also do without a sandbox, on every machine."""
OF_THE_MACHINE = {f"D-WALL-{name}" for name in ("DISK", "METADATA", "SSH", "LOG")}
"""What some machines do not have, or refuse even to root."""


def examined(kind: str, home: Path, access: AccessKind = "public") -> dict[State, dict[str, str]]:
    """The codes of the checks with what was found, by their state."""
    (home / "keys").mkdir()
    (home / "keys" / "private").write_text("key")
    found: dict[State, dict[str, str]] = defaultdict(dict)
    for check in examine_sandbox(
        kind, {**os.environ, "HOME": str(home)}, Policy(network=NetworkAccess(access)), home / "keys"
    ):
        found[check.state][check.code] = check.found
    return found


def test_a_sandbox_holds_every_break_out(walled: Sandbox, tmp_path: Path) -> None:
    found = examined(walled.kind, tmp_path)
    refused = {code for code, text in found[State.OK].items() if text == "refused"}
    assert (len(found[State.OK]), set(found)) == (24, {State.OK})
    assert refused >= ANYBODY | {"D-WALL-LEFTOVER", "D-WALL-SOCKETS", "D-WALL-PROXY", "D-WALL-METADATA"}
    assert [path.name for path in tmp_path.iterdir()] == ["keys"]


def test_without_a_sandbox_the_same_tries_get_out(tmp_path: Path) -> None:
    found = examined("none", tmp_path)
    assert set(found[State.WARN]) >= ANYBODY
    assert found[State.FAIL] == {}
    if account.is_root():
        assert set(found[State.WARN]) >= OF_ROOT
        unprovable = {code for code, text in found[State.OK].items() if text.startswith("not provable here")}
        assert unprovable <= OF_THE_MACHINE
        # Processes are kept together even without a sandbox.
        held = {code: text for code, text in found[State.OK].items() if code not in unprovable}
        assert held == {"D-WALL-LEFTOVER": "refused"}


def test_a_try_that_gets_out_of_a_sandbox_is_a_failure_but_a_network_that_the_policy_opens_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandbox_of("bwrap")
    # Not in /tmp, which is another directory in the sandbox.
    with tempfile.TemporaryDirectory(dir=Path.home()) as system:
        Path(system).chmod(0o755)
        monkeypatch.setattr("drone.sandbox.bubblewrap.SYSTEM", (*SYSTEM, system))
        (home := Path(system, "home")).mkdir()
        held = examined("bwrap", home)
        monkeypatch.setattr("drone.installation.break_outs.own_places", lambda *_: ())
        (home / "keys" / "private").unlink()
        (home / "keys").rmdir()
        found = examined("bwrap", home, "host")
    assert set(held) == {State.OK}
    assert set(found[State.FAIL]) >= {"D-WALL-HOME", "D-WALL-KEYS"}
    assert set(found[State.WARN]) >= OF_THE_NETWORK
    assert OF_THE_NETWORK & set(found[State.FAIL]) == set()
