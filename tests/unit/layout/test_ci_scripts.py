"""The scripts of `make test`, `make check`, `make audit` and `make release`: what passes, and what does not."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.documents import ROOT


def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"ci_{name}", ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_case_that_passes_in_the_second_run_is_named_as_unstable_with_its_first_error(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_flaky.py").write_text(
        "from pathlib import Path\n\ndef test_fails_once():\n    seen = Path('seen')\n    first = not seen.exists()\n"
        "    seen.touch()\n    assert not first, 'the machine was busy'\n"
    )
    command = [sys.executable, ROOT / ".ci" / "gate.py", "-q", "-p", "no:schemathesis"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ended.returncode == 0
    assert "unstable  test_flaky.py::test_fails_once - AssertionError: the machine was busy\n" in ended.stdout


def test_the_gate_is_red_for_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = script("gate")

    def ended(**facts: Any) -> tuple[int, Any]:
        record = gate.Record()
        vars(record).update({"status": 1, "failed": {"a": "error"}, **facts})
        return 1, record

    red: dict[str, list[tuple[int, Any]]] = {
        "ended before its record": [ended(status=None)],
        "eleven failed": [ended(failed=dict.fromkeys("abcdefghijk", ""))],
        "not collected": [ended(collected=False)],
        "pytest itself": [ended(status=3)],
        "fails again": [ended(), ended()],
        "skipped then": [ended(), (0, gate.Record())],
        "another fails then": [ended(), ended(failed={"b": "error"}, passed={"a"})],
    }
    for name, runs in red.items():
        left = iter(runs)
        monkeypatch.setattr(gate, "_run", lambda *_, left=left: next(left))
        assert gate.main([]) != 0, name
        assert list(left) == [], name


def test_a_cycle_of_modules_is_named_also_through_a_deferred_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = {"__init__": "", "a": "from room import b", "b": "def later():\n    from room import a\n"}
    (tmp_path / "room").mkdir()
    for name, text in modules.items():
        (tmp_path / "room" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)

    cycle = script("module_cycles").find_cycle("room")
    assert (len(cycle), cycle[0] == cycle[-1], set(cycle)) == (3, True, {"room.a", "room.b"})


IDNA = {"name": "idna", "version": "3.6", "vulns": [{"id": "PYSEC-2024-60", "fix_versions": ["3.7"]}]}
SKIPPED = {"name": "idna", "skip_reason": "Dependency not found on PyPI"}


def test_the_audit_fails_for_a_finding_and_not_where_no_index_can_be_reached(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = script("audit")
    monkeypatch.setattr(sys, "argv", ["audit.py"])
    cases: list[tuple[str, int, str]] = [
        (json.dumps({"dependencies": [{**IDNA, "vulns": []}, SKIPPED]}), 0, "0 known vulnerabilities in 1 of 2"),
        (json.dumps({"dependencies": [IDNA]}), 1, "idna 3.6: PYSEC-2024-60, fixed in 3.7"),
        (json.dumps({"dependencies": [SKIPPED]}), 0, "Known vulnerabilities are not looked up"),
        ("", 0, "Known vulnerabilities are not looked up: no route"),
    ]
    for printed, code, said in cases:
        done = SimpleNamespace(stdout=printed, stderr="no route")
        monkeypatch.setattr(audit, "subprocess", SimpleNamespace(run=lambda *_, done=done, **__: done))
        assert (audit.main(), said in capsys.readouterr().out) == (code, True), said
    assert audit.not_installed("ERROR: no matching distribution (from versions: none)") == 0
    assert audit.not_installed("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES") == 1


CHANGES = "# Changes\n\n## 1.3.0 (unreleased)\n\n- New.\n\n## 1.2.9 (2026-01-31)\n\n- Old.\n"


def test_a_release_sets_the_version_and_dates_its_changes_and_a_mistake_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release, changes, project = script("release"), tmp_path / "CHANGELOG.md", tmp_path / "pyproject.toml"
    project.write_text('version = "1.2.9"\n')
    dated = CHANGES.replace("unreleased", "2026-02-01")
    mistakes = [
        (CHANGES, "", "is not a version"),
        (CHANGES, "v1.3.0", "is not a version"),
        (CHANGES, "1.2.9", "is not higher than the last release, 1.2.9"),
        (dated, "1.4.0", "no changes to release"),
    ]
    for text, version, said in mistakes:
        changes.write_text(text)
        assert release.main([version], tmp_path) == 2
        assert said in capsys.readouterr().err
        assert (changes.read_text(), project.read_text()) == (text, 'version = "1.2.9"\n')

    changes.write_text(CHANGES)
    assert release.main(["1.10.0"], tmp_path) == 0
    assert project.read_text() == 'version = "1.10.0"\n'
    first, second = re.findall(r"(?m)^## (.+)$", changes.read_text())
    assert re.fullmatch(r"1\.10\.0 \(\d{4}-\d\d-\d\d\)", first)
    assert second == "1.2.9 (2026-01-31)"
