"""A secret in the work leaves the drone by no push, patch or bundle, unless a person allows it; the work is kept."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from drone.runs.delivery import AUTHOR
from drone.runs.pipe import EndRun
from drone.sandbox import choose
from shared.control import Decide
from shared.events import ApprovalStep, DecisionStep, Delivered, ErrorStep
from shared.outcome import ExitStatus
from shared.redaction import Redactor
from tests.support import sandboxes
from tests.support.repositories import MakeWorkspaces, calc_project, prepared, work_order
from tests.support.runs import Bench, shell
from tests.support.scripted import ScriptedFactory, says

pytestmark = pytest.mark.usefixtures("warm_model")
KEY = "Qk7-Zx9Wv2Tp4Ls6Rm1Jd8Hf3Gb5Ny0Cu_Ea"
PACKED = base64.b64encode(f"user:{KEY}".encode()).decode()
SHAPED = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
PLACES = {
    f"printf 'one\\ntwo {KEY}\\n' > config.py": "config.py line 2",
    f"echo {PACKED} > packed.py": "packed.py line 1",
    f"printf '{KEY[:20]}\\n{KEY[20:]}\\n' > split.py": "a version of split.py",
    f"printf 'a\\0{KEY}' > data.bin": "a version of data.bin",
    f"mkdir -p a && echo '{SHAPED}' > a/b.txt": "a/b.txt line 1",
    f"echo x > x && git add x && git commit -qm 'use {KEY}'": "the message of commit ",
    f"echo {KEY} > k && git add k && git commit -qm k && git rm -q k && git commit -qm k2": "a version of k",
    f"echo x > {KEY}.txt": "a file whose name contains a secret",
    f"printf 'x{KEY}\\rprint(1)\\n' > return.py": "return.py line 1",
}
"""Where a command leaves a secret."""
HARMLESS = "echo 'postgres://user:example@host/db' > README.md && echo sk-learn-like-pipelines >> README.md"
"""Where a command leaves a secret; the last leaves none."""


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.secrets = Redactor([KEY])
    return bench


def when_asked(act: Callable[[], None]) -> Callable[[str], None]:
    """Acts when the run waits for a person."""
    return lambda text: act() if text == "waiting for approval of delivery" else None


def decided(*, approved: bool, comment: str = "") -> Decide:
    return Decide(run_id="run000000000", call_id="delivery", approved=approved, comment=comment)


def test_a_secret_is_found_anywhere_in_the_work(
    tmp_path: Path, drone_git: Mapping[str, str], workspaces_in: MakeWorkspaces
) -> None:
    workspaces = workspaces_in(tmp_path / "workspace", drone_git, choose("none", os.environ))
    remote, places = calc_project(tmp_path / "remote.git"), [*PLACES.items()]
    # No more than five places are named.
    for left in (places[:5], places[5:], [(HARMLESS, "")]):
        workspace = prepared(workspaces, work_order(f"file://{remote}"))
        sandboxes.shell(workspace.sandbox, workspace.path, "\n".join(command for command, _ in left))
        made = workspace.deliver("fleet/work", "The work", AUTHOR)
        found = workspace.places_of_secrets(made, Redactor([KEY]))
        assert KEY not in str(found)
        expected = sorted(place for _, place in left if place)
        cut = [each[: len(place)] for each, place in zip(sorted(found), expected, strict=True)]
        assert cut == expected


def test_work_with_a_secret_stays_on_the_drone(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.on_doing = when_asked(lambda: bench.controls.receive(decided(approved=False, comment="a real key")))

    end = bench.run(scripted([shell(f"echo {KEY} > config.py; echo {SHAPED} > b.txt"), says("Done.")]).url)

    assert (end.status, end.exit_status) == ("failed", ExitStatus.REFUSED)
    assert end.reason.startswith("the work contains a secret, so it was neither pushed nor uploaded: found in ")
    assert "b.txt line 1; config.py line 1; the delivery was denied: a real key" in end.reason
    assert "config.py line 1" in bench.last(ApprovalStep).why
    assert (bench.last(ApprovalStep).about, bench.last(DecisionStep).by) == ("secret", "person")
    assert KEY not in end.reason
    assert SHAPED not in end.reason
    assert bench.last(ErrorStep).code == "E-WORK-SECRET"
    assert (bench.blobs, bench.of(Delivered)) == ({}, [])
    assert any((bench.workspaces / "sessions").glob("*/work/README"))


def test_unanswered_or_after_a_cancel_the_work_stays_on_the_drone(bench: Bench, scripted: ScriptedFactory) -> None:
    leaks = [shell(f"echo {KEY} > key"), says("Done.")]
    bench.limit(approval_timeout=0.3)
    end = bench.run(scripted(leaks).url)
    assert (end.status, end.exit_status, bench.last(DecisionStep).by) == ("failed", ExitStatus.REFUSED, "clock")
    assert "the delivery was denied: not answered within 0.3 s" in end.reason

    bench.limit(approval_timeout=60)
    bench.on_doing = when_asked(lambda: bench.controls.receive(EndRun(wish="cancel", reason="enough")))
    end = bench.run(scripted(leaks).url)
    assert (end.status, end.exit_status, end.receipt is None) == ("preempted", ExitStatus.CANCELED, False)
    assert bench.last(DecisionStep).by == "interruption"
    assert bench.blobs == {}


def test_nobody_is_asked_about_the_work_of_a_run_that_failed_anyway(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.change_project(verify=("false",))
    bench.limit(verify_attempts=0)
    end = bench.run(scripted([shell(f"echo {KEY} > key"), says("Done.")]).url)
    assert (end.status, end.exit_status) == ("failed", ExitStatus.VERIFICATION_FAILED)
    assert bench.last(ErrorStep).code == "E-WORK-SECRET"
    assert (bench.of(ApprovalStep), bench.blobs) == ([], {})
