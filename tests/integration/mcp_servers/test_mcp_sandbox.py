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

from drone.mcp_servers import ServerConfig, connection, servers, stdio
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


def test_a_server_gets_a_clean_environment_with_its_own_variables_and_no_files_of_the_owner(
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

    (mcp_in.directory / "secret").write_text("secret")
    flags = ["-c", f"cat {mcp_in.directory}/secret >&2; exit 3"]
    reader = ServerConfig(name="reader", owners=False, command="sh", args=flags)
    problems = mcp_in.connect(reader).servers.problems
    assert ("secret" in problems[0].split(": ")[-1].split()) == (mcp_in.sandbox.kind == "none")

    # Its variables do not reach the programs around the sandbox.
    library = mcp_in.workspace / "evil.so"
    line = mcp_in.sandbox.line(["true"], workspace=mcp_in.workspace, variables={"LD_PRELOAD": str(library)})
    assert "LD_PRELOAD" not in line.environment
    assert str(library) not in " ".join(line.arguments)
    assert str(library) in " ".join(line.environment.values())

    with pytest.raises(ValueError, match="for_session"):  # without a place for its home, it is not started
        choose("none", os.environ).line(["true"], workspace=mcp_in.workspace)


def test_a_cancel_ends_a_server_that_ignores_term_and_its_child_in_another_session(mcp_in: McpBench) -> None:
    word, name = new_id(), number()
    server = mcp_in.raw("--ignore-term", "--child", name, "--word", word)

    receipt = canceled(mcp_in, server, "mcp__raw__hang")

    assert (receipt.found, receipt.ended, receipt.survivors) == (2, 2, 0)
    assert (processes_with(word), processes_with(name)) == ([], [])


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


def test_servers_are_ended_at_the_same_time_each_in_its_own_way(mcp: McpBench, monkeypatch: pytest.MonkeyPatch) -> None:
    file, word, child = mcp.workspace / "farewell", new_id(), number()
    tools = mcp.connect(
        mcp.raw("--slow-close", str(file), name="a"),
        mcp.raw("--stay", "--word", word, name="b"),
        mcp.raw("--child", child, name="c"),
    )
    tools.call("mcp__c__die")
    wait_until(lambda: not processes_with(child))  # what a dead server left behind
    tools.servers.close()
    assert (file.exists(), processes_with(word)) == (True, [])

    for module, name in ((stdio, "GRACE"), (connection, "_CLOSE_SECONDS"), (servers, "_CLOSE_SECONDS")):
        monkeypatch.setattr(module, name, 60.0)
    program = mcp.workspace / "waiting.py"
    program.write_text(WAITING_FOR_EACH_OTHER)
    before = mcp.sandbox.tally.counts
    args = [[str(program), str(mcp.workspace), name, "3"] for name in "abc"]
    tools = mcp.connect(*(config(each[2], command=sys.executable, args=each) for each in args))
    tools.servers.close()
    assert sorted(path.name for path in mcp.workspace.glob("met-*")) == ["met-a", "met-b", "met-c"]
    assert mcp.sandbox.tally.counts == before.then(Ended(3, 3, 0))


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
