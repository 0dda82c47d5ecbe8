"""Markdown, code and terminal output as HTML: formatted, harmless, and with nothing hidden."""

from __future__ import annotations

import re

from control_plane.web.markup.code import highlighted
from control_plane.web.markup.markdown import markdown
from control_plane.web.markup.terminal import terminal_line, terminal_lines
from tests.support.hostile_markup import HOSTILE_MARKDOWN


def test_markdown_is_formatted_below_the_headings_of_the_page() -> None:
    html = markdown("### Plan\n\n- *one*\n- `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    for part in ('<h3 dir="auto">Plan</h3>', "<em>one</em>", "<code>two</code>", "<td", "wide-table"):
        assert part in html


def test_code_is_coloured_with_classes_only() -> None:
    html = markdown("```python\ndef total(x):\n    return 'a < b'\n```")
    assert '<span class="hl-keyword">def</span>' in html
    assert "a &lt; b" in html
    assert "style" not in html


def test_code_of_an_unknown_language_or_of_great_length_stays_plain() -> None:
    assert highlighted("<x>", "no-such-language") == "&lt;x&gt;"
    assert "<span" not in highlighted("def f(): pass\n" * 1000, "python")


def test_hostile_markdown_runs_loads_and_hides_nothing() -> None:
    for text in HOSTILE_MARKDOWN:
        html = str(markdown(text))
        assert not re.search(r"(?i)<(script|img|iframe|svg|object|style|form|input|base|meta|link)", html), text
        for each in re.findall(r"<[^>]*>", html):
            assert not re.search(r"(?i)\s(on\w+|style|id|name|srcset|src)\s*=", each), text
            assert not re.search(r"(?i)href=\"?\s*(javascript|data|vbscript|file):", each), text
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x00\x08\x1b]", html), text


def test_an_image_becomes_a_link_to_it() -> None:
    assert '<a href="https://x.example/a.png" rel="noopener noreferrer nofollow">chart</a>' in markdown(
        "![chart](https://x.example/a.png)"
    )


def test_a_long_or_deeply_nested_text_costs_little() -> None:
    assert "<pre" in markdown("> " * 60_000)
    assert markdown("[" * 2000 + "x" + "](y)" * 2000)


def test_colours_of_a_terminal_become_classes() -> None:
    assert terminal_line("\x1b[1;31mFAILED\x1b[0m x") == '<span class="t1 t-bold">FAILED</span> x'
    assert terminal_line("\x1b[38;5;196mred\x1b[39m \x1b[38;2;0;200;0mgreen") == (
        '<span class="t9">red</span> <span class="t2">green</span>'
    )


def test_what_moves_the_cursor_is_gone_and_overwritten_text_too() -> None:
    assert terminal_lines("10 %\r100 %\x1b[2K\n\x1b]0;title\x07done\n") == ["100 %", "done"]


def test_an_unclosed_sequence_swallows_only_its_own_line() -> None:
    assert terminal_lines("\x1b]0;never closed\nvisible") == ["", "visible"]


def test_markup_in_output_stays_text() -> None:
    assert terminal_line("<img src=x onerror=y>\x1b[31m<b>") == (
        '&lt;img src=x onerror=y&gt;<span class="t1">&lt;b&gt;</span>'
    )


def test_only_the_last_lines_are_shown_on_request() -> None:
    assert terminal_lines("\n".join(map(str, range(100))), last=2) == ["98", "99"]


def test_an_entity_hides_nothing_either() -> None:
    for entity in ("&#x202e;", "&#8238;", "&ZeroWidthSpace;", "&#x200b;", "&#xE0041;", "&shy;"):
        for text in (f"pay {entity}bob", f"`pay` {entity}bob", f"[pay{entity}](https://a.example '{entity}')"):
            html = str(markdown(text))
            assert not [each for each in html if each in "\u202e\u200b\U000e0041\xad"], text
            assert "⟨U+" in html, text
