"""This machine's own addresses: which they are, and that no proxy gets their requests."""

from __future__ import annotations

import urllib.request

from shared.loopback import bypass_proxies, is_loopback

PROXY = "http://proxy.example:3128"
LOCAL = "localhost,.localhost,127.0.0.1,::1"
# The environment, the endpoints, and NO_PROXY then.
EXCEPTED = [
    ({}, (), None),
    ({"HTTP_PROXY": ""}, ("http://127.0.0.1:1",), None),
    ({"FTP_PROXY": PROXY}, (), None),
    ({"NO_PROXY": "a.example"}, (), "a.example"),
    ({"HTTP_PROXY": PROXY}, (), LOCAL),
    ({"http_proxy": PROXY}, (), LOCAL),
    ({"HTTPS_PROXY": PROXY}, (), LOCAL),
    ({"https_proxy": PROXY}, (), LOCAL),
    ({"ALL_PROXY": PROXY}, (), LOCAL),
    ({"all_proxy": "socks5://proxy.example:1080"}, (), LOCAL),
    ({"HTTP_PROXY": PROXY, "NO_PROXY": "a.example, 10.0.0.0/8 ,"}, (), f"a.example,10.0.0.0/8,{LOCAL}"),
    ({"HTTP_PROXY": PROXY, "NO_PROXY": "upper.example", "no_proxy": "small.example"}, (), f"small.example,{LOCAL}"),
    ({"HTTP_PROXY": PROXY, "NO_PROXY": "localhost,127.0.0.1"}, (), "localhost,127.0.0.1,.localhost,::1"),
    ({"HTTP_PROXY": PROXY, "NO_PROXY": "*"}, (), "*"),
    ({"HTTP_PROXY": PROXY, "no_proxy": "a.example,*"}, (), None),
    ({"HTTP_PROXY": PROXY}, ("http://127.0.0.2:1/v1", "https://models.example/v1", ""), f"{LOCAL},127.0.0.2"),
    ({"HTTP_PROXY": PROXY}, ("http://ollama.localhost:11434",), f"{LOCAL},ollama.localhost"),
    ({"HTTP_PROXY": PROXY}, ("http://[::1]:8000/v1", "http://LOCALHOST/v1", "http://10.0.0.1/v1"), LOCAL),
]


def test_where_there_is_a_proxy_it_is_not_for_this_machine() -> None:
    wrong = {}
    for given, urls, expected in EXCEPTED:
        environ = dict(given)
        bypass_proxies(environ, *urls)
        if environ.get("NO_PROXY") != expected:
            wrong[str(given), urls] = environ.get("NO_PROXY")
    assert wrong == {}


def test_libraries_see_it_and_still_use_the_proxy_for_other_machines() -> None:
    environ = {"http_proxy": PROXY}
    bypass_proxies(environ, "http://127.0.0.2:8000")
    no_proxy = {"no": environ["no_proxy"]}
    hosts = ["localhost", "127.0.0.1", "127.0.0.1:8399", "127.0.0.2", "a.localhost", "10.0.0.1", "models.example"]
    past = [host for host in hosts if urllib.request.proxy_bypass_environment(host, no_proxy)]  # type: ignore[attr-defined]
    assert past == hosts[:5]


def test_a_url_is_this_machines_by_its_name_or_address() -> None:
    local = ["http://localhost", "http://A.LOCALHOST:1", "http://127.9.9.9", "https://[::1]:8420/fleet"]
    others = ["http://127.0.0.1.example", "http://10.0.0.1", "http://[fe80::1]", "http://localhost.example", "", "x"]
    assert [url for url in (*local, *others) if is_loopback(url)] == local
