"""What a value must look like before it is stored, and how a wrong one is refused: in our words, and never repeated."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.contract.declarations.orders import OrderFilter
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.documents.base import Request
from control_plane.contract.validation.checks import (
    check_labels,
    check_name,
    check_text,
    check_variable,
    unknown,
)
from control_plane.contract.validation.git_urls import GitUrl, parse_git_url
from control_plane.contract.validation.invalid_requests import InvalidRequest, checked
from shared.errors import FleetError, Invalid, TooLarge

PROJECT = {"slug": "shop", "git_url": "https://git.example/shop.git"}
PROVIDER = {"name": "main", "model": "openai/x"}
CASES: list[tuple[type[Request], dict[str, Any], str]] = [
    (ProjectRequest, {"slug": "shop"}, "git_url: is required"),
    (ProjectRequest, {**PROJECT, "brunch": "x"}, "brunch: unknown field"),
    (ProjectRequest, {**PROJECT, "branch": 7}, "branch: must be text"),
    (ProjectRequest, {**PROJECT, "budget_usd_day": "much"}, "budget_usd_day: must be a number"),
    (OrderFilter, {"limit": 0}, "limit: must be at least 1"),
    (ProjectRequest, {**PROJECT, "pull_requests": "all"}, "pull_requests: must be 'never', 'ready' or 'open'"),
    (ProjectRequest, {**PROJECT, "setup": "make"}, "setup: must be a list"),
    (ProviderRequest, {**PROVIDER, "context_window": "wide"}, "context_window: must be a whole number"),
    (ProviderRequest, {**PROVIDER, "no_key": "perhaps"}, "no_key: must be true or false"),
    (ProviderRequest, {**PROVIDER, "params": []}, "params: must be an object"),
    (OrderFilter, {"limit": 1001}, "limit: must be at most 1000"),
    (OrderFilter, {"status": "dreaming"}, "status: must be 'queued'"),
]


def test_a_wrong_value_is_told_in_our_words_and_never_repeated() -> None:
    for model, fields, words in CASES:
        with pytest.raises(InvalidRequest) as refused:
            checked(model, fields, form="fleet help")
        assert refused.value.what.startswith(f"invalid request: {words}"), model
        assert (refused.value.code, refused.value.next) == ("E-REQUEST", "fleet help"), model
    with pytest.raises(InvalidRequest) as refused:
        checked(ProviderRequest, {**PROVIDER, "api_key": ["sk-secret"]}, form="fleet help")
    assert "sk-secret" not in repr(refused.value.__dict__)


def test_usual_values_are_taken_and_others_refused() -> None:
    names = ["a", "0", "web", "my-app_2.0", "x" * 64]
    assert [check_name("project", name) for name in names] == names
    labels: list[dict[str, str]] = [{}, {"gpu": "yes"}, {"a/b.c-d_e": "1.2:3/4+5"}, {"k": ""}]
    assert [check_labels(each) for each in labels] == labels
    with pytest.raises(Invalid):
        check_labels({f"k{number}": "v" for number in range(1000)})
    assert check_variable("_OPENAI_API_KEY2") == "_OPENAI_API_KEY2"
    with pytest.raises(TooLarge):
        check_text("the prompt", "123456", limit=5)
    with pytest.raises(Invalid, match="invalid project name") as refusal:
        check_name("project", "\x1b[31m" + "x" * 10_000)
    assert (len(refusal.value.what) < 130, "\x1b" in refusal.value.what) == (True, False)


@given(text=st.text(max_size=200))
def test_a_name_that_is_taken_is_safe_in_a_path_a_url_and_a_shell(text: str) -> None:
    try:
        taken = check_name("project", text)
    except Invalid:
        return
    assert set(taken) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert not taken.startswith((".", "-", "_"))


def test_an_unknown_name_comes_with_near_ones_and_the_command_that_lists_all() -> None:
    error: FleetError = unknown("drone", "ana", ["anna", "berta"], "fleet drones")
    assert error.code == "E-DRONE-404"
    assert error.next == "did you mean anna? Otherwise: fleet drones"
    assert unknown("drone", "zzz", ["anna"], "fleet drones").next == "fleet drones"


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
