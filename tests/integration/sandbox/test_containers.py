"""The container sandbox: its engine, its image, its containers, and what is left of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from drone.processes.ending import end_command
from drone.sandbox import Sandbox, choose
from drone.sandbox.container import DEFAULT_IMAGE, find_engine, remove_leftovers
from drone.sandbox.container.leftovers import LABEL, PREFIX, this_maker
from drone.sandbox.opened import close_all
from drone.sandbox.protocol import CommandLine
from drone.tools.arguments import ShellArguments
from drone.tools.shell import Shell
from shared.errors import FleetFault, Precondition
from tests.support import wait_until
from tests.support.containers import podman
from tests.support.sandboxes import processes_with, sandbox_of, shell

pytestmark = pytest.mark.usefixtures("container_image", "sandboxes_closed")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def session(tmp_path: Path, container_image: str) -> Sandbox:
    """A sandbox whose commands share a container."""
    return sandbox_of("docker").for_session(scratch=tmp_path / "scratch")


def names() -> list[str]:
    """The running containers."""
    return podman("ps", "--format", "{{.Names}}").split()


def started(line: CommandLine) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        line.arguments, env=dict(line.environment), cwd=line.directory, stdin=subprocess.PIPE, start_new_session=True
    )


# The containers of a session


def test_the_commands_of_a_session_share_a_container_which_ends_with_it(session: Sandbox, workspace: Path) -> None:
    hosts = [shell(session, workspace, "cat /proc/sys/kernel/random/boot_id; ls -di /proc/1/ns") for _ in range(2)]
    killed = shell(session, workspace, "kill -9 $$")
    running = names()

    close_all()

    assert (hosts[0].output, len(running)) == (hosts[1].output, 1)
    # A command that is killed is not taken for its container.
    assert (killed.return_code, killed.lost) == (137, "")
    assert not podman("ps", "--all", "--quiet", "--filter", f"name={running[0]}")


def test_a_container_that_is_killed_from_outside_fails_its_command_and_the_next_gets_another(
    session: Sandbox, workspace: Path
) -> None:
    tool = Shell(workspace, session, 60, workspace.parent / "logs", lambda _: podman("kill", *names()), lambda: None)

    killed = tool(ShellArguments(command="echo kept > file; echo begun; sleep 60; echo ended"))
    after = shell(session, workspace, "cat file ~/home; echo home > ~/home")

    assert killed.output.startswith("begun\n(ended: its sandbox was ended from outside, or ran out of memory;")
    assert (killed.execution, killed.is_error, killed.return_code) == ("broken_off", True, None)
    assert after.output.startswith("kept\n")


def test_a_command_that_outlives_its_call_is_ended_alone_or_with_its_container_and_counted(
    session: Sandbox, workspace: Path
) -> None:
    name = "4321.375"
    line = session.line(["sh", "-c", f"sleep {name} & sleep {name}"], workspace=workspace, variables={"KEY": "v"})
    with started(line) as client:
        wait_until(lambda: len(processes_with(name)) == 2)
        ended = end_command(client.pid, line.mark, grace=1)
    assert (ended.found, ended.survivors) == (3, 0)
    assert len(names()) == 1

    name = "4321.125"
    with started(session.line(["sleep", name], workspace=workspace)) as client:
        wait_until(lambda: len(processes_with(name)) == 2)  # the client names it too
        ended = close_all()
        assert (ended.found, ended.ended, ended.survivors) == (1, 1, 0)
        assert client.wait(60) == 137


def test_a_link_that_a_command_left_does_not_lead_the_next_container_elsewhere(tmp_path: Path) -> None:
    # A workspace in /tmp needs a place in the session's own /tmp, which commands can write.
    scratch, outside = tmp_path / "scratch", tmp_path / "outside"
    outside.mkdir()
    (scratch / "tmp").mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir="/tmp") as top:
        (scratch / "tmp" / Path(top).name).symlink_to(outside)
        (Path(top) / "work").mkdir()

        with pytest.raises(FleetFault) as fault:
            shell(sandbox_of("docker").for_session(scratch=scratch), Path(top) / "work", "true")

    assert "cannot be mounted" in fault.value.why
    assert list(outside.iterdir()) == []


# The engine and the image


def refusal(environ: dict[str, str], image: str = "") -> Precondition:
    with pytest.raises(Precondition) as refused:
        choose("docker", environ, image=image)
    return refused.value


def test_a_missing_engine_or_image_and_an_engine_without_rights_are_named_and_nothing_is_fetched(
    tmp_path: Path, workspace: Path
) -> None:
    refused = refusal({**os.environ, "PATH": str(tmp_path)})
    assert (refused.why, refused.next[:23]) == ("neither podman nor docker is installed", "sudo apt install podman")

    empty, closed = tmp_path / "storage.conf", tmp_path / "closed.conf"
    empty.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/graph"\nrunroot = "{tmp_path}/run"\n')
    fixes = {"": f"podman import - {DEFAULT_IMAGE}", "localhost/no-such:1": "podman pull localhost/no-such:1"}
    for image, fix in fixes.items():
        refused = refusal({**os.environ, "CONTAINERS_STORAGE_CONF": str(empty)}, image)
        assert f"podman has no image {image or DEFAULT_IMAGE}" in refused.why
        assert fix in refused.next

    closed.write_text('[storage]\ndriver = "vfs"\ngraphroot = "/proc/graph"\nrunroot = "/proc/run"\n')
    refused = refusal({**os.environ, "CONTAINERS_STORAGE_CONF": str(closed)})
    assert ("podman does not work here: " in refused.why, "/proc/" in refused.why) == (True, True)

    (tmp_path / "root").mkdir()
    subprocess.run(["tar", "-C", tmp_path / "root", "-cf", tmp_path / "empty.tar", "."], check=True)
    podman("import", "--quiet", str(tmp_path / "empty.tar"), "localhost/empty:1")
    assert "python3" in refusal(dict(os.environ), "localhost/empty:1").why
    assert not podman("ps", "--all", "--quiet", "--filter", "ancestor=localhost/empty:1")

    # One that disappeared since the drone started is the drone's fault.
    with pytest.raises(FleetFault, match="could not be started") as fault:
        shell(choose("docker", os.environ, trial=False, image="localhost/gone:1"), workspace, "true")
    assert "localhost/gone:1" in fault.value.why


# What killed drones leave


def test_what_a_killed_drone_left_is_removed_and_nothing_of_others(tmp_path: Path) -> None:
    code = (
        "import os\nfrom drone.sandbox.container.leftovers import make_directory, this_maker\n"
        "print(make_directory(), this_maker(), flush=True)\nos.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    directory, gone = killed.stdout.split()
    limits = ("--ulimit", "nofile=64:64", "--ulimit", "nproc=64:64")
    left, living, elsewhere, others = (
        podman("create", *limits, *label, DEFAULT_IMAGE, "true").strip()
        for label in (
            ("--label", f"{LABEL}={gone}"),
            ("--label", f"{LABEL}={this_maker()}"),
            ("--label", f"{LABEL}=another-machine/{gone.partition('/')[2]}"),
            (),
        )
    )

    remove_leftovers(find_engine(os.environ))

    kept = set(podman("ps", "--all", "--quiet", "--no-trunc").split())
    podman("rm", "--force", living, elsewhere, others)
    assert (left in kept, {living, elsewhere, others} <= kept) == (False, True)
    assert Path(directory).name.startswith(PREFIX)
    assert not Path(directory).exists()
