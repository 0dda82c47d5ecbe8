"""Projects on every kind of remote: https, ssh, a login in the URL, an empty repository, any default branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support.git_servers import GitHttpServer, SshServer, self_signed, serving
from tests.support.repositories import calc_project, empty_remote, git
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def https_server(tmp_path: Path) -> Iterator[GitHttpServer]:
    """git over https with a login and a self-signed certificate."""
    server = GitHttpServer(tmp_path, login="robot:pa55-w0rd")
    server.encrypt(*self_signed(tmp_path))
    with serving(server):
        yield server


@pytest.fixture
def fleet(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path, ssh_server: SshServer
) -> WholeFleet:
    """A fleet with one drone, whose owner trusts the certificate and has an ssh key."""
    fleet = start_fleet(drones=0)
    fleet.json(
        "provider", "add", "scripted", "--no-check", "--model", "openai/scripted", "--api-base", model.url, "--no-key"
    )
    ssh_server.know()
    home = tmp_path / "owner"
    home.mkdir()
    command = ssh_server.command.replace("\\", "\\\\").replace('"', '\\"')
    settings = f'[http]\n\tsslCAInfo = {tmp_path / "self.pem"}\n[core]\n\tsshCommand = "{command}"\n'
    (home / ".gitconfig").write_text(settings)
    fleet.workstation("mila", home=home).start()
    fleet.online("mila")
    return fleet


def test_an_order_comes_back_as_a_branch_whatever_the_way_to_the_repository(
    https_server: GitHttpServer, fleet: WholeFleet, ssh_server: SshServer, tmp_path: Path
) -> None:
    remotes = {
        "secure": calc_project(tmp_path / "secure.git"),
        "shell": calc_project(tmp_path / "shell.git", branch="trunk"),
        "empty": empty_remote(tmp_path / "empty.git"),
    }
    urls = {
        "secure": https_server.url("secure.git", login="robot:pa55-w0rd"),
        "shell": ssh_server.url(remotes["shell"]),
        "empty": f"file://{remotes['empty']}",
    }

    done = {name: _note(fleet, name, url) for name, url in urls.items()}

    assert {name: (order["status"], order["push_error"]) for name, order in done.items()} == {
        name: ("succeeded", None) for name in urls
    }
    notes = [git(remotes[name], "show", f"{order['branch']}:notes.txt") for name, order in done.items()]
    assert notes == ["noted"] * 3
    assert [order["base_commit"] is None for order in done.values()] == [False, False, True]
    assert "pa55-w0rd" not in repr(done)


def _note(fleet: WholeFleet, slug: str, url: str) -> dict[str, object]:
    fleet.json("project", "add", slug, "--no-check", "--git-url", url, "--provider", "scripted")
    return fleet.ended(fleet.submit("Note it, script:note", project=slug)["id"])
