"""The preloaded fork server: children are warm, small, silent, and inherit neither thread nor connection."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

CHILD = """
    import multiprocessing, os, sys

    def child(pipe):
        from drone.agent.in_memory import KeptEvents, QuietControls
        from drone.agent.protocols import ToolSpec
        from drone.model.litellm_model import LiteLLMModel
        from shared.clock import SystemClock
        from shared.messages import Message
        from shared.work_order import Limits, OrderProvider

        threads = len(os.listdir("/proc/self/task"))
        files = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        sockets = sum(os.path.exists(file) and os.readlink(file).startswith("socket:") for file in files)
        loaded, warm = set(sys.modules), sys.modules["drone.model.preload"].WARM
        provider = OrderProvider(name="p", model="openai/scripted", api_base=pipe.recv())
        model = LiteLLMModel(provider, None, Limits(), KeptEvents(), SystemClock(), QuietControls())
        said = model.answer([Message(role="user", content="Hello.")], [ToolSpec("t", "d")], lambda *_: None)
        lines = open("/proc/self/smaps_rollup").read().splitlines()
        private_mb = sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) // 1024
        mcp = "mcp" in sys.modules
        pipe.send((warm, threads, sockets, said.message.content, mcp, len(set(sys.modules) - loaded), private_mb))

    if __name__ == "__main__":
        from drone.model.scripted.server import ScriptedServer
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["drone.model.preload"])
        with ScriptedServer([{"text": "Hello."}]) as server:
            ours, theirs = context.Pipe()
            process = context.Process(target=child, args=(theirs,))
            process.start()
            ours.send(server.url)
            print(*ours.recv())
            process.join()
"""


@pytest.mark.timeout(180)
def test_a_forked_run_is_warm_small_and_inherits_no_thread_and_no_connection(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(CHILD))
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=170, check=True)
    warm, threads, sockets, said, mcp, new_modules, private_mb = ended.stdout.split()
    # One socket: the fork server's own, on which it was asked for this child.
    assert (warm, threads, sockets, said, ended.stderr) == ("True", "1", "1", "Hello.", "")
    # It takes half a second to import, and only a run with servers of its own needs it.
    assert mcp == "False"
    # Cold, a first call loads over a thousand modules and takes 120 MB.
    assert int(new_modules) < 50
    assert int(private_mb) < 40
