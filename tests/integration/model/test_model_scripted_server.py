"""The scripted model as the HTTP server that it is: streaming and not, honest about itself, and ended by a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support.scripted import ScriptedFactory, calls, says

BEARER = {"Authorization": "Bearer k"}
ASK = {"model": "scripted", "messages": [{"role": "user", "content": "Hello."}]}


def _post(server: ScriptedServer, **more: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/chat/completions", json={**ASK, **more}, timeout=60)


def _events(response: httpx.Response) -> list[str]:
    return [line.removeprefix("data: ") for line in response.text.splitlines() if line]


def test_a_whole_answer_has_message_usage_and_finish(scripted: ScriptedFactory) -> None:
    answer = _post(scripted([calls("one", text="Look.", thinking="Hm.")])).json()
    message = answer["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("Look.", "Hm.")
    assert message["tool_calls"][0]["function"] == {"name": "echo", "arguments": '{"text": "one"}'}
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    assert answer["usage"]["total_tokens"] > 0


def test_a_stream_ends_with_usage_where_it_was_asked_for_and_with_done(scripted: ScriptedFactory) -> None:
    server = scripted([says("One two.")])
    with_usage = _events(_post(server, stream=True, stream_options={"include_usage": True}))
    without = _events(_post(server, stream=True))
    assert (with_usage[-1], without[-1]) == ("[DONE]", "[DONE]")
    assert json.loads(with_usage[-2])["usage"]["completion_tokens"] > 0
    assert "usage" not in json.loads(without[-2])


def test_every_answer_says_that_it_is_scripted(scripted: ScriptedFactory) -> None:
    server = scripted([says("Hello."), {"status": 500}])
    answers = [_post(server), httpx.get(f"{server.url}/models"), httpx.get(f"{server.url}/nothing")]
    assert [answer.headers["X-Scripted-Model"] for answer in answers] == ["yes"] * 3
    with_key = scripted([says("Hello.")], api_key="k")
    asked = [httpx.post(f"{with_key.url}/chat/completions", json=ASK, headers=each) for each in ({}, BEARER)]
    assert [answer.status_code for answer in asked] == [401, 200]
    assert answers[1].json()["data"][0]["id"] == answers[0].json()["model"] == "scripted"


def test_a_cut_answer_breaks_the_connection_off(scripted: ScriptedFactory) -> None:
    for stream in (True, False):
        with pytest.raises(httpx.RemoteProtocolError):
            _post(scripted([says("Never whole.", cut_after=2)]), stream=stream)


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
    for content in ("{", '[{"tekst": 1}]'):
        script = tmp_path / "script.json"
        script.write_text(content)
        command = [sys.executable, "-m", "drone.model.scripted.server", "--script", script]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 2, content
        assert ("cannot read the script" in ended.stderr, "Traceback" in ended.stderr) == (True, False), content
