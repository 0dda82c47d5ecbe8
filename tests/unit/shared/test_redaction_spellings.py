"""A secret is removed in every spelling, in every channel, at a price that ordinary text does not notice."""

from __future__ import annotations

import base64
import json
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.redaction import MARK, Redactor
from tests.support.spellings import BYTES_AS_TEXT, SPELLINGS

SECRETS = [
    "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8t",
    "hunter2-And&More<\"'$x>/+=%",
    "Zm9vYmFy+QUJD/RGVmMTIz==",
    "pässwörd-ключ-42!",
    "0123456789abcdef0123456789abcdef",
]


def streamed(text: str) -> str:
    stream = Redactor(SECRETS).stream()
    return "".join([*map(stream.feed, text), stream.flush()])


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
@settings(max_examples=300, deadline=None)
def test_no_spelling_of_any_secret_leaks(secret: str, spelling: str) -> None:
    written = SPELLINGS[spelling](secret)

    shown = Redactor([secret]).text(f"({written})")

    assert MARK in shown
    assert secret not in shown


def test_a_common_word_is_not_looked_for_in_pieces() -> None:
    for secret in ("password", "test", "changeme", "abc1234", "main.py"):
        text = f"{' '.join(secret)} {secret[:3]}\n{secret[3:]}"
        assert Redactor([secret]).text(text) == text, secret


def keys(count: int) -> list[str]:
    return [base64.b64encode(f"{number}-{number**7}".encode() * 2).decode()[:36] for number in range(count)]


def ordinary_code() -> str:
    folders = (Path(__file__).parents[3] / "shared", Path(sysconfig.get_path("stdlib"), "json"))
    folders = (*folders, Path(sysconfig.get_path("stdlib"), "email"))
    return "".join(file.read_text() for folder in folders for file in sorted(folder.rglob("*.py")))


def test_hardly_a_line_of_ordinary_code_is_changed() -> None:
    code = ordinary_code()
    secrets = [*keys(50), "main", "test", "true", "password", "admin", "8080"]
    before, after = code.split("\n"), Redactor(secrets).text(code).split("\n")
    changed = sum(a != b for a, b in zip(before, after, strict=True))
    assert changed <= len(before) / 1000


def test_what_stands_behind_the_escapes_of_json_does_not_hide_the_pieces_of_a_secret() -> None:
    secret = SECRETS[0]
    colored = json.dumps({"command": f"echo {secret[:13]}\x1b[0;31m{secret[13:]}"})
    numbered = json.dumps({"output": f"     1\t{secret[:13]}\n     2\t{secret[13:]}\n"})
    for text in (colored, json.dumps(colored), numbered, json.dumps(numbered)):
        assert secret[13:] not in Redactor([secret]).text(text), text


def test_a_backslash_or_a_number_of_a_line_between_the_pieces_of_a_secret_does_not_hide_it() -> None:
    secret = SECRETS[0]
    shown = Redactor([secret]).text(f"curl -H {secret[:13]}\\\n    {secret[13:]} x")
    assert shown == f"curl -H {MARK} x"
    for number in ("     1\t{}\n     2\t{}", "7:{}\n8:{}"):
        shown = Redactor([secret]).text(f"\n{number.format(secret[:14], secret[14:])}\n")
        assert (MARK in shown, secret[14:] in shown) == (True, False), number


def test_colors_between_the_pieces_of_a_secret_do_not_hide_it() -> None:
    betweens: list[str] = ["\x1b[0m", "\x1b[1;31m\x1b[K", "\n\x1b[38;5;9m ", "\x1b[2 q"]
    for size in (1, 5, 1000):
        for between in betweens:
            secret = SECRETS[0]
            text = f"{between}x {secret[:14]}{between}{secret[14:]}{between} y"
            stream = Redactor([secret]).stream()
            shown = "".join([*(stream.feed(text[at : at + size]) for at in range(0, len(text), size)), stream.flush()])
            assert Redactor([secret]).text(text) == shown == f"{between}x {MARK}{between} y", size


def test_a_secret_behind_the_escapes_of_json_in_an_argument_is_found() -> None:
    secret = SECRETS[0]
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in secret)
    arguments = json.dumps({"text": [f"{secret[:14]}\n{secret[14:]}", "other"]})

    assert Redactor([secret]).value({"arguments": arguments}) == {"arguments": f'{{"text": ["{MARK}", "other"]}}'}
    assert MARK in Redactor([secret]).value(f'{{"text": "{escaped}"}}')
    assert Redactor([secret]).value('{"a":  "x\\n"}') == '{"a":  "x\\n"}'


def test_gzip_that_arrives_in_pieces_is_held_back_until_it_can_be_read() -> None:
    secret = SECRETS[0]
    packed = SPELLINGS["gzip"](secret)
    stream = Redactor([secret]).stream()
    shown = "".join([*(stream.feed(packed[at : at + 5]) for at in range(0, len(packed), 5)), stream.flush()])
    assert shown.count(MARK) == 1
    assert packed[8:40] not in shown


def test_a_secret_in_a_call_that_arrives_in_pieces_is_found_behind_its_escapes() -> None:
    for size in (1, 3, 7):
        secret = SECRETS[0]
        escaped = "".join(f"\\u{ord(letter):04x}" for letter in secret)
        for text in (f'{{"a": "x\\n{escaped}\\n"}}', json.dumps({"a": f"{secret[:14]}\n{secret[14:]}"})):
            stream = Redactor([secret]).stream(of_json=True)
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            shown = "".join([*map(stream.feed, pieces), stream.flush()])
            assert MARK in shown
            assert secret[14:] not in shown
            assert "\\u" not in shown


def test_a_text_in_json_comes_out_as_it_is_read() -> None:
    stream = Redactor().stream(of_json=True)
    shown = stream.feed('run {"a": "tab\\t\\"q\\" \\ud83d') + stream.feed("\\ude00 \\")
    assert shown + stream.flush() == 'run {"a": "tab\t"q" \U0001f600 \\'
