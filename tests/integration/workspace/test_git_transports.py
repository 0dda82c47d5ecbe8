"""Repositories are reached over ssh, http and https with the owner's own git credentials, and what fails says why."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import threading
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from drone.sandbox import choose
from drone.workspace import Workspace, Workspaces, copy_owner_config, git_environment, mirror, note_of_unfetched
from drone.workspace.remote import Remote
from shared.errors import FleetError, FleetFault, OrderError
from tests.integration.workspace.agent import AUTHOR, does
from tests.support import free_port
from tests.support.git_servers import GitHttpServer, SshServer, self_signed, serving
from tests.support.repositories import bare_remote, calc_project, git, no_blob, prepared, work_order

pytestmark = pytest.mark.usefixtures("sandboxes_closed")
LOGIN = "robot:pa55-w0rd"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    return calc_project(tmp_path / "served" / "calc.git")


def drone_workspaces(tmp_path: Path) -> Workspaces:
    """A drone whose git has just copied its owner's configuration."""
    config = tmp_path / "drone" / "gitconfig"
    copy_owner_config(config, os.environ)
    return Workspaces(tmp_path / "workspace", git_environment(config, os.environ), choose("none", os.environ))


def prepare(tmp_path: Path, url: str) -> Workspace:
    return prepared(drone_workspaces(tmp_path), work_order(url))


def there_and_back(tmp_path: Path, url: str, remote: Path) -> None:
    """Fetch, change, push, and see the change on the remote."""
    with closing(prepare(tmp_path, url)) as workspace:
        does(workspace, "echo done > done.txt")
        delivery = workspace.deliver("fleet/x", "Do it", AUTHOR)
        pushed = workspace.push("fleet/x", None, 60)
    assert pushed.error is None
    assert git(remote, "rev-parse", "fleet/x") == delivery.head_commit


def with_submodules(remote: Path, urls: dict[str, str]) -> None:
    """A repository `around.git` beside the remote, with submodules at these URLs and the remote's commit."""
    modules = "".join(f'[submodule "{path}"]\n\tpath = {path}\n\turl = {url}\n' for path, url in urls.items())
    around = bare_remote(remote.with_name("around.git"), {".gitmodules": modules})
    head = git(remote, "rev-parse", "HEAD")
    entries = git(around, "ls-tree", "HEAD") + "\n" + "".join(f"160000 commit {head}\t{path}\n" for path in urls)
    tree = git(around, "mktree", "--missing", stdin=entries.encode())
    git(around, "update-ref", "refs/heads/main", git(around, "commit-tree", tree, "-p", "HEAD", "-m", "Add"))


def test_over_https_with_a_certificate_that_the_owner_trusts_and_to_no_address_that_runs_a_program(
    owner_home: Path, tmp_path: Path, remote: Path
) -> None:
    certificate, key = self_signed(tmp_path)
    server = GitHttpServer(remote.parent)
    server.encrypt(certificate, key)

    with serving(server):
        with pytest.raises(OrderError, match=r"certificate .* not trusted") as refused:
            prepare(tmp_path, server.url("calc.git"))
        (owner_home / ".gitconfig").write_text(f"[http]\n\tsslCAInfo = {certificate}\n")
        there_and_back(tmp_path, server.url("calc.git"), remote)
        with pytest.raises(OrderError, match=r"git repository .* not found"):
            prepare(tmp_path, server.url("nothing.git"))

    assert "http.sslCAInfo" in refused.value.next
    for url in (f"ext::touch {tmp_path}/sprung", f"--upload-pack=touch {tmp_path}/sprung"):
        with pytest.raises(FleetError):
            prepare(tmp_path, url)
    assert not (tmp_path / "sprung").exists()


def test_over_ssh_with_the_owners_ssh_command(
    owner_home: Path, tmp_path: Path, ssh_server: SshServer, remote: Path
) -> None:
    (owner_home / ".gitconfig").write_text(f"[core]\n\tsshCommand = {_quoted(ssh_server.command)}\n")
    # Nobody is asked about an unknown host key.
    with pytest.raises(OrderError, match="does not know the host key"):
        prepare(tmp_path, ssh_server.url(remote))
    ssh_server.know()
    with pytest.raises(OrderError, match=r"git repository .* not found"):
        prepare(tmp_path, ssh_server.url(remote.with_name("other.git")))
    there_and_back(tmp_path, ssh_server.url(remote), remote)
    (ssh_server.directory / "authorized_keys").write_text("")
    with pytest.raises(OrderError, match="denied access to this drone"):
        prepare(tmp_path, ssh_server.url(remote))


def test_a_private_repository_is_opened_by_the_owners_credential_helper_and_without_one_nobody_is_asked(
    owner_home: Path, tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = tmp_path / "asks"
    asks.write_text(f"#!/bin/sh\ntouch '{tmp_path}/asked'\necho a\n")
    asks.chmod(0o755)
    monkeypatch.setenv("GIT_ASKPASS", str(asks))
    monkeypatch.setenv("SSH_ASKPASS", str(asks))
    (owner_home / ".gitconfig").write_text(f"[core]\n\taskPass = {_quoted(str(asks))}\n")
    with serving(GitHttpServer(remote.parent, login=LOGIN)) as server:
        with pytest.raises(OrderError, match="denied access to this drone"):
            prepare(tmp_path, server.url("calc.git"))
        assert not (tmp_path / "asked").exists()
        with pytest.raises(OrderError) as refused:
            prepare(tmp_path, server.url("calc.git", "robot:%2Fwr0ng-pa55%2F"))
        assert ("wr0ng-pa55" in _all_words(refused.value), "127.0.0.1" in refused.value.what) == (False, True)
        helper = "!f() { echo username=robot; echo password=pa55-w0rd; }; f"
        (owner_home / ".gitconfig").write_text(f"[credential]\n\thelper = {_quoted(helper)}\n")
        there_and_back(tmp_path, server.url("calc.git"), remote)


def test_a_password_in_the_url_is_on_no_disk_and_in_no_command_line(
    owner_home: Path, tmp_path: Path, remote: Path
) -> None:
    seen: list[str] = []
    stop = threading.Event()
    watcher = threading.Thread(target=_watch_command_lines, args=(seen, stop))
    watcher.start()

    with serving(GitHttpServer(remote.parent, login=LOGIN)) as server:
        there_and_back(tmp_path, server.url("calc.git", LOGIN), remote)
    stop.set()
    watcher.join()

    found = subprocess.run(
        ["grep", "-ral", "pa55-w0rd", tmp_path / "workspace", tmp_path / "drone"], capture_output=True, check=False
    )
    assert found.stdout == b""
    assert any("git" in line for line in seen)
    assert [line for line in seen if "pa55-w0rd" in line] == []


def test_submodules_on_the_projects_server_are_fetched_with_its_login_which_is_on_no_disk(
    owner_home: Path, tmp_path: Path, remote: Path
) -> None:
    with serving(GitHttpServer(remote.parent, login=LOGIN)) as server:
        urls = {
            "relative": "../calc.git",
            "absolute": server.url("calc.git"),
            "other": f"http://127.0.0.1:{free_port()}/x",
        }
        with_submodules(remote, urls)
        workspace = prepare(tmp_path, server.url("around.git", LOGIN))

    with closing(workspace):
        assert {path: (workspace.path / path / "calc.py").exists() for path in urls} == {
            "relative": True,
            "absolute": True,
            "other": False,
        }
        searched = ["grep", "-ral", "pa55-w0rd", str(tmp_path / "workspace")]
        assert subprocess.run(searched, capture_output=True, check=False).stdout == b""


def test_a_private_repository_is_no_submodule_of_a_project_without_its_login_also_if_its_mirror_has_the_commit(
    owner_home: Path, tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unfetched(login: str) -> str:
        with closing(prepare(tmp_path, server.url("around.git", login))) as workspace:
            submodules = workspace.session.submodules
            assert any((workspace.path / "lib").iterdir()) == submodules[0].is_fetched
            return note_of_unfetched(submodules)

    with_submodules(remote, {"lib": "../calc.git"})
    with serving(GitHttpServer(remote.parent, login=LOGIN)) as server:
        server.private = "calc.git"
        prepare(tmp_path, server.url("calc.git", LOGIN)).close()
        assert "denied access" in unfetched("")
        assert "denied access" in unfetched("robot:0ther")
        assert unfetched(LOGIN) == ""
        # The login was accepted a moment ago, so the server is not asked again.
        server.expected = "revoked"
        assert unfetched(LOGIN) == ""
        monkeypatch.setattr(mirror, "ACCEPTED_SECONDS", 0.0)
        assert "denied access" in unfetched(LOGIN)


def test_the_login_of_a_url_reaches_its_server_as_it_is_and_no_server_to_which_that_redirects(
    owner_home: Path, tmp_path: Path, remote: Path
) -> None:
    login = r"robot:\tpa55\n\\w0rd\c%s$HOME"
    servers = GitHttpServer(remote.parent, login=login), GitHttpServer(remote.parent, login=login)
    with serving(servers[0]) as server, serving(servers[1]) as other:
        url = server.url("calc.git", quote(login, safe=":"))
        prepare(tmp_path, url).close()
        server.moved_to = other.url("")
        # It would be accepted there.
        with pytest.raises(OrderError, match="denied access to this drone"):
            prepare(tmp_path, url)


@pytest.mark.parametrize(
    ("url", "asked_by", "is_sent"),
    [
        ("http://robot:pa55-w0rd@git_server:3000/x", "http://git_server:3000", True),
        ("http://robot:pa55-w0rd@git_server:3000/x", "http://git_server:3001", False),
        ("https://robot:pa55-w0rd@[::1]/x", "https://[::1]", True),
        ("https://robot:pa55-w0rd@h/x", "https://h", True),
        ("https://robot:pa55-w0rd@h/x", "http://h", False),
        ("https://robot:pa55-w0rd@h/x", "https://a.h", False),
        # Many servers redirect to their own encrypted address.
        ("http://robot:pa55-w0rd@h/x", "https://h", True),
    ],
)
def test_the_login_of_a_url_is_for_its_host_and_port_and_never_sent_with_less_encryption(
    owner_home: Path, url: str, asked_by: str, is_sent: bool
) -> None:
    (owner_home / ".gitconfig").write_text('[credential]\n\thelper = "!echo password=owners #"\n')
    environment = {**os.environ, "GIT_ASKPASS": "true", **Remote(url).login}
    scheme, _, host = asked_by.partition("://")
    asking = f"protocol={scheme}\nhost={host}\n\n"
    filled = subprocess.run(
        ["git", "credential", "fill"], input=asking, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert ("pa55-w0rd" in filled, "owners" in filled) == (is_sent, False)


def test_an_unreachable_server_is_the_fleets_fault_and_one_that_never_answers_can_be_broken_off(
    owner_home: Path, tmp_path: Path
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}/calc.git"
        with pytest.raises(FleetFault, match="cannot be reached") as fault:
            prepare(tmp_path, f"https://{LOGIN}@{address}")
        assert "pa55-w0rd" not in _all_words(fault.value)
        silent.listen()

        def give_up() -> None:
            if select.select([silent], [], [], 0)[0]:  # git has connected
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            drone_workspaces(tmp_path).prepare(work_order(f"http://{address}"), no_blob, give_up)


def _watch_command_lines(seen: list[str], stop: threading.Event) -> None:
    while not stop.is_set():
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                seen.append(entry.read_text(errors="replace"))


def _all_words(error: FleetError) -> str:
    return f"{error} {error.what} {error.why} {error.next} {error.__cause__}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
