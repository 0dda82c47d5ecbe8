"""The script that finds sleeps, asserted durations and short limits in tests, and compares them with the kept ones."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / ".ci" / "test_clocks.py"


def kinds(text: str) -> list[str]:
    spec = importlib.util.spec_from_file_location("test_clocks_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return [kind for _, kind in script.places(ast.parse(text))]


def test_what_depends_on_the_machine_is_found() -> None:
    cases: dict[str, list[str]] = {
        "time.sleep(0.1)": ["sleep"],
        "await asyncio.sleep(1)": ["sleep"],
        "clock.sleep(60)": [],
        "began = time.monotonic()\nassert time.monotonic() - began < 5": ["duration"],
        "began = perf_counter()\ntook = perf_counter() - began\nassert took < 5": ["duration"],
        "assert clock.monotonic() < 5": [],
        "wait_until(done, seconds=20)": ["limit"],
        "wait_until(done)": [],
        "process.wait(5)\nthread.join(timeout=5)": ["limit", "limit"],
        "subprocess.run(command, timeout=60)": [],
    }
    assert {text: kinds(text) for text in cases} == cases
