"""The proxy that an error names: the one that git, httpx and LiteLLM use."""

from __future__ import annotations

import ssl
from itertools import product

import httpx
import pytest

from shared.proxies import Proxy, proxy_of

HTTP, HTTPS = "http://models.example:8080/v1", "https://models.example/v1"


def test_a_proxy_is_named_by_its_variable_and_its_host_without_a_login() -> None:
    cases: dict[tuple[str, str, str], Proxy | None] = {
        (HTTPS, "https_proxy", "http://ada:secret@proxy.example:3128"): Proxy("https_proxy", "proxy.example:3128"),
        (HTTPS, "HTTPS_PROXY", "http://proxy.example:3128/"): Proxy("HTTPS_PROXY", "proxy.example:3128"),
        (HTTPS, "HTTPS_PROXY", "proxy.example:3128"): Proxy("HTTPS_PROXY", "proxy.example:3128"),
        (HTTPS, "https_proxy", "https://[::1]:3128"): Proxy("https_proxy", "[::1]:3128"),
        (HTTPS, "ALL_PROXY", "socks5://proxy.example"): Proxy("ALL_PROXY", "proxy.example"),
        (HTTP, "all_proxy", "http://proxy.example"): Proxy("all_proxy", "proxy.example"),
        (HTTP, "HTTP_PROXY", "http://proxy.example"): Proxy("HTTP_PROXY", "proxy.example"),
        (HTTP, "https_proxy", "http://proxy.example"): None,
        (HTTPS, "HTTP_PROXY", "http://proxy.example"): None,
        (HTTPS, "https_proxy", ""): None,
        ("ssh://git@models.example/x", "all_proxy", "http://proxy.example"): None,
        ("git@models.example:x", "all_proxy", "http://proxy.example"): None,
        ("/srv/x.git", "all_proxy", "http://proxy.example"): None,
    }
    assert {case: proxy_of(case[0], {case[1]: case[2]}) for case in cases} == cases
    both = {"https_proxy": "http://small:1", "HTTPS_PROXY": "http://large:1", "all_proxy": "http://all:1"}
    assert str(proxy_of(HTTPS, both)) == "the proxy small:1 of https_proxy"
    login = Proxy("https_proxy", "h:1").advice(HTTPS)
    assert login == "on the drone: correct https_proxy, or export NO_PROXY=models.example, then drone start"


def test_the_exceptions_are_those_of_the_client_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared with httpx, which knows the proxies of its own client."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    urls = (HTTP, HTTPS, "https://api.models.example/v1", "http://10.0.0.7/v1", "https://other.test/v1")
    excepted = ("", "models.example", ".example", "*", "10.0.0.7", "other.test, 10.0.0.7", "example", "models")
    wrong, context = {}, ssl.create_default_context()
    for url, no_proxy in product(urls, excepted):
        environ = {"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://p:2", "NO_PROXY": no_proxy}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        with httpx.Client(verify=context) as client:
            used = client._transport_for_url(httpx.URL(url)) is not client._transport
        if used != (proxy_of(url, environ) is not None):
            wrong[url, no_proxy] = used
    assert wrong == {}
