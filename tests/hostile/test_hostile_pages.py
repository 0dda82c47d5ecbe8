"""Hostile servers, pages and addresses against web_fetch: each gets a short error, and the tool works on."""

from __future__ import annotations

import base64
import contextlib
import gzip
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import quote

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drone.sandbox.network import Gateway, NetworkAccess
from drone.tools.arguments import WebFetchArguments
from drone.tools.web import WebFetch
from drone.tools.web.page_address import address_of, joined
from drone.tools.wrong_use import WrongUse
from shared.redaction import know
from tests.support.web_pages import Answer, fetcher, moved, page, page_server

pytestmark = pytest.mark.hostile

MB = 1000 * 1000
LONG_S = 120.0
"""A time limit that no answer needs."""
TEXT = "text/plain"
PUBLIC = "93.184.215.14"
SECRET = "correct-horse-battery-staple-9182"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
BOMB = gzip.compress(b"\0" * 50 * MB)


def endlessly(begin: bytes, piece: bytes, pause: float = 0.0) -> Answer:
    """Sends a beginning, and then the piece again and again."""

    def send(client: socket.socket, ended: threading.Event) -> None:
        client.sendall(begin)
        while not ended.wait(pause) if pause else not ended.is_set():
            client.sendall(piece)

    return send


def silent(client: socket.socket, ended: threading.Event) -> None:
    """Accepts, and says nothing."""
    del client
    ended.wait()


CASES: Mapping[str, tuple[Answer, str]] = {
    "an endless body": (endlessly(OK + b"\r\n", b"x" * MB), "larger than 5 MB"),
    "an endless body in chunks": (
        endlessly(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
        "larger than 5 MB",
    ),
    "a bomb of gzip": (page(BOMB, TEXT, Content_Encoding="gzip"), "larger than 5 MB"),
    "endless gzip that holds nothing": (
        endlessly(OK + b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b"") * 5000),
        "larger than 5 MB|did not answer completely",
    ),
    "two compressions": (page(BOMB, TEXT, Content_Encoding="gzip, gzip"), "compressed in a way"),
    "silence": (silent, "did not answer completely within 2 s"),
    "a slow drip of the body": (endlessly(OK + b"\r\n", b"x", 0.1), "did not answer completely"),
    "endless headers": (endlessly(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000), "is broken"),
    "endless interim answers": (endlessly(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000), "larger than 5 MB"),
    "endless trailers": (
        endlessly(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 1000),
        "larger than 5 MB",
    ),
    "a chunk of -1 bytes, without end": (
        endlessly(OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", b"x" * MB),
        "larger than 5 MB",
    ),
    "an answer that is no HTTP": (b"SSH-2.0-OpenSSH_9.9\r\n", "is broken"),
    "text in another encoding than it names": (
        page("слова ".encode("cp1251") * 99, "text/plain; charset=utf-8"),
        "in an unknown encoding",
    ),
    "a picture": (page(b"\x89PNG", "image/png"), "is image/png, not text"),
    "a redirect to itself": (moved("/"), "more than 5 redirects"),
    "a redirect to a file": (moved("file:///etc/passwd"), "not a URL of the web"),
    "a redirect to the metadata address": (moved("http://169.254.169.254/latest/"), "not among the hosts"),
    "a redirect with a login": (moved("http://me:word@127.0.0.1/"), "with a login"),
    "a redirect of 9,000 characters": (moved("/" + "x" * 9000), "at most 2,000"),
    "404": (page('{"error": "no such page"}', "application/json", "404 Not Found"), r"no such page.*check the address"),
}


def test_a_hostile_answer_is_a_short_error_in_bounded_time_and_memory() -> None:
    threads = {*threading.enumerate()}
    for case, (answer, words) in CASES.items():
        with page_server({"/": answer}) as server:
            # Only the time limit ends an answer that never does; all others have another cause on any machine.
            tool = fetcher(server.place, seconds=2 if "did not answer" in words else LONG_S)
            before = psutil.Process().memory_info().rss
            with pytest.raises(WrongUse) as refused:
                tool(WebFetchArguments(url=server.url()))
            assert re.search(words, str(refused.value)), case
            assert psutil.Process().memory_info().rss - before < 60 * MB, case
            assert len(str(refused.value)) < 500, case
            connections = psutil.Process().net_connections()
            assert [each for each in connections if each.raddr and str(each.raddr[1]) in server.place] == [], case
    assert {*threading.enumerate()} <= threads


PAGES = {
    "100,000 nested elements": "<div>" * 100_000 + "deep",
    "tables nested 2,000 times": "<table><tr><td>" * 2_000 + "deep",
    "a million unclosed tags": "<b><i><a href=x>" * 300_000 + "words",
    "an endless comment": "words<!--" + "-" * 4 * MB,
    "a million entities": "words" + "&" * 1_000_000 + "&#x110000;&#0;",
    "4 MB of spaces": "words" + " " * 4 * MB + "end",
    "4 MB of markdown": "words" + "*_`[" * MB,
}


def test_a_hostile_page_is_converted_or_refused_in_bounded_time() -> None:
    before = set(psutil.Process().children())
    refusals = "the page is too complex|the page is nested too deeply|.*did not answer completely"
    with page_server({f"/{case}": page(body) for case, body in enumerate(PAGES.values())}) as server:
        for number, case in enumerate(PAGES):
            try:
                output = fetcher(server.place, seconds=1)(WebFetchArguments(url=server.url(f"/{number}"))).output
            except WrongUse as refused:
                output = str(refused)
            assert re.match(f"words|.*deep|{refusals}", output, re.DOTALL), case
    assert set(psutil.Process().children()) <= before


def test_an_encoding_that_is_none_of_the_web_is_not_used() -> None:
    body = b"+AGEAYg- \\u0061 plain" * 1000
    for charset in ("zlib", "idna", "unicode_escape", "utf-7", "undefined", "\0", "a" * 999):
        with page_server({"/": page(body, f"text/plain; charset={charset!r}")}) as server:
            output = fetcher(server.place)(WebFetchArguments(url=server.url())).output
        assert output.startswith("+AGEAYg- \\u0061 plain"), charset


REFUSED = {
    "inside this network|cannot be resolved|not a URL": (
        *("http://127.1/", "http://2130706433/", "http://0x7f.1/", "http://0/", "http://localhost/", "http://[::1]/"),
        *("http://[::ffff:127.0.0.1]/", "http://169.254.169.254/", "http://10.0.0.1/", "https://192.168.1.1/"),
        *("http://172.16.0.1/", "http://100.100.100.200/", "http://[fd00:ec2::254]/", "http://[64:ff9b::7f00:1]/"),
        *("http://127.0.0.1./", "http://LOCALHOST/", "http://①②⑦.0.0.1/", "http://[fe80::1%25lo]/"),
    ),
    "not a valid URL": ("http://[::1", "http://a:99999/", f"http://{'a' * 70}.org/"),
    "not a URL of the web": ("file:///etc/passwd", "//example.org/", "example.org", "http://"),
    "characters that no URL has": ("http://a\r\nX: y/",),
    "with a login": ("http://me:word@example.org/",),
    "port 22 is not allowed": ("http://example.org:22/",),
    "at most 2,000": (f"http://example.org/{'a' * 3000}",),
}


def test_a_url_that_is_none_of_the_web_or_leads_inside_in_any_spelling_is_refused() -> None:
    tool = WebFetch(Gateway(NetworkAccess(), {}), lambda: None)
    for words, urls in REFUSED.items():
        for url in urls:
            with pytest.raises(WrongUse, match=words) as refused:
                tool(WebFetchArguments(url=url))
            assert len(str(refused.value)) < 500


def test_a_path_cannot_add_lines_to_the_request() -> None:
    with page_server({}) as server:
        for path in ("/a\x0b", "/a\x85", "/a HTTP/1.1\u2028Evil: yes", "/a\r\nEvil: yes", "/a\0"):
            with pytest.raises(WrongUse, match="characters that no URL has"):
                fetcher(server.place)(WebFetchArguments(url=server.url(path)))
    assert server.requests == []
    with pytest.raises(WrongUse, match="characters that no URL has"):
        address_of("http://example.org/\ud800")


ANY = st.text(st.characters(), max_size=60)
"""Also lone surrogates, which JSON can spell."""


@given(ANY | st.builds("https://{}".format, ANY) | st.builds("http://example.org/{}".format, ANY), ANY)
def test_no_url_and_no_redirect_raises_anything_but_wrong_use(url: str, target: str) -> None:
    for address in (lambda: url, lambda: joined("http://example.org/a", target)):
        with contextlib.suppress(WrongUse):
            found = address_of(address())
            assert re.fullmatch(r"[!-~]+", found.host + found.target)


@contextlib.contextmanager
def owners_proxy() -> Iterator[tuple[dict[str, str], list[str]]]:
    """The drone's environment with a proxy that connects to nothing, and what it was asked."""
    with page_server({f"{PUBLIC}:80": page("", TEXT, "503 Service Unavailable")}) as server:
        yield {"https_proxy": f"http://{server.place}"}, server.requests


def rebinding(*answers: str) -> Callable[[str, int], Sequence[str]]:
    """A resolver with another answer for each look-up."""
    left = list(answers)
    return lambda _host, _port: [left.pop(0)]


def test_the_address_that_was_checked_is_the_one_that_is_connected_to() -> None:
    with owners_proxy() as (environ, asked):
        gateway = Gateway(NetworkAccess(), environ, rebinding(PUBLIC, "127.0.0.1", "169.254.169.254"))
        tool = WebFetch(gateway, lambda: None)
        said = []
        for _ in range(3):
            with pytest.raises(WrongUse) as refused:
                tool(WebFetchArguments(url="http://rebinding.test/"))
            said.append(str(refused.value))
    assert [each.split(" ")[1] for each in asked] == [f"{PUBLIC}:80"]
    assert "503" in said[0]
    assert all("inside this network" in each for each in said[1:])


def test_a_redirect_inside_is_refused_also_under_a_name_that_was_public_before() -> None:
    with page_server({"/": moved("http://site.test/again")}) as server:
        access = NetworkAccess("public", (server.place,))
        gateway = Gateway(access, {}, lambda host, _port: ["127.0.0.1"])
        with pytest.raises(WrongUse, match=r"site\.test is inside this network"):
            WebFetch(gateway, lambda: None)(WebFetchArguments(url=server.url()))
    assert len(server.requests) == 1


@pytest.fixture
def secret() -> Iterator[str]:
    know([SECRET])
    yield SECRET
    know([])


def test_no_secret_leaves_in_a_url(secret: str) -> None:
    spellings = [
        f"?key={secret}",
        f"?key={quote(secret, safe='').replace('-', '%2D')}",
        f"?key={base64.b64encode(secret.encode()).decode()}",
        f"/{secret[::-1]}",
        f"?key={secret.encode().hex()}",
        "?token=ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2,
    ]
    with page_server({"/": page("fine", TEXT)}) as server:
        tool = fetcher(server.place)
        for spelling in spellings:
            with pytest.raises(WrongUse, match="contains a key") as refused:
                tool(WebFetchArguments(url=server.url(f"/{spelling}")))
            assert secret not in str(refused.value)
        with pytest.raises(WrongUse, match="contains a key"):
            tool(WebFetchArguments(url=f"http://{secret}.example.org/"))
        assert server.requests == []
        assert tool(WebFetchArguments(url=server.url())).output == "fine"


def test_a_cut_never_divides_a_secret(secret: str) -> None:
    with page_server({"/": page("x" * 4990 + secret + "y" * 20_000, TEXT)}) as server:
        tool = fetcher(server.place)
        first = tool(WebFetchArguments(url=server.url())).output
        second = tool(WebFetchArguments(url=server.url(), offset=4990)).output
    assert first.startswith("x" * 4990 + "\n[…")
    assert second.startswith(secret)


def test_a_name_server_that_never_answers_does_not_hold_the_run() -> None:
    released = threading.Event()

    def resolve(_host: str, _port: int) -> Sequence[str]:
        released.wait()
        return [PUBLIC]

    with owners_proxy() as (environ, asked):
        tool = WebFetch(Gateway(NetworkAccess(), environ, resolve), lambda: None, seconds=1)
        with pytest.raises(WrongUse, match="did not answer completely within 1 s"):
            tool(WebFetchArguments(url="http://slow.test/"))
        released.set()
        for thread in threading.enumerate():
            if thread.name == "web_fetch":
                thread.join()
    assert [each.split(" ")[1] for each in asked] == [f"{PUBLIC}:80"]
