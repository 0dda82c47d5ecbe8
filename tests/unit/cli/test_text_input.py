"""Text from files, pipes and arguments, in the encodings in which other programs write it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from shared.errors import Invalid
from shared.terminal.command_line import read_secret
from shared.terminal.text_file import argument_text, text_of

TEXT = "Fix the café: „grün“ → 日本 😀"
READ = {
    TEXT: [
        TEXT.encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.encode("utf-16"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        TEXT.encode("utf-32"),
        b"\0\0\xfe\xff" + TEXT.encode("utf-32-be"),
        f"{TEXT}\r\n".encode(),
        f"{TEXT}\n\n".encode("utf-16"),
    ],
    "one\ntwo": [b"one\r\ntwo\r\n", b"one\ntwo", "one\r\ntwo\r\n".encode("utf-16"), b"\xef\xbb\xbfone\r\ntwo"],
    "": [b"", b"\n", b"\xef\xbb\xbf", b"\xff\xfe"],
    "a\ufeffb": ["a\ufeffb".encode()],
}
REFUSED = {
    b"Fix the caf\xe9": "is not UTF-8: byte 11",
    b"\xef\xbb\xbfFix \xff": "is not UTF-8",
    "x".encode("utf-16") + b"\0": "is not UTF-16",
    b"\xff\xfe\x00\xd8": "is not UTF-16",
    b"\xff\xfe\0\0x": "is not UTF-32",
    b"a\0b": "contains a NUL byte",
    "Fix it".encode("utf-16-le"): "contains a NUL byte",
    "Fix it".encode("utf-16-be"): "contains a NUL byte",
    b"\xed\xa0\x80": "is not UTF-8",
    b"\x1f\x8b\x08\x00": "is not UTF-8",
}


def typed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    # As in a terminal of en_US.UTF-8; with C.UTF-8, invalid bytes would become surrogates.
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors="strict"))


def test_text_is_read_in_the_encoding_that_its_mark_names_and_else_as_utf8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for expected, contents in READ.items():
        for content in contents:
            (tmp_path / "file").write_bytes(content)
            typed(monkeypatch, content)
            assert text_of(str(tmp_path / "file")) == argument_text("-") == expected, content


def test_what_is_no_text_is_refused_with_its_place_and_not_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locale.getpreferredencoding", lambda do_setlocale: "UTF-8")
    for content, words in REFUSED.items():
        (tmp_path / "file").write_bytes(content)
        for source in ("-", str(tmp_path / "file")):
            typed(monkeypatch, content)
            with pytest.raises(Invalid, match=words) as refused:
                text_of(source)
            assert refused.value.code == "E-FILE-TEXT"
    with pytest.raises(Invalid, match="the argument is not UTF-8: byte 3"):
        argument_text("caf\udce9")


def test_in_another_locale_its_encoding_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, content in (("ISO-8859-1", b"caf\xe9"), ("cp1252", b"caf\xe9"), ("EUC-JP", "日本".encode("euc-jp"))):
        monkeypatch.setattr("locale.getpreferredencoding", lambda do_setlocale, name=encoding: name)
        typed(monkeypatch, content)
        assert text_of("-") == content.decode(encoding)
        typed(monkeypatch, "é日本".encode())
        assert text_of("-") == "é日本"


def test_a_secret_is_the_first_line_whatever_its_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (b"sk-1\nmore\n", b"\xef\xbb\xbfsk-1\r\n", "sk-1\r\nmore".encode("utf-16"), b" sk-1 \n\xff"):
        typed(monkeypatch, content)
        assert read_secret("-", "key") == "sk-1", content
    for content, code in ((b"sk\xe9\n", "E-FILE-TEXT"), (b"\xff\xfe", "E-STDIN-EMPTY"), (b"\n", "E-STDIN-EMPTY")):
        typed(monkeypatch, content)
        with pytest.raises(Invalid) as refused:
            read_secret("-", "key")
        assert refused.value.code == code
