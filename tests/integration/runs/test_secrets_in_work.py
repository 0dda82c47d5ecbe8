"""A secret in the work leaves the drone by no push, patch or bundle, unless a person allows it; the work is kept."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from drone.runs.pipe import EndRun
from shared.clock import SystemClock
from shared.control import Decide
from shared.events import ApprovalStep, DecisionStep, Delivered, ErrorStep
from shared.outcome import ExitStatus
from shared.redaction import Redactor
from tests.support import runs, wait_until
from tests.support.runs import Bench, shell, small_repository
from tests.support.scripted import ScriptedFactory, says

KEY = "Qk7-Zx9Wv2Tp4Ls6Rm1Jd8Hf3Gb5Ny0Cu_Ea"
PACKED = base64.b64encode(f"user:{KEY}".encode()).decode()
SHAPED = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, small_repository(tmp_path / "remote.git"))
    bench.secrets = Redactor([KEY])
    return bench


CASES = {
    "in a file": (f"printf 'one\\ntwo {KEY}\\n' > config.py", "config.py line 2"),
    "encoded in a file": (f"echo {PACKED} > config.py", "config.py line 1"),
    "over two lines": (f"printf '{KEY[:20]}\\n{KEY[20:]}\\n' > config.py", "a version of config.py"),
    "in a binary file": (f"printf 'a\\0{KEY}' > data.bin", "a version of data.bin"),
    "of a known shape": (f"mkdir -p a && echo '{SHAPED}' > a/b.txt", "a/b.txt line 1"),
    "in a message": (f"echo x > x && git add x && git commit -qm 'use {KEY}'", "the message of commit "),
    "removed again": (
        f"echo {KEY} > k && git add k && git commit -qm k && git rm -q k && git commit -qm k2 && echo x > x",
        "a version of k",
    ),
    "in a name": (f"echo x > {KEY}.txt", "a file whose name contains a secret"),
    "behind a carriage return": (f"printf 'x{KEY}\\rprint(1)\\n' > config.py", "config.py line 1"),
}


@pytest.mark.parametrize("case", CASES)
def test_work_with_a_secret_stays_on_the_drone(case: str, bench: Bench, scripted: ScriptedFactory) -> None:
    command, place = CASES[case]
    bench.on_doing = when_asked(lambda: bench.controls.receive(decided(approved=False, comment="a real key")))

    end = bench.run(scripted([shell(command), says("Done.")]).url)

    assert (end.status, end.exit_status) == ("failed", ExitStatus.REFUSED)
    assert end.reason.startswith("the work contains a secret, so it was neither pushed nor uploaded: found in ")
    assert place in end.reason
    assert "the delivery was denied: a real key" in end.reason
    assert place in bench.last(ApprovalStep).why
    assert (bench.last(ApprovalStep).about, bench.last(DecisionStep).by) == ("secret", "person")
    assert KEY not in end.reason
    assert SHAPED not in end.reason
    assert bench.last(ErrorStep).code == "E-WORK-SECRET"
    assert bench.blobs == {}
    assert [event for event in bench.events if isinstance(event.body, Delivered)] == []
    assert any((bench.workspaces / "sessions").glob("*/work/README"))


class SetAhead(SystemClock):
    """The machine's clocks, with the monotonic one ahead by what a test says."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetAhead:
    """The clock of the run."""
    clock = SetAhead()
    monkeypatch.setattr(runs, "SystemClock", lambda: clock)
    return clock


def test_a_person_may_let_the_work_leave_with_what_was_found(
    bench: Bench, scripted: ScriptedFactory, clock: SetAhead
) -> None:
    def after_thinking() -> None:
        clock.ahead = 1500.0
        bench.controls.receive(decided(approved=True))

    bench.on_doing = when_asked(after_thinking)

    end = bench.run(scripted([shell(f"echo {SHAPED} > example.txt"), says("Done.")]).url)

    assert end.status == "success"
    assert SHAPED.encode() in bench.blobs[bench.last(Delivered).patch_sha256]
    assert end.stats.duration_ms < clock.ahead * 1000, "the wait counts as work"


def test_without_an_answer_the_work_stays_on_the_drone(bench: Bench, scripted: ScriptedFactory) -> None:
    limits = bench.order.limits.model_copy(update={"approval_timeout": 0.3})
    bench.order = bench.order.model_copy(update={"limits": limits})

    end = bench.run(scripted([shell(f"echo {KEY} > key"), says("Done.")]).url)

    assert (end.status, end.exit_status) == ("failed", ExitStatus.REFUSED)
    assert "the delivery was denied: not answered within 0.3 s" in end.reason
    assert bench.last(DecisionStep).by == "clock"
    assert bench.blobs == {}


def test_an_order_can_be_canceled_while_it_waits_for_the_answer(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.on_doing = when_asked(lambda: bench.controls.receive(EndRun(wish="cancel", reason="enough")))

    end = bench.run(scripted([shell(f"echo {KEY} > key"), says("Done.")]).url)

    assert (end.status, end.exit_status) == ("preempted", ExitStatus.CANCELED)
    assert end.receipt is not None
    assert bench.last(DecisionStep).by == "interruption"
    assert bench.blobs == {}


def test_nobody_is_asked_about_the_work_of_a_run_that_failed_anyway(
    bench: Bench, scripted: ScriptedFactory, clock: SetAhead
) -> None:
    limits = bench.order.limits.model_copy(update={"max_run_seconds": 600})
    bench.order = bench.order.model_copy(update={"limits": limits})

    def pass_the_limit() -> None:
        wait_until(lambda: any((bench.workspaces / "sessions").glob("*/work/written")), seconds=60)
        clock.ahead = 1500.0

    passing = threading.Thread(target=pass_the_limit)
    passing.start()
    end = bench.run(scripted([shell(f"echo {KEY} > key; touch written; sleep 1000"), says("Done.")]).url)
    passing.join()

    assert (end.status, end.exit_status) == ("failed", ExitStatus.TIME_LIMIT)
    assert bench.last(ErrorStep).code == "E-WORK-SECRET"
    assert [event for event in bench.events if isinstance(event.body, ApprovalStep)] == []
    assert bench.blobs == {}


def test_work_without_a_secret_is_delivered_and_so_is_an_example_that_was_there(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    command = "echo 'postgres://user:example@host/db' > README && echo sk-learn-like-pipelines >> README"
    end = bench.run(scripted([shell(command), says("Done.")]).url)
    assert end.status == "success"
    assert bench.last(Delivered).patch_sha256 in bench.blobs


def when_asked(act: Callable[[], None]) -> Callable[[str], None]:
    """Acts when the run waits for a person."""

    def does(text: str) -> None:
        if text == "waiting for approval of delivery":
            act()

    return does


def decided(*, approved: bool, comment: str = "") -> Decide:
    return Decide(run_id="run000000000", call_id="delivery", approved=approved, comment=comment)
