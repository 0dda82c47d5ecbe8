"""A submodule is fetched only from where the project comes from, and a relative URL leads where git says."""

from __future__ import annotations

from pathlib import Path

from drone.workspace.submodule_sources import resolved, where_to_fetch

HTTPS = "https://robot:key@git.example.org/acme/app.git"
PORT = "https://git.example.org:8443/acme/app.git"
SSH = "ssh://git@git.example.org/acme/app.git"
SHORT = "git@git.example.org:acme/app.git"

RESOLVED = {
    ("https://h/a/app.git", "../lib.git"): "https://h/a/lib.git",
    ("https://h/a/app.git/", "../lib.git/"): "https://h/a/lib.git",
    ("https://h/a/app.git", "../../b/lib"): "https://h/b/lib",
    ("https://h/a/app.git", "./lib"): "https://h/a/app.git/lib",
    ("https://h/a/app.git", "./../lib"): "https://h/a/lib",
    ("https://h/app", "https://elsewhere/x"): "https://elsewhere/x",
    ("git@h:a/app.git", "../lib.git"): "git@h:a/lib.git",
    ("git@h:a/app.git", "../../lib.git"): "git@h:lib.git",
    ("/srv/git/app.git", "../lib.git"): "/srv/git/lib.git",
    ("file:///srv/git/app.git", "../lib.git"): "file:///srv/git/lib.git",
    ("https://h/app", ".../lib"): ".../lib",
    ("https://h/app", ""): "",
}

ALLOWED = {
    (HTTPS, "https://git.example.org/acme/lib.git"): "https://robot:key@git.example.org/acme/lib.git",
    (HTTPS, "https://GIT.example.org:443/acme/lib.git"): "https://robot:key@git.example.org/acme/lib.git",
    (HTTPS, "https://other:login@git.example.org/other/lib"): "https://robot:key@git.example.org/other/lib",
    (HTTPS, "git@git.example.org:acme/lib.git"): "https://robot:key@git.example.org/acme/lib.git",
    (HTTPS, "ssh://git@git.example.org/acme/lib.git"): "https://robot:key@git.example.org/acme/lib.git",
    (PORT, "https://git.example.org:8443/x/y"): "https://git.example.org:8443/x/y",
    (PORT, "git@git.example.org:acme/lib.git"): "https://git.example.org:8443/acme/lib.git",
    ("http://[::1]:3000/a/app", "http://[::1]:3000/a/lib"): "http://[::1]:3000/a/lib",
    (SSH, "git@git.example.org:acme/lib.git"): "git@git.example.org:acme/lib.git",
    (SHORT, "ssh://git@git.example.org:22/acme/lib"): "ssh://git@git.example.org:22/acme/lib",
    (SHORT, "git@git.example.org:acme/lib.git"): "git@git.example.org:acme/lib.git",
    (SHORT, "https://git.example.org/acme/lib.git"): "https://git.example.org/acme/lib.git",
}

REFUSED = {
    HTTPS: (
        "https://evil.example/acme/lib.git",
        "https://git.example.org.evil.example/lib",
        "https://evil.git.example.org/lib",
        "https://git.example.org@evil.example/lib",
        "https://evil.example\\@git.example.org/lib",
        "https://evil.example#@git.example.org/lib",
        "https://evil.example?@git.example.org/lib",
        "https://git.example.org:8443/acme/lib.git",
        "http://git.example.org/acme/lib.git",
        "git@evil.example:acme/lib.git",
        "http://169.254.169.254/latest/meta-data",
        "ssh://git@git.example.org:2222/acme/lib.git",
        "git://git.example.org/acme/lib.git",
        "ftp://git.example.org/acme/lib.git",
        "ext::sh -c 'touch sprung'",
        "--upload-pack=touch sprung",
        "file:///etc",
        "/etc",
        "../lib",
        "https://git.example.org",
        "https://git.example.org/",
        "https://git.example.org/a\nhost=evil.example",
        " https://git.example.org/a",
        "https:git.example.org/a",
        "",
    ),
    PORT: ("https://git.example.org/x/y", "https://git.example.org:8444/x/y"),
    "http://127.0.0.1:3000/a": ("http://127.0.0.1:6379/a", "http://localhost:3000/a", "git@127.0.0.1:a", "/etc"),
    SSH: (
        "https://evil.example/lib",
        "http://git.example.org/lib",
        "https://git.example.org:8443/lib",
        "-oProxyCommand=x:lib",
        "file:///etc",
    ),
    SHORT: (
        "https://evil.example/lib",
        "git@evil.example:acme/lib",
        "ssh://git@git.example.org:2222/lib",
        "git@[git.example.org:2222]:lib",
        "/x",
    ),
}


def test_a_relative_url_leads_where_git_says() -> None:
    wrong = {case: got for case, want in RESOLVED.items() if (got := resolved(case[1], case[0])) != want}
    assert wrong == {}


def test_a_url_on_the_projects_own_server_is_fetched_with_the_projects_login() -> None:
    wrong = {case: got for case, want in ALLOWED.items() if (got := where_to_fetch(case[1], case[0])) != want}
    assert wrong == {}


def test_no_url_leads_the_drone_to_another_server_or_another_port() -> None:
    got = {(project, url): where_to_fetch(url, project) for project, urls in REFUSED.items() for url in urls}
    assert {case: url for case, url in got.items() if url is not None} == {}


def test_a_relative_url_that_leaves_the_projects_server_is_not_fetched() -> None:
    ways = ("../../../evil.example/x", "../../../../evil.example/x", "../../../../../evil.example/x")
    assert {way: where_to_fetch(resolved(way, HTTPS), HTTPS) for way in ways} == dict.fromkeys(ways)


def test_on_the_drones_disk_only_what_is_beside_the_projects_repository_is_fetched(tmp_path: Path) -> None:
    held, other = tmp_path / "held", tmp_path / "other"
    for path in (held / "app.git", held / "lib.git", other / "lib.git"):
        path.mkdir(parents=True)
    (held / "link").symlink_to(other)
    app, lib = str(held / "app.git"), str(held / "lib.git")
    assert {url for url in (lib, f"file://{lib}", f"{app}/../lib.git") if where_to_fetch(url, app) != url} == set()
    elsewhere = (str(other / "lib.git"), f"file://{other}/lib.git", f"{held}/../other/lib.git", f"{held}/link/lib.git")
    elsewhere += ("/etc", "https://git.example.org/lib", "git@git.example.org:lib", "ext::sh -c x", "")
    assert {url for url in elsewhere if where_to_fetch(url, f"file://{app}") is not None} == set()
    assert where_to_fetch("/srv/git/lib", "/app.git") is None
