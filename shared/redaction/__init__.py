"""Removes secrets from text before it leaves a machine: known values in all their spellings, and well-known shapes.

Known values (keys, passwords) are found by one pass of an automaton, regardless of their number; shapes (`sk-…`,
`ghp_…`, a password in a URL) by regular expressions that run only if a cheap check shows that they might match. In a
stream, secrets are found regardless of how the text is split. `shortened` redacts before it cuts: half a secret would
not be recognized afterwards.
"""

from __future__ import annotations

from shared.redaction.cuts import cut_off, cut_short, know, known, last_part, shortened
from shared.redaction.redactor import MARK, Redactor
from shared.redaction.spellings import SHORTEST
from shared.redaction.stream import StreamRedactor
from shared.redaction.urls import login_secrets, redact_url

__all__ = [
    "MARK",
    "SHORTEST",
    "Redactor",
    "StreamRedactor",
    "cut_off",
    "cut_short",
    "know",
    "known",
    "last_part",
    "login_secrets",
    "redact_url",
    "shortened",
]
