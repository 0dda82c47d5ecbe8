"""A secret is removed in every spelling, in every channel, at a price that ordinary text does not notice."""

from __future__ import annotations

import base64
import gzip
import html
import json
import shlex
import sysconfig
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.redaction import MARK, Redactor

SECRETS = [
    "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8t",
    "hunter2-And&More<\"'$x>/+=%",
    "Zm9vYmFy+QUJD/RGVmMTIz==",
    "pässwörd-ключ-42!",
    "0123456789abcdef0123456789abcdef",
]


def utf16(encoding: str) -> Callable[[str], str]:
    return lambda secret: secret.encode(encoding).decode("utf-8", "replace")


def units(text: str) -> list[int]:
    """As JavaScript counts characters."""
    raw = text.encode("utf-16-be")
    return [int.from_bytes(raw[at : at + 2]) for at in range(0, len(raw), 2)]


def between(separator: str) -> Callable[[str], str]:
    return separator.join


def wrapped(text: str, width: int = 16) -> str:
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False))


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64 at 0": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 at 1": lambda s: base64.b64encode(b"x" + s.encode() + b"yz").decode(),
    "base64 at 2": lambda s: base64.b64encode(b"xy" + s.encode() + b"z").decode(),
    "base64url": lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
    "base64 in lines": lambda s: wrapped(base64.b64encode(s.encode()).decode()),
    "base32": lambda s: base64.b32encode(s.encode()).decode(),
    "base32 at 3": lambda s: base64.b32encode(b"abc" + s.encode() + b"d").decode(),
    "hex": lambda s: s.encode().hex(),
    "HEX": lambda s: s.encode().hex().upper(),
    "hex of xxd": lambda s: s.encode().hex(" ", 2),
    "hex with colons": lambda s: s.encode().hex(":"),
    "\\x": lambda s: "".join(f"\\x{c:02x}" for c in s.encode()),
    "url": lambda s: quote(s, safe=""),
    "percent all": lambda s: "".join(f"%{c:02X}" for c in s.encode()),
    "percent all, small": lambda s: "".join(f"%{c:02x}" for c in s.encode()),
    "json": lambda s: json.dumps(s)[1:-1],
    "\\u": lambda s: "".join(f"\\u{c:04x}" for c in units(s)),
    "\\U": lambda s: "".join(f"\\u{c:04X}" for c in units(s)),
    "xml": html.escape,
    "&#n;": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "&#xn;": lambda s: "".join(f"&#x{ord(c):x};" for c in s),
    "shell": shlex.quote,
    "utf-16-le": utf16("utf-16-le"),
    "utf-16-be": utf16("utf-16-be"),
    "reversed": lambda s: s[::-1],
    "spaced": between(" "),
    "a line for each": between("\n"),
    "zero-width": between("\u200b"),
    "in two lines": lambda s: f"{s[:11]}\n    {s[11:]}",
    "gzip": lambda s: base64.b64encode(gzip.compress(f"KEY={s}\n".encode())).decode(),
    "gzip in lines": lambda s: wrapped(base64.b64encode(gzip.compress(f"KEY={s}\n".encode())).decode(), 40),
}
BYTES_AS_TEXT = {"utf-16-le", "utf-16-be"}
"""Spellings that text can only have for ASCII."""


def streamed(text: str) -> str:
    stream = Redactor(SECRETS).stream()
    return "".join([*map(stream.feed, text), stream.flush()])


CHANNELS: dict[str, Callable[[str], str]] = {
    "text": lambda text: Redactor(SECRETS).text(text),
    "json": lambda text: json.dumps(Redactor(SECRETS).value({"a": [text], text: 1})),
    "stream": streamed,
}


CASES = [
    (each, channel) for each in SPELLINGS for channel in CHANNELS if (each, channel) != ("gzip in lines", "stream")
]
"""A stream holds back one word: the step that follows it has all lines of a packed text, and is redacted as a whole."""


@pytest.mark.parametrize(("spelling", "channel"), CASES)
def test_a_secret_is_removed_in_every_spelling_from_every_channel(spelling: str, channel: str) -> None:
    for secret in SECRETS:
        spelled = SPELLINGS[spelling](secret)
        written = spelled if secret.isascii() or spelling not in BYTES_AS_TEXT else secret
        shown = CHANNELS[channel](f"before\n{written}\nafter")
        kept = shown.replace(MARK, "").replace("before", "").replace("after", "")
        # Base64 and base32 of a part share their first and last characters with what is beside it.
        assert MARK in shown, secret
        assert len(kept) <= (60 if channel == "json" else 20), secret


alphabet = st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Zs", "Zl", "Zp"))
random_secrets = st.text(alphabet, min_size=9, max_size=40).filter(lambda s: len(set(s)) > 8 and not s.isalpha())


@given(random_secrets, st.sampled_from(sorted(SPELLINGS.keys() - BYTES_AS_TEXT)))
@settings(max_examples=300, deadline=None)
def test_no_spelling_of_any_secret_leaks(secret: str, spelling: str) -> None:
    written = SPELLINGS[spelling](secret)

    shown = Redactor([secret]).text(f"({written})")

    assert MARK in shown
    assert secret not in shown


@pytest.mark.parametrize("secret", ["password", "test", "changeme", "abc1234", "main.py"])
def test_a_common_word_is_not_looked_for_in_pieces(secret: str) -> None:
    text = f"{' '.join(secret)} {secret[:3]}\n{secret[3:]}"
    assert Redactor([secret]).text(text) == text


def keys(count: int) -> list[str]:
    return [base64.b64encode(f"{number}-{number**7}".encode() * 2).decode()[:36] for number in range(count)]


def ordinary_code() -> str:
    folders = (Path(__file__).parents[3] / "shared", Path(sysconfig.get_path("stdlib"), "json"))
    folders = (*folders, Path(sysconfig.get_path("stdlib"), "email"))
    return "".join(file.read_text() for folder in folders for file in sorted(folder.rglob("*.py")))


def test_hardly_a_line_of_ordinary_code_is_changed() -> None:
    code = ordinary_code()
    before, after = code.split("\n"), Redactor(keys(50)).text(code).split("\n")
    changed = sum(a != b for a, b in zip(before, after, strict=True))
    assert changed <= len(before) / 1000


def test_fifty_secrets_cost_little_more_than_reading_the_text() -> None:
    code = ordinary_code() * 3
    redactor = Redactor(keys(50))

    def seconds(work: Callable[[], object]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    # Joining the words is one pass over the text, too; four times as long was measured, and the rest is slack.
    yardstick = min(seconds(lambda: "".join(code.split())) for _ in range(3))
    assert min(seconds(lambda: redactor.text(code)) for _ in range(3)) < 20 * yardstick
