"""Reads recorded observations: from `extra`, otherwise from the text without its template."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from drone.replay.recording import Expected

_TIMED_OUT = re.compile(r"timed out|^ended after ")
"""In the `exception_info` of mini-swe-agent, and of our exports."""
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")
_EXCEPTION = re.compile(r"(?>.*?<exception>)(.*?)</exception>", re.DOTALL)
_OUTPUT = re.compile(r"(?>.*?<output>\n?)(.*)</output>", re.DOTALL)
_PARTS = re.compile(
    r"(?>.*?<output_head>\n)(?>(.*?)\n</output_head>)(?>.*?<elided_chars>)\D*+(\d++)(?>.*?</elided_chars>)"
    r"(?>.*?<output_tail>\n)(.*)\n</output_tail>",
    re.DOTALL,
)
_NOTE = r"^\((?:return code -?\d+|ended [^\n]*)\)"
"""What our shell tool adds below a command's output."""
_NOTE_ALONE = re.compile(rf"{_NOTE}\Z", re.MULTILINE)
_NOTE_WITH_MORE = re.compile(rf"{_NOTE}\n\n\[", re.MULTILINE)
"""More follows in brackets, up to the end."""
_ELIDED = re.compile(r"\n\[… ([\d,]+) characters elided …\]\n")
"""Separates head and tail in the output of our shell tool."""


def expected_of(message: Mapping[str, Any], tool: str) -> tuple[Expected | None, bool]:
    """Return the contents of an observation (None: it cannot be read), and whether the call was run at all.

    A call that ended in an exception other than its time limit counts as not run: its progress is unknown.
    """
    extra = message.get("extra")
    if isinstance(extra, Mapping) and isinstance(extra.get("raw_output"), str):
        if extra.get("execution") == "submitted":
            # Its output is in the message that says how the run ended.
            return None, True
        return _expected(tool, extra["raw_output"], extra.get("returncode"), str(extra.get("exception_info") or ""))
    text = text_of(message)
    if tool != "shell":
        return Expected(text), True
    return _from_json(text) or _from_tags(text) or _from_our_text(text) or (None, True)


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message in any of its possible formats."""
    content = message.get("content", message.get("output"))
    if isinstance(content, list):
        parts = [item.get("text") for item in content if isinstance(item, Mapping)]
        return "\n\n".join(whole(part) for part in parts if isinstance(part, str))
    return whole(content) if isinstance(content, str) else ""


def whole(text: str) -> str:
    """Replace lone surrogates by U+FFFD: JSON can express them, but they cannot be passed to a program."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_observation(message: Mapping[str, Any]) -> bool:
    """Whether a user message is the result of a command rather than text from a user."""
    extra = message.get("extra")
    if isinstance(extra, Mapping) and extra:
        return "raw_output" in extra or "returncode" in extra
    text = text_of(message)
    return _from_json(text) is not None or _from_tags(text) is not None


def _expected(tool: str, output: str, code: object, exception: str) -> tuple[Expected | None, bool]:
    cut = _ELIDED.search(output) if tool == "shell" else None
    if cut is None:
        return _ended(Expected(whole(output)), code, exception)
    elided = int(cut[1].replace(",", ""))
    parts = Expected(whole(output[: cut.start()]), tail=whole(output[cut.end() :]), elided=elided)
    return _ended(parts, code, exception)


def _ended(expected: Expected, code: object, exception: str) -> tuple[Expected | None, bool]:
    """Add how the command ended to its output."""
    if _TIMED_OUT.search(exception):
        return replace(expected, timed_out=True), True
    if exception:
        return None, False
    return replace(expected, return_code=code if isinstance(code, int) else None), True


def _from_json(text: str) -> tuple[Expected | None, bool] | None:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or "returncode" not in said:
        return None
    exception = str(said.get("exception_info") or "")
    head, tail, elided = said.get("output_head"), said.get("output_tail"), said.get("elided_chars")
    if isinstance(head, str) and isinstance(tail, str) and isinstance(elided, int):
        return _ended(Expected(whole(head), tail=whole(tail), elided=elided), said["returncode"], exception)
    output = said.get("output")
    return _expected("", output, said["returncode"], exception) if isinstance(output, str) else None


def _from_tags(text: str) -> tuple[Expected | None, bool] | None:
    code = _RETURN_CODE.search(text)
    if code is None:
        return None
    exception = _EXCEPTION.match(text[: code.start()])
    why = exception[1] if exception else ""
    if (parts := _PARTS.match(text, code.end())) is not None:
        cut = Expected(whole(parts[1]), tail=whole(parts[3]), elided=int(parts[2]))
        return _ended(cut, int(code[1]), why)
    output = _OUTPUT.match(text, code.end())
    return None if output is None else _expected("", output[1], int(code[1]), why)


def _from_our_text(text: str) -> tuple[Expected | None, bool] | None:
    found = (_NOTE_WITH_MORE if text.endswith("]") else _NOTE_ALONE).search(text)
    if found is None:
        return None
    note = text[found.start() :]
    code = re.match(r"\(return code (-?\d+)\)", note)
    why_ended = "" if code else note.strip("()")
    return _expected("shell", text.removesuffix(note), int(code[1]) if code else -1, why_ended)
