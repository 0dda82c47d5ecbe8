"""Secrets are taken out of text in every spelling and channel, wherever it is cut, and ordinary text is left alone."""

from __future__ import annotations

import base64
import json
import sysconfig
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from drone.agent.hooks.calling import described
from drone.model.errors import classify, sentence
from drone.runs.conclusion import sentence as ended
from drone.sandbox.output import HeadAndTail
from drone.services.pull_request.api import refusal_of
from drone.tools.arguments import TodoArguments
from drone.tools.editor import _around
from drone.tools.paths import locate
from drone.tools.wrong_use import WrongUse, describe
from drone.workspace.failures import explain
from drone.workspace.git import GitFailed
from drone.workspace.push import _words
from drone.workspace.remote import Remote
from shared.redaction import (
    MARK,
    Redactor,
    cut_off,
    cut_short,
    know,
    known,
    last_part,
    login_secrets,
    redact_url,
    shortened,
)
from shared.redaction.spellings import is_common
from shared.work_order import OrderProvider
from tests.support.spellings import BYTES_AS_TEXT, SPELLINGS

SECRET = 'p4ss/word "x" + ü'
# None of the mark's own letters: a secret like "acted" would be found in the mark itself.
LETTERS = "xyz019 -/\n"
secret_texts = st.text(LETTERS, min_size=4, max_size=12).filter(str.strip)
TOKENS = ["sk-A1b2C3d4E5f6G7h8I9j0", "ghp_0123456789abcdefghij0123", "AKIA0123456789ABCDEF", "fd_0123456789abcdef01"]


def test_tokens_of_well_known_shapes_passwords_in_urls_and_keys_of_json_are_found_and_names_like_them_stay() -> None:
    issued = [f"{prefix}_{'0123456789abcdef' * 4}" for prefix in ("fa", "fd", "fj", "fl", "fq", "fs")]
    tokens = [*TOKENS, *issued, "github_pat_0123456789abcdefghij", "glpat-0123456789abcdefghij"]
    assert {token: Redactor().text(f"key={token}.") for token in tokens} == dict.fromkeys(tokens, f"key={MARK}.")
    names = "fd_set_nonblocking_mode fs_type_of_directory sk-learn-like-pipelines task-force-0123456789abcdef"
    assert Redactor().text(names) == names
    shown = Redactor().text("cloning https://user:hunter2@host/x.git and ssh://git@host/y.git")
    assert shown == f"cloning https://{MARK}@host/x.git and ssh://git@host/y.git"
    value = {"a": [1, None, "is hidden1"], "hidden1": True}
    assert Redactor(["hidden1"]).value(value) == {"a": [1, None, f"is {MARK}"], MARK: True}


COMMON = ["test", "main", "true", "password", "http", "8080", "a+b5", "Summer", "admin"]


def test_a_common_value_is_hidden_only_where_it_is_stated_as_a_secret() -> None:
    for secret in COMMON:
        redactor = Redactor([secret])
        ordinary = f"def {secret}_x(): the {secret} of {secret}s, http://host:{secret}/ and keys.{secret}"
        stated = ["password={}", '"api_key": "{}"', "--token {}", "DB_PASSWD: '{}'"]

        assert redactor.text(ordinary) == ordinary, secret
        assert [redactor.text(text.format(secret)) for text in stated] == [text.format(MARK) for text in stated], secret
        assert redactor.text(f"https://me:{secret}@host") == f"https://{MARK}@host", secret
    for size in (1, 2, 5, 50):
        stream = Redactor(["test"]).stream()
        text = "A test. The password is set: password: test, and the tests run."
        shown = "".join([*(stream.feed(text[at : at + size]) for at in range(0, len(text), size)), stream.flush()])
        assert shown == f"A test. The password is set: password: {MARK}, and the tests run.", size
    assert Redactor(["", "abc"]).text("abc") == "abc", "too short to be a secret"


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
    logins: dict[str, set[str]] = {
        "https://deploy:secret@host/x.git": {"secret"},
        "https://deploy:p%40ss%2Fw@host/x.git": {"p%40ss%2Fw", "p@ss/w"},
        "https://gittoken@host/x.git": {"gittoken"},
        "https://gittoken:@host/x.git": {"gittoken"},
        "https://gittoken:x-oauth-basic@host/x.git": {"gittoken"},
        "rediss://drone:secret@host:6380/0": {"secret"},
        "ssh://git@host/x.git": set(),
        "/srv/x.git": set(),
    }
    assert {url: login_secrets(url) for url in logins} == logins


@given(st.lists(secret_texts, min_size=1, max_size=4), st.data())
@settings(max_examples=150, deadline=None)
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


def test_a_stream_comes_out_as_it_goes_in_but_for_the_last_word_and_never_holds_much_back() -> None:
    stream = Redactor(["k3y-of-some-length-0123456789"]).stream()
    assert stream.feed("plain words, nothing se") == "plain words, nothing "
    assert stream.feed("cret ") == "secret "
    endless = Redactor([SECRET]).stream()
    shown = endless.feed("x" * 100_000)
    assert (100_000 - len(shown) <= 2048, len(shown + endless.flush())) == (True, 100_000)


KEY = "Qk7-Zx9Wv2Tp4Ls6Rm1Jd8Hf3Gb5Ny0Cu_Ea"
"""36 characters of no well-known shape."""
PIECES = {KEY[start : start + 4] for start in range(len(KEY) - 3)}


@pytest.fixture(autouse=True)
def the_key_is_known() -> Iterator[None]:
    know([KEY])
    yield
    know([])


def model_error(text: str) -> str:
    failure = classify(httpx.InvalidURL(text), datetime.now(UTC))
    assert failure is not None
    return sentence(failure, OrderProvider(name="p", model="m"))


def elided(text: str) -> str:
    whole = HeadAndTail(400)
    for at in range(0, len(text), 7):
        whole.add(text[at : at + 7])
    # A whole key is removed later, with the rest of the step.
    return known().text(whole.text())


def wrong_argument(text: str) -> str:
    with pytest.raises(ValidationError) as refused:
        TodoArguments.model_validate({"items": [{"text": text, "status": "done"}]})
    return known().text(describe("todo", refused.value))


def path_outside(text: str) -> str:
    with pytest.raises(WrongUse) as refused:
        locate(Path("/work"), f"/{text}")
    return known().text(str(refused.value))


CUTS: dict[str, tuple[Callable[[str], str], int]] = {
    "shortened": (lambda text: shortened(text, 100), 100),
    "cut short": (lambda text: known().text(cut_short(text, 100)), 100),
    "a model's error": (model_error, 120),
    "a run's error": (lambda text: ended(ValueError(text)), 200),
    "a hook's error": (lambda text: described(ValueError(text)), 300),
    "git's error": (lambda text: str(GitFailed("push", 1, text)), 500),
    "git's last words": (lambda text: str(explain(GitFailed("fetch", 1, text), Remote("https://h/x")).why), 500),
    "a refused push": (lambda text: _words(f"remote: {text}"), 300),
    "a code host's refusal": (lambda text: str(refusal_of("h", 400, {"message": text})), 300),
    "the head of an output": (elided, 200),
    "a wrong argument": (wrong_argument, 80),
    "a path outside": (path_outside, 199),
    "a line that was edited": (lambda text: known().text(_around(text.encode(), 1)), 400),
}


def test_a_text_is_cut_where_it_should_be_and_a_key_across_the_cut_leaves_nothing_at_any_offset() -> None:
    for what, (cut, length) in CUTS.items():
        for start in range(length - len(KEY) - 12, length + 2):
            shown = cut("." * start + KEY + "." * 1000)
            assert [piece for piece in PIECES if piece in shown] == [], (what, start)
    text = "x" * 50 + "y" * 50
    assert (cut_short(text, 60), cut_off(text, 60), shortened(text, 100)) == (text[:60], text[-60:], text)
    assert shortened(text, 60, end="…") == text[:59] + "…"
    # Nor is anything left at the end, of which only a part is kept.
    for end in (last_part, cut_off):
        for after in range(102):
            shown = end("." * 1000 + KEY + "." * after, 100)
            whole = KEY in shown and end is cut_off
            assert whole or not [piece for piece in PIECES if piece in shown], after
    for after in range(199, 199 - len(KEY), -1):
        shown = elided("." * 1000 + KEY + "." * after)
        assert [piece for piece in PIECES if piece in shown] == [], after


SECRETS = ["sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8t", "hunter2-And&More<\"'$x>/+=%", "Zm9vYmFy+QUJD/RGVmMTIz=="]
SECRETS += ["pässwörd-ключ-42!", "0123456789abcdef0123456789abcdef"]


def streamed(text: str, size: int = 3, secrets: list[str] = SECRETS, **kind: bool) -> str:
    stream = Redactor(secrets).stream(**kind)
    return "".join([*(stream.feed(text[at : at + size]) for at in range(0, len(text), size)), stream.flush()])


CHANNELS: dict[str, Callable[[str], str]] = {
    "text": lambda text: Redactor(SECRETS).text(text),
    "json": lambda text: json.dumps(Redactor(SECRETS).value({"a": [text], text: 1})),
    "stream": streamed,
}


IN_LINES = ("gzip in lines", "stream")
"""A stream holds back one word: the step that follows it has all lines of a packed text, and is redacted as a whole."""


def leaks(spelling: str, channel: str, secret: str) -> bool:
    spelled = SPELLINGS[spelling](secret)
    written = spelled if secret.isascii() or spelling not in BYTES_AS_TEXT else secret
    shown = CHANNELS[channel](f"before\n{written}\nafter")
    kept = shown.replace(MARK, "").replace("before", "").replace("after", "")
    # Base64 and base32 of a part share their first and last characters with what is beside it.
    return MARK not in shown or len(kept) > (60 if channel == "json" else 20)


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_secret_is_removed_in_every_spelling_from_every_channel(channel: str) -> None:
    spellings = [each for each in SPELLINGS if (each, channel) != IN_LINES]
    assert [(each, secret) for each in spellings for secret in SECRETS if leaks(each, channel, secret)] == []


alphabet = st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Zs", "Zl", "Zp"))
random_secrets = st.text(alphabet, min_size=9, max_size=40).filter(lambda s: len(set(s)) > 8 and not s.isalpha())


@given(random_secrets, st.sampled_from(sorted(SPELLINGS.keys() - BYTES_AS_TEXT)))
@settings(max_examples=100, deadline=None)
def test_no_spelling_of_any_secret_leaks(secret: str, spelling: str) -> None:
    shown = Redactor([secret]).text(f"({SPELLINGS[spelling](secret)})")
    assert (MARK in shown, secret in shown) == (True, False)


SECRET_TEXT = SECRETS[0]
FIRST, SECOND = SECRET_TEXT[:14], SECRET_TEXT[14:]


def test_nothing_between_the_pieces_of_a_secret_hides_it() -> None:
    redactor = Redactor([SECRET_TEXT])
    colored = json.dumps({"command": f"echo {FIRST}\x1b[0;31m{SECOND}"})
    numbered = json.dumps({"output": f"     1\t{FIRST}\n     2\t{SECOND}\n"})
    for text in (colored, json.dumps(colored), numbered, json.dumps(numbered)):
        assert SECOND not in redactor.text(text), text
    assert redactor.text(f"curl -H {FIRST}\\\n    {SECOND} x") == f"curl -H {MARK} x"
    for numbers in (f"\n     1\t{FIRST}\n     2\t{SECOND}\n", f"\n7:{FIRST}\n8:{SECOND}\n"):
        shown = redactor.text(numbers)
        assert (MARK in shown, SECOND in shown) == (True, False), numbers
    lines = ["-----BEGIN KEY-----", *(f"{SECRET_TEXT}{number}" for number in range(3)), "+/x8Hq==", "-----END KEY-----"]
    several, key = Redactor([SECRET_TEXT, "\n".join(lines)]), "\n".join(lines)
    for mark in ("+", "-", "> ", "< ", " ", "\x1b[32m+", "\x1b[31m-\x1b[m", "\x1b[32m+\x1b[m\x1b[32m"):
        difference = f"@@ -1 +1,2 @@\n{mark}a = '{FIRST}\n{mark}{SECOND}'\n{mark}b"
        written = "".join(f"{mark}{line}\n" for line in lines)
        for text in (difference, difference.replace("\n", "\r\n"), written, f"x\n{written}", key):
            for told in (text, json.dumps({"output": text}), json.dumps(json.dumps(text))):
                shown = several.text(told)
                assert [piece for piece in (SECOND, "8Hq==") if piece in shown] == [], told
    for between in ("\x1b[0m", "\x1b[1;31m\x1b[K", "\n\x1b[38;5;9m ", "\x1b[2 q"):
        text = f"{between}x {FIRST}{between}{SECOND}{between} y"
        shown = {redactor.text(text), *(streamed(text, size, [SECRET_TEXT]) for size in (1, 5, 1000))}
        assert shown == {f"{between}x {MARK}{between} y"}
    packed = SPELLINGS["gzip"](SECRET_TEXT)
    shown = streamed(packed, 5, [SECRET_TEXT])
    assert (shown.count(MARK), packed[8:40] in shown) == (1, False)


def test_a_secret_behind_the_escapes_of_json_is_found_in_arguments_also_in_pieces() -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in SECRET_TEXT)
    redactor = Redactor([SECRET_TEXT])
    arguments = json.dumps({"text": [f"{FIRST}\n{SECOND}", "other"]})
    assert redactor.value({"arguments": arguments}) == {"arguments": f'{{"text": ["{MARK}", "other"]}}'}
    assert MARK in redactor.value(f'{{"text": "{escaped}"}}')
    assert redactor.value('{"a":  "x\\n"}') == '{"a":  "x\\n"}'
    for text in (f'{{"a": "x\\n{escaped}\\n"}}', json.dumps({"a": f"{FIRST}\n{SECOND}"})):
        for size in (1, 3, 7):
            shown = streamed(text, size, [SECRET_TEXT], of_json=True)
            assert (MARK in shown, SECOND in shown, "\\u" in shown) == (True, False, False)
    stream = Redactor().stream(of_json=True)
    shown = stream.feed('run {"a": "tab\\t\\"q\\" \\ud83d') + stream.feed("\\ude00 \\")
    assert shown + stream.flush() == 'run {"a": "tab\t"q" \U0001f600 \\'


def test_ordinary_code_and_common_words_in_pieces_are_left_alone() -> None:
    for secret in ("password", "test", "changeme", "abc1234", "main.py"):
        text = f"{' '.join(secret)} {secret[:3]}\n{secret[3:]}"
        assert Redactor([secret]).text(text) == text, secret
    folders = (Path(__file__).parents[3] / "shared", Path(sysconfig.get_path("stdlib"), "json"))
    code = "".join(file.read_text() for folder in folders for file in sorted(folder.rglob("*.py"))).split("\n")
    keys = [base64.b64encode(f"{number}-{number**7}".encode() * 2).decode()[:36] for number in range(50)]
    after = Redactor([*keys, "main", "test", "true", "password", "admin", "8080"]).text("\n".join(code)).split("\n")
    assert sum(a != b for a, b in zip(code, after, strict=True)) <= len(code) / 1000


BEGINNINGS = ["sk-", "fd_a-", "ghp_", "://a:", "key-", "pass", "key='", "secret:(", "H4sI", "\\u0041", "%41", "&#65;"]
BEGINNINGS += ["'\"", "+\n", "aGVs", "hunter", "h u n"]
"""What a secret, or the name of one, begins with, or hides behind."""


@pytest.mark.parametrize("text", BEGINNINGS)
def test_a_text_full_of_beginnings_takes_time_with_its_length_and_not_with_the_square_of_it(text: str) -> None:
    def seconds(size: int) -> float:
        redactor = Redactor(["hunter2", "ab12", "secret-value-Xyz1"])
        began = process_time()
        redactor.text((text * size)[:size])
        return process_time() - began

    # Eight times the length: 64 times the time if it grows with the square.
    assert seconds(40_000) < 24 * max(0.005, min(seconds(5_000) for _ in range(3)))
