"""A page that stays open for long while much happens: its memory and its size stay flat."""

from __future__ import annotations

import os
import sys
import time

import pytest
from playwright.sync_api import CDPSession

from shared.events import ToolCallStep, ToolResultStep
from tests.browser.conftest import Person
from tests.support.fleet import Api, PlayedRun

pytestmark = [pytest.mark.browser, pytest.mark.long]
PER_SECOND = 20
MOST_NODES = 4000
SOAK_MINUTES = float(os.environ.get("SOAK_MINUTES", "30"))


def run_on(api: Api) -> PlayedRun:
    api.add_work()
    api.wait_for_hub()
    return api.add_drone("mila").take(api.submit("Work for long"))


def heap_mb(session: CDPSession) -> float:
    """The page's heap after a collection of garbage."""
    session.send("HeapProfiler.collectGarbage")
    used: float = session.send("Runtime.getHeapUsage")["usedSize"]
    return used / 1e6


def emit(run: PlayedRun, seconds: float) -> int:
    """Events of a run at `PER_SECOND`: text in flight, calls and their results; returns how many."""
    count, began = 0, time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        if count > passed * PER_SECOND:
            time.sleep(0.01)
            continue
        count += 4
        run.streams(f"I will look at file {count}. ")
        run.says(f"I looked at file {count}.")
        run.step(ToolCallStep(call_id=f"c{count}", tool="shell", arguments={"command": f"cat file-{count}"}))
        run.step(ToolResultStep(call_id=f"c{count}", output="line\n" * 30, return_code=0))
    return count


@pytest.mark.timeout(2400)
def test_memory_and_size_of_a_page_stay_flat(person: Person) -> None:
    run = run_on(person.api)
    page = person.open(f"/orders/{run.order_id}")
    session = person.context.new_cdp_session(page)
    emit(run, SOAK_MINUTES * 60 / 3)
    early = heap_mb(session)
    events = emit(run, SOAK_MINUTES * 60 * 2 / 3)
    page.wait_for_timeout(1000)
    late, nodes = heap_mb(session), page.evaluate("document.getElementsByTagName('*').length")
    sys.stdout.write(f"{events} events; heap {early:.1f} MB, then {late:.1f} MB; {nodes} nodes\n")
    assert nodes <= MOST_NODES
    assert late <= 1.5 * early + 5
