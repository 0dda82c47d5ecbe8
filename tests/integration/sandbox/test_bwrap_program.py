"""bubblewrap is found on the owner's PATH, started from there, and its failures are told."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from drone.installation.doctor import check_network, check_sandbox
from drone.sandbox import Sandbox, choose
from drone.sandbox.bwrap_program import bwrap_program
from drone.sandbox.network import NetworkAccess
from shared.errors import Precondition
from tests.support import needs
from tests.support.sandboxes import shell


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A directory of the owner's, on no usual PATH."""
    (tmp_path / "my tools").mkdir()
    return tmp_path / "my tools"


def environ(tools: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{tools}:/usr/bin:/bin"}


def broken(tools: Path) -> dict[str, str]:
    (tools / "bwrap").write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1\n")
    (tools / "bwrap").chmod(0o755)
    return environ(tools)


def working(tools: Path) -> dict[str, str]:
    needs("bwrap")
    shutil.copy2(str(shutil.which("bwrap")), tools / "bwrap")
    return environ(tools)


def test_bwrap_outside_the_path_of_commands_is_started_by_its_own_path(
    tools: Path, tmp_path: Path, sandboxes_closed: None
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    sandbox: Sandbox = choose("auto", working(tools)).for_session(scratch=tmp_path / "scratch")

    assert sandbox.kind == "bwrap"
    assert str(tools / "bwrap") in sandbox.line("true", workspace=work).arguments
    assert shell(sandbox, work, "echo inside").output == "inside\n"
    assert f"({tools}/bwrap)" in check_sandbox("auto", environ(tools), tools / "policy.toml").found


def test_a_bwrap_that_does_not_work_is_named_with_its_reason(tools: Path, sandboxes_closed: None) -> None:
    found = check_sandbox("auto", broken(tools), tools / "policy.toml")

    assert choose("auto", environ(tools)).kind == "none"
    assert f"{tools}/bwrap does not work here: No permissions to create new namespace" in found.found
    assert "install bubblewrap" not in found.found
    assert found.fix.startswith(f"{tools}/bwrap ")
    with pytest.raises(Precondition, match="unavailable") as refusal:
        choose("bwrap", environ(tools))
    assert "No permissions" in refusal.value.why


def test_where_bwrap_cannot_keep_commands_from_the_network_a_drone_that_must_does_not_start(
    tools: Path, sandboxes_closed: None
) -> None:
    needs("bwrap")
    refuses = (
        "for each; do case $each in --unshare-net) echo bwrap: loopback: Failed RTM_NEWADDR >&2; exit 1;; esac; done"
    )
    (tools / "bwrap").write_text(f'#!/bin/sh\n{refuses}\nexec {shutil.which("bwrap")} "$@"\n')
    (tools / "bwrap").chmod(0o755)
    for kind in ("bwrap", "auto"):
        with pytest.raises(Precondition) as refused:
            choose(kind, environ(tools), NetworkAccess("none", chosen=True))
        assert (refused.value.code, "RTM_NEWADDR" in refused.value.why) == ("E-SANDBOX", True)
        assert choose(kind, environ(tools), NetworkAccess("host")).kind == "bwrap"
        assert choose(kind, environ(tools)).kind == "bwrap"
        assert choose(kind, environ(tools), NetworkAccess("none"), trial=False).kind == "bwrap"
    assert choose("bwrap", working(tools), NetworkAccess("none")).kind == "bwrap"


def test_the_doctor_fails_where_commands_cannot_be_kept_from_the_network(tools: Path, sandboxes_closed: None) -> None:
    needs("bwrap")
    policy, found = tools / "policy.toml", {}
    policy.write_text('[network]\naccess = "none"\n')
    for name, program in (("refuses", "case $* in *--unshare-net*) exit 1;; esac\n"), ("works", "")):
        (tools / name).mkdir()
        (tools / name / "bwrap").write_text(f'#!/bin/sh\n{program}exec {shutil.which("bwrap")} "$@"\n')
        (tools / name / "bwrap").chmod(0o755)
        sandbox = check_sandbox("auto", environ(tools / name), policy)
        found[name] = [each.state for each in (sandbox, *check_network(policy, sandbox, "auto", environ(tools / name)))]
    assert found == {"refuses": ["ok", "FAIL"], "works": ["ok", "ok"]}


def test_a_bwrap_in_the_current_directory_is_never_taken(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(tools)
    monkeypatch.chdir(tools)

    assert bwrap_program({"PATH": ".::bin"}) is None
    assert bwrap_program({"PATH": ""}) in {None, "/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"}
