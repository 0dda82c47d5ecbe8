"""The scripted model as the HTTP server that it is: streaming and not, honest about itself, and ended by a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.scripted import ScriptedFactory, says

BEARER = {"Authorization": "Bearer k"}
ASK = {"model": "scripted", "messages": [{"role": "user", "content": "Hello."}]}


def test_every_answer_says_that_it_is_scripted(scripted: ScriptedFactory) -> None:
    server = scripted([says("Hello."), {"status": 500}])
    answers = [
        httpx.post(f"{server.url}/chat/completions", json=ASK),
        httpx.get(f"{server.url}/models"),
        httpx.get(f"{server.url}/nothing"),
    ]
    assert [answer.headers["X-Scripted-Model"] for answer in answers] == ["yes"] * 3
    with_key = scripted([says("Hello.")], api_key="k")
    asked = [httpx.post(f"{with_key.url}/chat/completions", json=ASK, headers=each) for each in ({}, BEARER)]
    assert [answer.status_code for answer in asked] == [401, 200]
    assert answers[1].json()["data"][0]["id"] == answers[0].json()["model"] == "scripted"


def test_a_request_that_is_none_gets_400(scripted: ScriptedFactory) -> None:
    for body in (b"", b"[]", b"{}", b'{"messages": 5}', b"\xff"):
        server = scripted([says("Hello.")])
        assert httpx.post(f"{server.url}/chat/completions", content=body).status_code == 400, body


def test_the_command_prints_its_address_first_and_ends_on_sigterm(tmp_path: Path) -> None:
    script = tmp_path / "a script.json"
    script.write_text(json.dumps([says("Hello.")]))
    command = [sys.executable, "-m", "drone.model.scripted.server", "--script", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        answer = httpx.post(f"{url}/chat/completions", json=ASK)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert answer.json()["choices"][0]["message"]["content"] == "Hello."


def test_a_script_that_cannot_be_read_is_wrong_use_without_a_traceback(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"tekst": 1}]')
    command = [sys.executable, "-m", "drone.model.scripted.server", "--script", script]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ("cannot read the script" in ended.stderr, "Traceback" in ended.stderr) == (True, False)
