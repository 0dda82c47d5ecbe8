"""Secrets are taken out of text, however it is spelt and wherever it is cut."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.redaction import MARK, Redactor, login_secrets, redact_url
from shared.redaction.spellings import is_common

SECRET = 'p4ss/word "x" + ü'
# None of the mark's own letters: a secret like "acted" would be found in the mark itself.
LETTERS = "xyz019 -/\n"
secret_texts = st.text(LETTERS, min_size=4, max_size=12).filter(str.strip)
TOKENS = ["sk-A1b2C3d4E5f6G7h8I9j0", "ghp_0123456789abcdefghij0123", "AKIA0123456789ABCDEF", "fd_0123456789abcdef01"]


def test_a_known_secret_is_found_in_every_spelling() -> None:
    in_json = [json.dumps(SECRET)[1:-1], json.dumps(SECRET, ensure_ascii=False)[1:-1]]
    spellings = [SECRET, quote(SECRET, safe=""), quote_plus(SECRET), *in_json]
    shown = {spelling: Redactor([SECRET]).text(f"before {spelling} after") for spelling in spellings}
    assert shown == dict.fromkeys(spellings, f"before {MARK} after")


def test_a_secret_within_base64_is_found_wherever_it_stands() -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for before in (b"", b"u", b"us", b"user:"):
            encoded = encode(before + SECRET.encode() + b"!").decode()

            shown = Redactor([SECRET]).text(f"Authorization: Basic {encoded}")

            left = shown.removeprefix("Authorization: Basic ").replace(MARK, "")
            assert MARK in shown, encode
            assert len(left) <= len(encode(before)) + 8, encode


def test_tokens_of_well_known_shapes_are_found_without_being_known_and_names_like_them_stay() -> None:
    tokens = [*TOKENS, "github_pat_0123456789abcdefghij", "glpat-0123456789abcdefghij"]
    assert {token: Redactor().text(f"key={token}.") for token in tokens} == dict.fromkeys(tokens, f"key={MARK}.")
    names = "fd_set_nonblocking_mode sk-learn-like-pipelines task-force-0123456789abcdef"
    assert Redactor().text(names) == names


def test_a_password_in_a_url_is_hidden_in_any_text() -> None:
    shown = Redactor().text("cloning https://user:hunter2@host/x.git and ssh://git@host/y.git")

    assert shown == f"cloning https://{MARK}@host/x.git and ssh://git@host/y.git"


def test_a_json_value_is_redacted_down_to_its_keys() -> None:
    value = {"a": [1, None, "is hidden1"], "hidden1": True}

    assert Redactor(["hidden1"]).value(value) == {"a": [1, None, f"is {MARK}"], MARK: True}


def test_what_is_too_short_to_be_a_secret_is_not_hidden_everywhere() -> None:
    assert Redactor(["", "abc"]).text("abc") == "abc"


COMMON = ["test", "main", "true", "password", "http", "8080", "a+b5", "Summer", "admin"]


def test_a_common_value_is_hidden_only_where_it_is_stated_as_a_secret() -> None:
    for secret in COMMON:
        redactor = Redactor([secret])
        ordinary = f"def {secret}_x(): the {secret} of {secret}s, http://host:{secret}/ and keys.{secret}"
        stated = ["password={}", '"api_key": "{}"', "--token {}", "DB_PASSWD: '{}'"]

        assert redactor.text(ordinary) == ordinary, secret
        assert [redactor.text(text.format(secret)) for text in stated] == [text.format(MARK) for text in stated], secret
        assert redactor.text(f"https://me:{secret}@host") == f"https://{MARK}@host", secret


def test_a_common_value_is_hidden_in_a_text_that_arrives_in_pieces() -> None:
    for size in (1, 2, 5, 50):
        stream = Redactor(["test"]).stream()
        text = "A test. The password is set: password: test, and the tests run."

        shown = "".join([*(stream.feed(text[at : at + size]) for at in range(0, len(text), size)), stream.flush()])

        assert shown == f"A test. The password is set: password: {MARK}, and the tests run.", size


def test_a_url_is_shown_without_its_secrets() -> None:
    cases: dict[str, str] = {
        "https://user:secret@host/x.git": f"https://{MARK}@host/x.git",
        "https://ghtoken@host/x.git": f"https://{MARK}@host/x.git",
        "ssh://git@host/x.git": "ssh://git@host/x.git",
        "ssh://git:secret@host/x.git": f"ssh://git:{MARK}@host/x.git",
        "git@host:x.git": "git@host:x.git",
        "https://host/x.git?access_token=abc&y=1": f"https://host/x.git?access_token={MARK}&y=1",
        "/srv/x.git": "/srv/x.git",
    }
    assert {url: redact_url(url) for url in cases} == cases


def test_the_login_of_a_url_has_its_password_or_the_user_that_is_a_token() -> None:
    cases: dict[str, set[str]] = {
        "https://deploy:secret@host/x.git": {"secret"},
        "https://deploy:p%40ss%2Fw@host/x.git": {"p%40ss%2Fw", "p@ss/w"},
        "https://gittoken@host/x.git": {"gittoken"},
        "https://gittoken:@host/x.git": {"gittoken"},
        "https://gittoken:x-oauth-basic@host/x.git": {"gittoken"},
        "rediss://drone:secret@host:6380/0": {"secret"},
        "ssh://git@host/x.git": set(),
        "git@host:x.git": set(),
        "https://host/x.git": set(),
        "/srv/x.git": set(),
    }
    assert {url: login_secrets(url) for url in cases} == cases


@given(st.lists(secret_texts, min_size=1, max_size=4), st.data())
@settings(max_examples=400, deadline=None)
def test_no_cut_of_a_stream_lets_a_secret_through(secrets: list[str], data: st.DataObject) -> None:
    piece = st.one_of(st.sampled_from([*secrets, *TOKENS, "://u:pa55w@"]), st.text(LETTERS, max_size=6))
    whole = "".join(data.draw(st.lists(piece, max_size=8)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    redactor = Redactor(secrets)
    stream = redactor.stream()

    pieces = [stream.feed(whole[a:b]) for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    shown = "".join([*pieces, stream.flush()])

    assert shown == redactor.text(whole)
    assert [secret for secret in secrets if secret in shown and not is_common(secret)] == []


def test_what_a_stream_has_released_is_not_taken_for_the_beginning_of_a_token() -> None:
    # The stream keeps the last 64 characters of what it released: they begin with "sk-" here.
    whole = "0sk-A1b2C3d4E5f6G7h8I9j0" + "AKIA0123456789ABCDEF" * 2 + "09 "
    stream = Redactor(["90 0"]).stream()
    assert stream.feed(whole) + stream.flush() == whole


def test_a_stream_of_ordinary_words_comes_out_as_it_goes_in_but_for_the_last_word() -> None:
    stream = Redactor(["k3y-of-some-length-0123456789"]).stream()

    assert stream.feed("plain words, nothing se") == "plain words, nothing "
    assert stream.feed("cret ") == "secret "


def test_a_stream_without_white_space_is_held_back_by_a_bounded_amount() -> None:
    stream = Redactor([SECRET]).stream()

    shown = stream.feed("x" * 100_000)

    assert 100_000 - len(shown) <= 2048
    assert len(shown + stream.flush()) == 100_000
