"""What the system tells in a thread (S-043), and what it does not tell of a failure (S-084)."""

from __future__ import annotations

from control_plane.teams import system_notes
from control_plane.teams.system_notes import sanitized

EVERY = [
    system_notes.preempted("kim", "lead"),
    system_notes.canceled("kim", "no longer needed."),
    system_notes.done(""),
    system_notes.failed("lead", "model_error", "HTTP 429", "run1"),
    system_notes.lost("lead", 3, "run1"),
    system_notes.run_canceled("lead", "canceled by kim, before it began"),
    system_notes.handed_off("lead", "tester"),
    system_notes.hand_off_limit("tester", 20),
    system_notes.cannot_begin("lead", "0" * 12, "there is no provider", "fleet provider add"),
]


def test_every_note_is_plain_sentences_that_tag_nobody() -> None:
    for note in EVERY:
        assert note.text[0].isalpha(), note
        assert note.text.endswith("."), note
        assert "@" not in note.text, note
        assert ".." not in note.text, note
        assert len(note.kind) <= 24, note


def test_a_foreign_reason_becomes_a_phrase_or_its_first_120_characters() -> None:
    expected = {
        "litellm.ContextWindowExceededError: maximum context length is 8192": "Context window exceeded",
        "RateLimitError from openai": "LLM rate limit reached",
        "The model endpoint m:80 cannot be reached.": "Network error",
        "ReadTimeout: timed out": "request timed out",
        "line 1429\nof something": "line 1429 of something",
        "x" * 500: "x" * 120 + "…",
        "": "no reason given",
    }
    assert {reason: sanitized(reason) for reason in expected} == expected
    foreign = system_notes.failed("lead", "model_error", "HTTP 429 secret detail", "run1").text
    assert ("LLM rate limit reached (details: fleet run show run1)" in foreign, "secret" in foreign) == (True, False)
    own = system_notes.failed("lead", "time_limit", "The time limit of 1800 s was reached.", None).text
    assert "The time limit of 1800 s was reached" in own
