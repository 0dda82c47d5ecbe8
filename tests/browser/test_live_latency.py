"""From a drone to the eye: how long text in flight and steps take until a page shows them, while 20 drones stream."""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.browser.conftest import Person, first_of
from tests.support import wait_until
from tests.support.fleet import Api, PlayedRun

pytestmark = pytest.mark.long
DRONES = 20
MOST_MS = 150
"""On an idle machine, for 95 % of what a drone emits."""
MOST_FETCHES = 15
"""What it may usually take on any machine, compared with fetching what is new from the server."""
FETCH = """
async (address) => {
  const began = performance.now();
  await (await fetch(address)).text();
  return performance.now() - began;
}
"""
WATCH = """
() => {
  window.seen = {};
  const note = () => {
    const now = Date.now();
    for (const [mark] of document.body.innerText.matchAll(/mark\\d+/g)) window.seen[mark] ??= now;
  };
  new MutationObserver(note).observe(document.body, {subtree: true, childList: true, characterData: true});
}
"""
"""Notes when each mark first stood on the page, by the clock of the same machine."""


@contextmanager
def streaming(runs: list[PlayedRun], every_s: float) -> Iterator[None]:
    """All runs stream a piece of text every so often."""
    stop = threading.Event()

    def stream() -> None:
        while not stop.wait(every_s):
            for run in runs:
                run.streams("more text ", kind="output")

    thread = threading.Thread(target=stream, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


def runs_on(api: Api, count: int) -> list[PlayedRun]:
    """A run on each of so many drones."""
    api.add_work()
    api.wait_for_hub()
    return [api.add_drone(f"drone-{number}").take(api.submit(f"Order {number}")) for number in range(count)]


def delays(seen: dict[str, float], sent: dict[str, float]) -> list[float]:
    """Milliseconds from each mark's sending until it stood on the page, or, for a text, the step that replaced it."""
    return sorted(seen.get(mark, seen[f"{mark[:-1]}2"]) - at for mark, at in sent.items())


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


@pytest.mark.parametrize(
    "pieces",
    first_of(20, 100),
    ids=["short", "idle machine"],
)
def test_what_a_drone_emits_is_on_the_page_soon(person: Person, pieces: int) -> None:
    runs = runs_on(person.api, DRONES)
    page = person.open(f"/orders/{runs[0].order_id}")
    page.locator("#live-mark").get_by_text("Live").wait_for()
    page.evaluate(WATCH)
    texts, steps, fetches = dict[str, float](), dict[str, float](), list[float]()
    with streaming(runs[1:], every_s=0.25):
        for number in range(pieces):
            # Each piece follows a step, as in a run.
            texts[f"mark{number}1"] = time.time() * 1000
            runs[0].streams(f" mark{number}1 ")
            time.sleep(0.1)
            steps[f"mark{number}2"] = time.time() * 1000
            runs[0].says(f"mark{number}2")
            time.sleep(0.15)
            fetches.append(page.evaluate(FETCH, f"/orders/{runs[0].order_id}/news"))
    wait_until(lambda: not steps.keys() - page.evaluate("window.seen").keys())
    seen = page.evaluate("window.seen")
    shown = [p95(delays(seen, each)) for each in ({**texts, **steps}, texts, steps)]
    before = len(texts.keys() & seen.keys())
    sys.stdout.write(
        f"{before} of {len(texts)} texts before their step; p95 in ms: {[round(each) for each in shown]}; "
        f"a fetch takes {statistics.median(fetches):.0f} ms\n"
    )
    if pieces == 100:
        assert shown[0] <= MOST_MS
    # A shared machine may stand still for seconds, but then it does so for a plain request, too.
    usual = statistics.median(delays(seen, {**texts, **steps}))
    assert usual <= MOST_FETCHES * statistics.median(fetches)
