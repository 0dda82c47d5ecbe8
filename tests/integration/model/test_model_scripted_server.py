"""The scripted model as the HTTP server that it is: streaming and not, honest about itself, and ended by a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.scripted import ScriptedFactory, calls, says

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
    assert answers[1].json()["data"][0]["id"] == answers[0].json()["model"] == "scripted"


def test_a_request_that_is_longer_than_the_window_is_refused_as_endpoints_do(scripted: ScriptedFactory) -> None:
    server = scripted([says("Hello.")], window=100, count=lambda body: len(body["messages"][0]["content"]))
    answer = _post(server, messages=[{"role": "user", "content": "x" * 101}])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert _post(server).json()["usage"]["prompt_tokens"] == len("Hello.")


def test_many_conversations_play_the_whole_script_at_once(scripted: ScriptedFactory) -> None:
    server = scripted([says("one", delay_s=0.2), says("two")])
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: _post(server), range(8)))
    assert [answer.json()["choices"][0]["message"]["content"] for answer in answers] == ["one"] * 8


def test_a_status_comes_with_its_error_and_retry_after(scripted: ScriptedFactory) -> None:
    answer = _post(scripted([{"status": 429, "error": "slow down", "retry_after": 7}]))
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7.0")
    assert answer.json()["error"]["message"] == "slow down"


@pytest.mark.parametrize("stream", [True, False])
def test_a_cut_answer_breaks_the_connection_off(scripted: ScriptedFactory, stream: bool) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        _post(scripted([says("Never whole.", cut_after=2)]), stream=stream)


def test_a_script_at_its_end_says_so(scripted: ScriptedFactory) -> None:
    answer = _post(scripted([]))
    assert (answer.status_code, "number 1 was requested" in answer.text) == (400, True)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages": 5}', b"\xff"])
def test_a_request_that_is_none_gets_400(scripted: ScriptedFactory, body: bytes) -> None:
    server = scripted([says("Hello.")])
    assert httpx.post(f"{server.url}/chat/completions", content=body).status_code == 400


def test_with_a_key_only_requests_that_have_it_are_answered(scripted: ScriptedFactory) -> None:
    server = scripted([says("Hello.")], api_key="k")
    assert _post(server).status_code == 401
    headers = {"Authorization": "Bearer k"}
    assert httpx.post(f"{server.url}/chat/completions", json=ASK, headers=headers).status_code == 200


def test_ending_the_server_does_not_wait_for_a_reply_that_is_delayed() -> None:
    with ScriptedServer([says("late", delay_s=600)]) as server, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_post, server)
        wait_until(lambda: server.received)
        server.stop()
        waiting.exception(timeout=60)  # raises where the request still waits
    assert waiting.done()


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


@pytest.mark.parametrize("content", ["{", '[{"tekst": 1}]'])
def test_a_script_that_cannot_be_read_is_wrong_use_without_a_traceback(tmp_path: Path, content: str) -> None:
    script = tmp_path / "script.json"
    script.write_text(content)
    command = [sys.executable, "-m", "drone.model.scripted.server", "--script", script]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ("cannot read the script" in ended.stderr, "Traceback" in ended.stderr) == (True, False)
