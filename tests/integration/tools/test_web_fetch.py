"""web_fetch: pages of real servers on loopback, which the owner's policy allows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from drone.agent.values import ToolResult
from drone.sandbox import choose
from drone.sandbox.network import NetworkAccess
from drone.sandbox.output import SHOWN
from drone.tools.arguments import WebFetchArguments
from drone.tools.wrong_use import WrongUse
from shared.errors import Preempted
from tests.support.certificates import DAY, Authority
from tests.support.toolboxes import called, toolbox, workspace
from tests.support.web_pages import Answer, PageServer, fetcher, moved, page, page_server

__all__ = ["workspace"]

DOCUMENT = """<!doctype html><html><head><title>T</title><style>p {color: red}</style></head><body>
<nav><a href="/home">Home</a></nav>
<main><h1><a href="#guide">Guide</a></h1><p>Read <a href="../more?x=1">more</a>, and <strong>do</strong>.</p>
<pre><code>x = 1
  y &lt; 2</code></pre>
<ul><li>one<li><a href="http://[">two</a></ul>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<script>steal()</script></main><footer>imprint</footer></body></html>"""

Fetch = Callable[..., ToolResult]


@pytest.fixture
def server() -> Iterator[PageServer]:
    with page_server({}) as made:
        yield made


@pytest.fixture
def fetch(server: PageServer) -> Fetch:
    """Serves an answer at /docs/page, and fetches it."""
    tool = fetcher(server.place)

    def fetch(answer: Answer | None = None, path: str = "/docs/page", offset: int = 0) -> ToolResult:
        if answer is not None:
            server.answers["/docs/page"] = answer
        return tool(WebFetchArguments(url=server.url(path), offset=offset))

    return fetch


def test_html_becomes_markdown_with_absolute_links_and_without_scripts(fetch: Fetch, server: PageServer) -> None:
    text = fetch(page(DOCUMENT)).output
    assert text.startswith("# Guide\n")
    assert f"[more](http://{server.place}/more?x=1), and **do**." in text
    assert "```\nx = 1\n  y < 2\n```" in text
    assert "- one\n- two" in text
    assert "| a | b |" in text
    assert not any(word in text for word in ("steal", "color", "imprint", "Home", "<p", "</"))
    assert fetch(page("<div id=app></div><script>render()</script>")).output == "(the page has no text)"
    assert fetch(page("word " * 1000, "text/plain", packed=True)).output == "word " * 1000


def test_other_text_comes_as_it_is_and_is_read_in_its_encoding(fetch: Fetch) -> None:
    size, html = "Größe 5 €", b"<meta http-equiv=x content='text/html; charset=cp1252'><p>"
    cases: list[tuple[str, str | bytes, str]] = [
        ("text/plain", "a <b> & c\n\n\n\nd  ", "a <b> & c\n\n\n\nd  "),
        ("application/problem+json", '{"a": "<p>"}\n', '{"a": "<p>"}\n'),
        ("image/svg+xml", "<svg/>", "<svg/>"),
        ("application/octet-stream", "plain words\n", "plain words\n"),
        ("", "no type\n", "no type\n"),
        ("text/plain; charset=iso-8859-1", size.encode("cp1252"), size),
        ("text/plain; charset=nonsense", size.encode(), size),
        ("text/plain", size.encode("utf-16"), size),
        ("text/plain", size.encode("utf-8-sig"), size),
        ("text/html", html + size.encode("cp1252"), f"{size}\n"),
    ]
    assert [(kind, got) for kind, body, text in cases if (got := fetch(page(body, kind)).output) != text] == []


def test_a_long_page_shows_head_and_tail_and_is_read_on_without_another_request(
    fetch: Fetch, server: PageServer
) -> None:
    body = "".join(f"line {number:05}\n" for number in range(4000))
    first = fetch(page(body, "text/plain")).output
    half = SHOWN // 2
    assert first == f"{body[:half]}\n[… 34,000 characters elided; read on with offset 5000 …]\n{body[-half:]}"
    parts = [fetch(offset=offset).output for offset in range(half, len(body), SHOWN)]
    assert parts[0] == f"{body[half : half + SHOWN]}\n(more follows; read on with offset 15000)"
    assert body[:half] + "".join(each.partition("\n(more follows")[0] for each in parts) == body
    assert len(server.requests) == 1
    with pytest.raises(WrongUse):
        fetch(offset=len(body))


def test_a_redirect_is_followed_and_a_url_is_sent_as_a_browser_sends_it(fetch: Fetch, server: PageServer) -> None:
    server.answers |= {"/a": moved("/b?x=%20y#part"), "/b?x=%20y": moved(server.url("/docs/page"))}
    server.answers["/docs/page"] = page("here", "text/plain")
    assert fetch(path="/a").output == f"(redirected to {server.url('/docs/page')})\n\nhere"
    server.answers["/gr%C3%B6%C3%9Fe/a%20b?q=%C3%A4&r=%41"] = page("found", "text/plain")
    assert fetch(path="/größe/a b?q=ä&r=%41#top").output == "found"
    assert f"\r\nHost: {server.place}\r\n" in server.requests[-1]
    assert not any(word in server.requests[-1].lower() for word in ("cookie", "authorization", "referer"))


def test_https_is_verified_with_the_authorities_of_the_machine_and_what_is_wrong_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with page_server({"/": page("safe", "text/plain")}, authority.issue("site", "127.0.0.1")) as server:
        assert fetcher(server.place)(WebFetchArguments(url=server.url())).output == "safe"
    expired = authority.issue("expired", "127.0.0.1", begins=-2 * DAY, ends=-timedelta(hours=1))
    wrong = {
        "is self-signed": Authority.self_signed(tmp_path, "127.0.0.1"),
        "has expired": expired,
        "is for another host": authority.issue("other", "example.org"),
        "in TLS": None,
    }
    for words, pair in wrong.items():
        with page_server({"/": page("x")}, pair) as server, pytest.raises(WrongUse, match=words):
            fetcher(server.place)(WebFetchArguments(url=f"https://{server.place}/"))
        assert not any("GET" in each for each in server.requests), words


def test_a_run_that_ends_does_not_wait_for_the_server() -> None:
    asked = threading.Event()

    def silent(_client: object, ended: threading.Event) -> None:
        asked.set()
        ended.wait()

    def check() -> None:
        if asked.is_set():
            raise Preempted

    with page_server({"/": silent}) as server, pytest.raises(Preempted):
        fetcher(server.place, seconds=600, check=check)(WebFetchArguments(url=server.url()))


def test_every_mode_has_the_tool_with_the_networks_policy(workspace: Path, server: PageServer) -> None:
    server.answers["/"] = page("hello", "text/plain")
    not_listed = f"{server.place} is not among the hosts that the drone's owner allows"
    policies = {
        NetworkAccess("hosts", (server.place,)): "hello",
        NetworkAccess("host"): "hello",
        NetworkAccess("hosts", ("example.org",)): f"Error: {not_listed} (network policy of this drone)",
        NetworkAccess("none"): "Error: this run has no network: the drone's owner allows none",
    }
    for mode in ("plan", "build"):
        for access, answer in policies.items():
            tools = toolbox(workspace, mode, sandbox=choose("none", {}, access))
            result = called(tools, "web_fetch", url=server.url())
            assert (result.is_error, result.output.partition(";")[0]) == (answer != "hello", answer), mode
