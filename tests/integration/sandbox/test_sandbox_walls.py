"""What a command can see and change: the workspace, and of the rest as little as possible."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest

from drone.sandbox import Sandbox, choose
from drone.sandbox.direct import Direct
from drone.sandbox.network import NetworkAccess
from shared.errors import Precondition
from tests.support.sandboxes import shell


def test_a_command_runs_in_the_workspace_and_can_change_it(sandbox: Sandbox, tmp_path: Path) -> None:
    odd = tmp_path / "a 'b' \"c\" ü"
    odd.mkdir()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = ["0", str(min(4096, hard) if hard > 0 else 4096)]

    result = shell(sandbox, odd, "pwd; echo made > made.txt; ulimit -c; ulimit -n; yes | head -1")

    assert result.output.splitlines() == [str(odd), *limits, "y"]
    assert (odd / "made.txt").read_text() == "made\n"


def test_an_argument_list_is_run_without_a_shell(sandbox: Sandbox, tmp_path: Path) -> None:
    result = sandbox.run(["echo", "$HOME", "; ls"], workspace=tmp_path, timeout=60)

    assert result.output == "$HOME ; ls\n"
    missing = sandbox.run(["no-such-program"], workspace=tmp_path, timeout=60)
    assert (missing.return_code in {0, None}, "no-such-program" in missing.output) == (False, True)


def test_the_environment_is_a_short_list(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "k3y-in-the-environment")
    monkeypatch.setenv("https_proxy", "http://user:pa55word@proxy:3128")

    result = shell(sandbox, tmp_path, "env")

    assert "k3y-in-the-environment" not in result.output
    assert "pa55word" not in result.output
    assert len(result.output.splitlines()) < 40


def test_processes_outside_are_not_there(walled: Sandbox, tmp_path: Path) -> None:
    result = shell(walled, tmp_path, "ls -d /proc/[0-9]* | wc -l; tr '\\0' '\\n' < /proc/1/cmdline | head -1")

    count, first = result.output.split()
    assert int(count) < 10
    assert Path(first).name in {"bwrap", "python3"}


def test_home_is_hidden_and_so_is_everything_beside_the_workspace(walled: Sandbox, tmp_path: Path) -> None:
    workspace, secret = tmp_path / "work", tmp_path / "drone-key"
    workspace.mkdir()
    secret.write_text("private")
    places = ("~", str(Path.home()), str(tmp_path), "/run", "/srv", "/var/lib")
    listings = "; ".join(f"echo '>'; ls -A {place} 2>/dev/null" for place in places)

    result = shell(walled, workspace, f"cat {secret}; {listings}")

    assert "private" not in result.output
    _, *lists = result.output.split(">")
    home, owners, beside, run, srv, lib = (set(listed.split()) for listed in lists)
    assert (home, beside, srv, lib) == (set(), {"work"}, set(), set())
    # The interpreter and the name server's settings may be there; the engine and the drone add two names.
    assert owners <= first_names_below(Path.home(), Path(sys.base_prefix), tmp_path)
    assert run <= {".containerenv", "dronefleet"} | first_names_below(Path("/run"), Path("/etc/resolv.conf").resolve())
    assert str(Path.home()) != "/home/drone"


def first_names_below(top: Path, *paths: Path) -> set[str]:
    """For each path below `top`, its first part there."""
    return {path.relative_to(top).parts[0] for path in paths if path.is_relative_to(top)}


def test_the_system_cannot_be_changed(walled: Sandbox, tmp_path: Path) -> None:
    result = shell(
        walled, tmp_path, "for d in /usr /etc /opt / /home /var; do touch $d/made-by-a-test && echo made; done"
    )

    assert "made\n" not in result.output
    assert result.output.count("Read-only file system") == 6


def test_without_network_not_even_loopback_is_there(tmp_path: Path, walled: Sandbox) -> None:
    offline = choose(walled.kind, os.environ, NetworkAccess("none"), trial=False)

    result = shell(offline, tmp_path, "cat /proc/net/dev | grep -v lo: | grep -c ':'; cat < /dev/tcp/127.0.0.1/22")

    assert result.output.startswith("0\n")


def test_a_sessions_home_and_tmp_last_from_command_to_command(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    lasting = sandbox.for_session(scratch=tmp_path / "scratch")

    shell(lasting, workspace, 'echo a > ~/kept; echo b > "$TMPDIR/kept"')

    assert shell(lasting, workspace, 'cat ~/kept "$TMPDIR/kept"').output == "a\nb\n"


def test_more_paths_can_be_read_but_not_written(walled: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a").write_text("readable")
    line = f"cat {tmp_path}/lib/a; touch {tmp_path}/lib/b"

    result = walled.run(line, workspace=tmp_path / "work", timeout=60, read_only=[tmp_path / "lib"])

    assert result.output.startswith("readable")
    assert not (tmp_path / "lib" / "b").exists()


def test_auto_takes_bubblewrap_where_it_works_and_else_none_and_says_so(
    bwrap: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert choose("auto", os.environ).kind == "bwrap"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert isinstance(choose("auto", os.environ), Direct)
    assert "without a sandbox" in choose("none", os.environ).warning
    for kind in ("bwrap", "docker", "chroot"):
        with pytest.raises(Precondition) as refused:
            choose(kind, os.environ)
        assert kind in refused.value.what
        assert refused.value.why
        assert refused.value.next
