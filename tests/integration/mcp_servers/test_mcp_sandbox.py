"""Servers that run as processes live in the sandbox, see no secrets, and end with the run: counted, none left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from drone.mcp_servers import ServerConfig, servers, start, stdio
from drone.processes.ending import end_all
from drone.processes.receipt import Ended
from drone.processes.tree import MARK
from drone.sandbox import choose
from drone.sandbox.opened import close_all
from shared.errors import Preempted
from shared.names import new_id
from tests.support import wait_until
from tests.support.mcp_servers import McpBench, config
from tests.support.sandboxes import processes_with, raise_when

pytestmark = pytest.mark.hostile


def number() -> str:
    """A time to sleep that no other process has."""
    return f"{1000 + int(new_id(), 16) % 1_000_000}.5"


def canceled(bench: McpBench, server: ServerConfig, name: str) -> Ended:
    """Cancel a run while a call hangs, as its end does it, and give the receipt."""
    others = [child.pid for child in psutil.Process().children()]
    tools = bench.connect(server)
    looks = bench.looks
    bench.check = raise_when(lambda: bench.looks > looks + 5, Preempted())
    with pytest.raises(Preempted):
        tools.call(name)
    tools.servers.close()
    return bench.sandbox.tally.counts.then(close_all().then(end_all(spare=others)))


def test_a_server_gets_a_clean_environment_and_its_own_variables(
    mcp_in: McpBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    own = {"TOKEN": 'it\'s "$HOME" `id`\n', "PATH": os.environ["PATH"], MARK: "hidden"}

    seen = json.loads(mcp_in.connect(mcp_in.raw(env=own)).text("mcp__raw__variables"))

    assert (seen["TOKEN"], seen["PATH"]) == (own["TOKEN"], own["PATH"])
    assert seen[MARK] != "hidden"
    assert [name for name in seen if name.startswith("DRONEFLEET_CARRIED")] == []
    assert "sk-secret" not in json.dumps(seen)
    assert Path(seen["HOME"]) != Path.home()


def test_a_servers_variables_do_not_reach_the_programs_around_the_sandbox(mcp_in: McpBench) -> None:
    library = mcp_in.workspace / "evil.so"
    line = mcp_in.sandbox.line(["true"], workspace=mcp_in.workspace, variables={"LD_PRELOAD": str(library)})

    assert "LD_PRELOAD" not in line.environment
    assert str(library) not in " ".join(line.arguments)
    assert str(library) in " ".join(line.environment.values())


def test_a_server_in_bubblewrap_does_not_see_the_owners_files(mcp_in: McpBench) -> None:
    (mcp_in.directory / "secret").write_text("secret")
    flags = ["-c", f"cat {mcp_in.directory}/secret >&2; exit 3"]
    server = ServerConfig(name="reader", owners=False, command="sh", args=flags)

    problems = mcp_in.connect(server).servers.problems

    assert ("secret" in problems[0].split(": ")[-1].split()) == (mcp_in.sandbox.kind == "none")


def test_a_cancel_ends_a_server_that_ignores_term_and_its_child_in_another_session(mcp_in: McpBench) -> None:
    word, name = new_id(), number()
    server = mcp_in.raw("--ignore-term", "--child", name, "--word", word)

    receipt = canceled(mcp_in, server, "mcp__raw__hang")

    assert (receipt.found, receipt.ended, receipt.survivors) == (2, 2, 0)
    assert (processes_with(word), processes_with(name)) == ([], [])


def test_a_cancel_counts_the_processes_of_all_servers(mcp_in: McpBench) -> None:
    tools = mcp_in.connect(mcp_in.raw(name="a"), mcp_in.raw("--child", number(), name="b"))

    tools.servers.close()

    assert mcp_in.sandbox.tally.counts == Ended(3, 3, 0)


WAITING_FOR_EACH_OTHER = """
import sys, time
from pathlib import Path
import server
directory, name, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.argv[1:] = ["raw"]
server.main()  # until its input closes
(directory / f"closed-{name}").touch()
while len(list(directory.glob("closed-*"))) < number:
    time.sleep(0.02)
(directory / f"met-{name}").touch()
"""


def test_servers_are_ended_at_the_same_time(mcp_in: McpBench, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((stdio, "GRACE"), (start, "_CLOSE_SECONDS"), (servers, "_CLOSE_SECONDS")):
        monkeypatch.setattr(module, name, 60.0)
    program = mcp_in.workspace / "waiting.py"
    program.write_text(WAITING_FOR_EACH_OTHER)
    names = ("a", "b", "c", "d")
    tools = mcp_in.connect(
        *(
            config(name, command=sys.executable, args=[str(program), str(mcp_in.workspace), name, str(len(names))])
            for name in names
        )
    )

    tools.servers.close()

    assert sorted(path.name for path in mcp_in.workspace.glob("met-*")) == [f"met-{name}" for name in names]
    assert mcp_in.sandbox.tally.counts == Ended(4, 4, 0)


def test_a_server_may_come_to_its_own_end_when_its_input_closes(mcp_in: McpBench) -> None:
    file = mcp_in.workspace / "farewell"

    mcp_in.connect(mcp_in.raw("--slow-close", str(file))).servers.close()

    assert file.exists()


def test_a_server_that_stays_after_its_input_closed_is_asked_by_term(mcp_in: McpBench) -> None:
    word = new_id()

    mcp_in.connect(mcp_in.raw("--stay", "--word", word)).servers.close()

    assert processes_with(word) == []


def test_what_a_dead_server_leaves_behind_ends_with_it(mcp_in: McpBench) -> None:
    name = number()
    tools = mcp_in.connect(mcp_in.raw("--child", name))

    tools.call("mcp__raw__die")

    wait_until(lambda: not processes_with(name))


def test_servers_die_with_the_process_of_the_run(mcp_in: McpBench) -> None:
    word, name = new_id(), number()
    script = (
        "import os, sys; from pathlib import Path; from drone.mcp_servers import ServerConfig, connect; "
        "from drone.sandbox import choose; import time; kind, work, *flags = sys.argv[1:]; work = Path(work); "
        "sandbox = choose(kind, os.environ).for_session(scratch=work.parent / 'run', read_only=[Path(sys.prefix)]); "
        "config = ServerConfig(name='raw', owners=True, command=sys.executable, args=flags); "
        "connect([config], sandbox=sandbox, workspace=work, log_dir=work.parent / 'l', check=lambda: None); "
        "time.sleep(600)"
    )
    flags = [str(mcp_in.program), "raw", "--stay", "--child", name, "--word", word]
    run = subprocess.Popen([sys.executable, "-c", script, mcp_in.sandbox.kind, str(mcp_in.workspace), *flags])
    wait_until(lambda: processes_with(name))

    os.kill(run.pid, signal.SIGKILL)
    run.wait()

    wait_until(lambda: not processes_with(name))


def test_without_a_place_for_its_home_no_server_is_started_on_the_bare_machine(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="for_session"):
        choose("none", os.environ).line(["true"], workspace=tmp_path)
