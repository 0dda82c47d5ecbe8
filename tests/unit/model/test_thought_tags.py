"""Thoughts that an endpoint leaves in the text of an answer are thoughts; tags that are quoted are text."""

from __future__ import annotations

from time import process_time

import pytest

from drone.model.thought_tags import ThoughtTags

WELL = "All is well."

SEPARATED: dict[str, tuple[str, str]] = {
    # whole
    "<think>I should look first.</think>": ("I should look first.", ""),
    f"<think>Hm.</think>{WELL}": ("Hm.", WELL),
    f"<think>\nHm.\n\nYes.\n</think>\n\n{WELL}": ("Hm.\n\nYes.", WELL),
    f"\n<think>Hm.</think> {WELL}": ("Hm.", WELL),
    f"<thinking>Hm.</thinking>\n{WELL}": ("Hm.", WELL),
    f"<Thought>Hm.</Thought>\n{WELL}": ("Hm.", WELL),
    f"<reasoning>Hm.</reasoning>\n{WELL}": ("Hm.", WELL),
    f"<seed:think>Hm.</seed:think>\n{WELL}": ("Hm.", WELL),
    f"◁think▷Hm.◁/think▷{WELL}": ("Hm.", WELL),
    f"[THINK]Hm.[/THINK]{WELL}": ("Hm.", WELL),
    f"<think></think>\n\n{WELL}": ("", WELL),
    "<think> </think>\n": ("", ""),
    # not closed
    "<think>I should look first.": ("I should look first.", ""),
    "<think>\nI should look first.\n\n1. Read `a`.": ("I should look first.\n\n1. Read `a`.", ""),
    f"{WELL}\n<think>Hm.": ("Hm.", f"{WELL}\n"),
    "<think>": ("", ""),
    "<think>Hm.</thin": ("Hm.</thin", ""),
    # not opened: the question had the opening tag
    "I should look first.</think>": ("I should look first.", ""),
    "I should look first.\n</think>\n": ("I should look first.", ""),
    f"Hm, so I\n</think>\n\n{WELL}": ("Hm, so I", WELL),
    f"Hm.</think>{WELL}": ("Hm.", WELL),
    f"Hm so it ends</think>\n{WELL}": ("Hm so it ends", WELL),
    f"I call `ls`.\n```sh\nls\n```\nDone. </think> {WELL}": ("I call `ls`.\n```sh\nls\n```\nDone.", WELL),
    f"</think>\n{WELL}": ("", WELL),
    # several
    f"<think>One.</think><think>Two.</think>{WELL}": ("One.\n\nTwo.", WELL),
    "<think>One.</think>First.\n<think>Two.</think>\nSecond.": ("One.\n\nTwo.", "First.\n\nSecond."),
    "First. <think>One.</think> Second.": ("One.", "First.  Second."),
    "First.<thinking>One.</thinking>Second.": ("One.", "First.Second."),
    f"<think>The tag `</think>` ends it.</think>{WELL}": ("The tag `</think>` ends it.", WELL),
    f"<think>A <think> in it.</think>{WELL}": ("A <think> in it.", WELL),
    f"One.</think>\n<think>Two.</think>\n{WELL}": ("One.\n\nTwo.", WELL),
}

QUOTED = [
    WELL,
    "",
    "  indented",
    "The parser drops `<think>` and `</think>`.",
    "`<think>` begins a thought.",
    "`</think>` ends it.",
    "It ends with `</think>`",
    "The tag <think> begins a thought, and </think> ends it.",
    "Models write <think>…</think> before the answer.",
    "Models write <think>Hm.</think>",
    "It ends with </think>",
    "It ends with </think>.",
    "The tags (<think>, </think>) stay.",
    'It splits at "</think>" now.',
    "text.split('</think>')[1]",
    "- <think>: a thought\n- </think>: its end",
    "> <think>Hm.</think>",
    "| <think> | thought |",
    "```\n<think>Hm.</think>\nAnswer\n```",
    "```xml\n<think>\nHm.\n</think>\n```\n\nThat is the form.",
    "~~~\n</think>\n~~~",
    "Use:\n\n    <think>Hm.</think>",
    "<thinker>x</thinker> <rethink>",
    "<think time=1> < think >",
    "[think] [THINK",
    "<think> is the opening tag.",
    "a < b and c > d, [1], ◁",
    "I think </b>",
]


def separated(*pieces: str) -> tuple[str, str, dict[str, str]]:
    tags, shown = ThoughtTags(), {"text": "", "thinking": ""}
    for step in (*(tags.feed(piece) for piece in pieces), tags.end()):
        for kind, text in step:
            shown[kind] += text
    return tags.thoughts, tags.text, shown


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_thoughts_in_tags_are_no_text_and_tags_in_code_or_within_a_sentence_are_however_an_answer_is_cut(
    size: int,
) -> None:
    cases = SEPARATED | {text: ("", text) for text in QUOTED}
    cut = {text: [text[at : at + size] for at in range(0, len(text), size)] for text in cases}
    assert {text: found for text, pieces in cut.items() if (found := separated(*pieces)[:2]) != cases[text]} == {}


def test_thoughts_are_shown_as_thinking_while_they_stream() -> None:
    assert separated("<thi", "nk>", "Hm", ".</th", "ink>", "All is ", "well.")[2] == {"thinking": "Hm.", "text": WELL}
    tags = ThoughtTags()
    assert list(tags.feed("<think>Let me")) == [("thinking", "Let me")]
    assert list(tags.feed(" see a < b. ")) == [("thinking", " see a < b. ")]
    assert list(tags.feed("</think>")) == [], "what follows decides"
    assert list(tags.feed("All")) == [("text", "All")]


def test_the_search_takes_time_that_grows_with_the_text() -> None:
    texts = [*SEPARATED, *QUOTED[2:], "<", "[", "<think", "`", "x<think>", "x </think>", " ", "\n", "<think>`</think>`"]
    assert [text for text in texts if not _grows_with(text)] == []


def _grows_with(text: str) -> bool:
    def seconds(size: int) -> float:
        whole = (text * size)[:size]
        began = process_time()
        separated(whole)
        separated(*(whole[at : at + 8] for at in range(0, size, 8)))
        return process_time() - began

    # Eight times the length: 64 times the time if it grows with the square, at each of the attempts.
    return any(seconds(16_000) < 24 * max(0.003, seconds(2_000)) for _ in range(5))
