"""What a command can see and change: the workspace, and of the rest as little as possible."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from drone.installation.doctor import check_sandbox
from drone.installation.settings import own_places
from drone.sandbox import CommandSpec, Sandbox, bubblewrap, choose
from drone.sandbox.direct import Direct
from drone.sandbox.network import NetworkAccess
from shared.errors import Precondition
from tests.support import needs
from tests.support.sandboxes import shell
from tests.support.toolboxes import toolbox

WAITING = """
cat
read line || echo nothing to read
python3 -c 'input()' 2>&1 | tail -1
(read line < /dev/tty) 2>/dev/null || echo no terminal
printf 'protocol=https\\nhost=example.org\\n' | git credential fill 2>/dev/null || echo refused
"""


def test_a_command_runs_in_the_workspace_with_a_short_environment_a_lasting_home_and_nobody_to_ask(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "k3y-in-the-environment")
    monkeypatch.setenv("https_proxy", "http://user:pa55word@proxy:3128")
    odd = tmp_path / "a 'b' \"c\" ü"
    odd.mkdir()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = ["0", str(min(4096, hard) if hard > 0 else 4096)]
    lasting = sandbox.for_session(scratch=tmp_path / "scratch")

    result = shell(lasting, odd, "pwd; echo made > made.txt; ulimit -c; ulimit -n; yes | head -1")
    environment = shell(lasting, odd, 'env; echo a > ~/kept; echo b > "$TMPDIR/kept"').output
    waited = shell(lasting, odd, WAITING).output.splitlines()

    assert result.output.splitlines() == [str(odd), *limits, "y"]
    assert (odd / "made.txt").read_text() == "made\n"
    assert ("k3y-in-the-environment" in environment, "pa55word" in environment) == (False, False)
    assert len(environment.splitlines()) < 40
    assert (waited[0], waited[1].partition(":")[0]) == ("nothing to read", "EOFError")
    assert waited[2:] == ["no terminal", "refused"]
    assert shell(lasting, odd, 'cat ~/kept "$TMPDIR/kept"').output == "a\nb\n"
    assert lasting.run(CommandSpec(["echo", "$HOME", "; ls"], workspace=odd, timeout=60)).output == "$HOME ; ls\n"
    missing = lasting.run(CommandSpec(["no-such-program"], workspace=odd, timeout=60))
    assert (missing.return_code in {0, None}, "no-such-program" in missing.output) == (False, True)


def test_what_is_beside_the_workspace_is_hidden_and_the_system_cannot_be_changed(
    walled: Sandbox, tmp_path: Path
) -> None:
    workspace, secret = tmp_path / "work", tmp_path / "drone-key"
    workspace.mkdir()
    secret.write_text("private")
    places = ("~", str(Path.home()), str(tmp_path), "/run", "/srv", "/var/lib")
    closed = ("/usr", "/etc", "/opt", "/", "/home", "/var")
    listings = "; ".join(f"ls -A {place} 2>/dev/null; echo '>'" for place in places)
    tries = "; ".join(f"touch {place}/made-by-a-test && echo made" for place in closed)
    processes = "ls -d /proc/[0-9]* | wc -l; tr '\\0' '\\n' < /proc/1/cmdline | head -1"

    seen = shell(walled, workspace, f"{listings}; cat {secret}; {tries}; echo '>'; {processes}").output

    assert "private" not in seen
    *lists, made, first_process = seen.split(">")
    home, owners, beside, run, srv, lib = (set(listed.split()) for listed in lists)
    assert (home, beside, srv, lib) == (set(), {"work"}, set(), set())
    # The interpreter and the name server's settings may be there; the engine and the drone add two names.
    assert owners <= first_names_below(Path.home(), Path(sys.base_prefix), tmp_path)
    assert run <= {".containerenv", "dronefleet"} | first_names_below(Path("/run"), Path("/etc/resolv.conf").resolve())
    assert str(Path.home()) != "/home/drone"
    assert ("made\n" in made, made.count("Read-only file system")) == (False, len(closed))
    count, first = first_process.split()
    assert (int(count) < 10, Path(first).name.startswith("python")) == (True, True)


@pytest.fixture
def opt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of the system, like /opt. It is not below /tmp, where commands have a directory of their own."""
    with tempfile.TemporaryDirectory(prefix=".drone-opt-", dir=Path.home()) as directory:
        monkeypatch.setattr(bubblewrap, "SYSTEM", (*bubblewrap.SYSTEM, directory))
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_what_is_private_is_hidden_among_the_systems_directories_too_and_named(
    opt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandboxes_closed: None
) -> None:
    needs("bwrap")
    home, work, readable = opt / "drone", opt / "drone/workspace/a/work", opt / "drone/mirror"
    others = [opt / each for each in ("tools", "policies", "fleet", "up", "drone/workspace/b")]
    for path in (home, work, readable, *others):
        path.mkdir(parents=True, exist_ok=True)
        (path / "file").write_text(f"in {path.relative_to(opt)}\n")
    (opt / "link").symlink_to(home)
    python = home / "python/bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    python.parent.mkdir(parents=True)
    # The keeper's program is given to it, and `/proc/PID/fd` is a way to that for any Python.
    python.write_text('#!/bin/sh\n[ $# -gt 0 ] && exec /usr/bin/python3 "$@"\necho 7\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "base_prefix", str(home / "python"))
    policy, certificates = opt / "policies/drone.toml", home / "ca.pem"
    policy.write_text("private\n")
    certificates.write_text("authorities\n")
    environ = {
        **os.environ,
        "DRONE_POLICY": str(policy),
        "DRONE_HIDDEN": f"{opt / 'fleet'}:{opt / 'none'}:",
        "SSL_CERT_FILE": str(certificates),
    }
    monkeypatch.setenv("XDG_DATA_HOME", str(opt / "up"))
    (opt / "up/dronefleet").mkdir()
    (opt / "up/dronefleet/server.json").write_text("token\n")

    private = own_places(opt / "link", environ, home / "workspace")
    chosen = choose("bwrap", environ, private=private)
    sandbox = chosen.for_session(scratch=tmp_path / "scratch", read_only=[readable])
    seen = shell(
        sandbox, work, f"cd {opt}; grep -rs ^[a-z] . | sort; cat {policy} 2>&1 | grep -c private; {sandbox.python}"
    ).output
    refused = shell(sandbox, work, f"touch {work}/made; for f in {home} {opt}/fleet; do touch $f/made; done").output

    named = [home, opt / "fleet", policy, opt / "up/dronefleet"]
    assert set(sandbox.hidden) == set(named)
    shown = ["drone/ca.pem:authorities", "drone/mirror/file:in drone/mirror", f"{python.relative_to(opt)}:echo 7"]
    shown += ["drone/workspace/a/work/file:in drone/workspace/a/work", "policies/file:in policies"]
    assert seen.splitlines() == [*(f"./{each}" for each in shown), "./tools/file:in tools", "./up/file:in up", "0", "7"]
    assert ((work / "made").exists(), refused.count("Read-only file system")) == (True, 2)
    found = check_sandbox("bwrap", environ, policy, private)
    assert (found.state, str(home) in found.found, str(opt / "fleet") in found.found) == ("ok", True, True)
    assert str(home) in str([spec.description for spec in toolbox(work, sandbox=sandbox).specs()])


def test_a_drone_whose_files_are_in_a_directory_that_commands_need_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("bwrap")
    monkeypatch.setattr(bubblewrap, "SYSTEM", (*bubblewrap.SYSTEM, str(tmp_path)))
    (tmp_path / "link").symlink_to("/usr")
    for place in (Path("/usr"), Path("/etc/"), Path("/usr/../etc"), tmp_path / "link", tmp_path):
        for kind in ("bwrap", "auto"):
            with pytest.raises(Precondition) as refused:
                choose(kind, os.environ, private=[place], trial=False)
            assert (refused.value.code, str(place.resolve()) in refused.value.what) == ("E-SANDBOX", True)
    assert choose("bwrap", os.environ, private=[Path("/"), tmp_path.parent], trial=False).hidden == ()
    assert choose("none", os.environ, private=[Path("/usr")]).hidden == ()


def first_names_below(top: Path, *paths: Path) -> set[str]:
    """For each path below `top`, its first part there."""
    return {path.relative_to(top).parts[0] for path in paths if path.is_relative_to(top)}


def test_without_network_not_even_loopback_is_there(tmp_path: Path, walled: Sandbox) -> None:
    offline = choose(walled.kind, os.environ, NetworkAccess("none"), trial=False)

    result = shell(offline, tmp_path, "cat /proc/net/dev | grep -v lo: | grep -c ':'; cat < /dev/tcp/127.0.0.1/22")

    assert result.output.startswith("0\n")


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
