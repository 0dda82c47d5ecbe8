"""Which addresses of repositories are taken, and what is shown of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.contract.validation.git_urls import GitUrl, parse_git_url
from shared.errors import Invalid


def test_a_usual_url_is_taken_and_shown_as_it_is_and_an_absolute_path_becomes_one() -> None:
    urls = [
        "https://host/path.git",
        "http://127.0.0.1:8080/path.git",
        "ssh://git@host/path.git",
        "ssh://git@host:2222/~/path.git",
        "ssh://[::1]:22/path",
        "git@host:path.git",
        "git@host:/srv/path.git",
        "host.example:path.git",
        "file://localhost/srv/path.git",
        "file:///srv/with a space/path.git",
    ]
    cases = {**dict(zip(urls, urls, strict=True)), "/srv/a b/ü": "file:///srv/a b/ü", "/100%/x": "file:///100%25/x"}
    assert {each: parse_git_url(each, files_allowed=True) for each in cases} == {
        each: GitUrl(url, None) for each, url in cases.items()
    }
    for url in ("file:///srv/x", "/srv/x"):
        with pytest.raises(Invalid) as refusal:
            parse_git_url(url, files_allowed=False)
        assert refusal.value.code == "E-GIT-FILE", url


def test_a_password_is_kept_apart_and_not_shown() -> None:
    cases: list[str] = [
        "https://user:hunter2@host/path.git",
        "https://hunter2@host/path.git",
        "https://hunter2:x-oauth-basic@host/path.git",
        "https://user:hunter2@[::1]:80/path.git",
        "ssh://git:hunter2@host/path.git",
        "https://host/path.git?access_token=hunter2",
    ]
    for url in cases:
        parsed = parse_git_url(url, files_allowed=False)
        assert "hunter2" not in parsed.shown, url
        assert "host" in parsed.shown or "::1" in parsed.shown, url
        assert parsed.secret == url, url


def test_what_is_no_safe_git_url_is_refused_with_examples_and_without_its_password() -> None:
    refused = (
        *("", "  ", "-uhost:path", "--upload-pack=touch /tmp/x", "ext::sh -c touch% /tmp/x", "ext::https://host/path"),
        *("fd::17", "ssh://-oProxyCommand=touch/x", "ssh://git@-oProxyCommand=x/path", "-oProxyCommand=x:path"),
        *("git@-oProxyCommand=x:path", "git@host:-path", "git://host/path.git", "ftp://host/path.git"),
        *("javascript:alert(1)//host:x y", "https://", "https:///path", "https://host", "https://host/"),
        *("https://host:port/path", "https://[::1/path", "https://ho st/path", "https://host/pa th"),
        *("https://host/path\n--upload-pack=x", "relative/path", "./path", "../path", "file://host/path", "file://"),
        *("file:///", "C:\\repo", "C:/repo", "https:/host/path", "https://host/" + "x" * 10_000),
        *("https://user:hunter2@ho st/x", "git://user:hunter2@host/x", "https://user:hunter2@h:p/x"),
    )
    for url in refused:
        with pytest.raises(Invalid) as refusal:
            parse_git_url(url, files_allowed=True)
        assert refusal.value.code == "E-GIT-URL", url
        assert "https://host/path.git" in refusal.value.next, url
        assert len(refusal.value.what) < 200, url
        assert "hunter2" not in f"{refusal.value.what} {refusal.value.why} {refusal.value.next}", url


@given(text=st.text(max_size=300))
def test_any_text_is_taken_or_refused_and_what_is_taken_never_looks_like_an_option(text: str) -> None:
    try:
        parsed = parse_git_url(text, files_allowed=True)
    except Invalid:
        return
    taken = parsed.secret or parsed.shown
    assert not taken.startswith("-")
    assert "::" not in taken.split("/")[0]
