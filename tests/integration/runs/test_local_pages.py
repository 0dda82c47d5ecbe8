"""A run without a control plane reads the web pages that its owner's policy allows, and no other inside the network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drone.local.document import document
from drone.local.order import LocalWishes
from drone.local.run import run_here
from drone.model.scripted.server import ScriptedServer
from tests.support.local_runs import MODEL, call, make_repository
from tests.support.web_pages import page, page_server


def test_a_plan_reads_a_page_that_the_owner_allows_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "copies"))
    repository, policy = make_repository(tmp_path / "project"), tmp_path / "policy.toml"
    with page_server({"/": page("<h1>Words</h1>")}) as site:
        policy.write_text(f'[network]\nhosts = ["{site.place}"]\n')
        calls = [call("web_fetch", url=url) for url in (site.url(), "http://127.0.0.1/")]
        with ScriptedServer([*calls, {"text": "I read it."}]) as server:
            wishes = LocalWishes(prompt="Read", repo=str(repository), model=MODEL, api_base=server.url, mode="plan")
            found = document(run_here(wishes, {**os.environ, "DRONE_POLICY": str(policy)}))

    results = [step["output"] for step in found["steps"] if step["kind"] == "tool_result"]
    assert results[0] == "# Words\n"
    assert "is inside this network" in results[1]
