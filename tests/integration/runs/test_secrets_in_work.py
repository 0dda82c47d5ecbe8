"""A secret in the work leaves the drone neither by a push nor in a patch or a bundle; the work is kept."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from shared.events import Delivered, ErrorStep
from shared.outcome import ExitStatus
from shared.redaction import Redactor
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

    end = bench.run(scripted([shell(command), says("Done.")]).url)

    assert (end.status, end.exit_status) == ("failed", ExitStatus.REFUSED)
    assert end.reason.startswith("the work contains a secret, so it was neither pushed nor uploaded: found in ")
    assert place in end.reason
    assert KEY not in end.reason
    assert SHAPED not in end.reason
    assert bench.last(ErrorStep).code == "E-WORK-SECRET"
    assert bench.blobs == {}
    assert [event for event in bench.events if isinstance(event.body, Delivered)] == []
    assert any((bench.workspaces / "sessions").glob("*/work/README"))


def test_work_without_a_secret_is_delivered_and_so_is_an_example_that_was_there(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    command = "echo 'postgres://user:example@host/db' > README && echo sk-learn-like-pipelines >> README"
    end = bench.run(scripted([shell(command), says("Done.")]).url)
    assert end.status == "success"
    assert bench.last(Delivered).patch_sha256 in bench.blobs
