"""Markdown, code and terminal output as HTML: formatted, harmless, and with nothing hidden."""

from __future__ import annotations

import re

from control_plane.web.markup.code import highlighted
from control_plane.web.markup.markdown import markdown
from control_plane.web.markup.terminal import terminal_line, terminal_lines

HOSTILE_MARKDOWN = (
    "<script>document.title='caught'</script>",
    "<img src=x onerror=\"document.title='caught'\">",
    "![x](https://tracker.example/p.png)",
    '![x" onerror=alert(1) y="](javascript:alert(1))',
    "[click](javascript:alert(1))",
    "[click](  JaVaScRiPt:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:x)",
    "<javascript:alert(1)>",
    "[a]: javascript:alert(1)\n\n[a]",
    "<svg onload=alert(1)><animate/></svg>",
    "<style>*{display:none}</style><p style='position:fixed'>x",
    "<a href='x' id='content' name='body'>x</a>",
    "<a href='javascript:alert(1)'>x</a>",
    "<p onclick='alert(1)'>x</p>",
    "<iframe src=//evil.example></iframe><form action=//evil.example><input name=a>",
    "```html\n</code></pre><script>alert(1)</script>\n```",
    '```" onmouseover=alert(1) x="\nx\n```',
    "`</code><script>alert(1)</script>`",
    "| <script>alert(1)</script> | b |\n|---|---|\n| <img src=x onerror=alert(1)> | y |",
    "# <script>alert(1)</script>",
    "safe\u202etxt.exe\u202c and zero\u200bwidth",
    "[\u202egnp.evil](https://x.example)",
    "terminal \x1b[31mred\x1b[0m \x00 \x08\x08 hidden",
    "<base href=//evil.example><meta http-equiv=refresh content=0>",
    "&lt;script&gt; &#x3C;script&#x3E; &#106;avascript:",
    "[x](&#106;avascript:alert(1))",
)


def test_markdown_is_formatted_and_code_coloured_with_classes_only() -> None:
    html = markdown(
        "### Plan\n\n- *one*\n- `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n![chart](https://x.example/a.png)"
    )
    for part in ('<h3 dir="auto">Plan</h3>', "<em>one</em>", "<code>two</code>", "<td", "wide-table"):
        assert part in html
    # An image becomes a link to it.
    assert '<a href="https://x.example/a.png" rel="noopener noreferrer nofollow">chart</a>' in html
    html = markdown("```python\ndef total(x):\n    return 'a < b'\n```")
    assert '<span class="hl-keyword">def</span>' in html
    assert ("a &lt; b" in html, "style" in html) == (True, False)
    # That of an unknown language or of great length stays plain.
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
    for entity in ("&#x202e;", "&#8238;", "&ZeroWidthSpace;", "&#x200b;", "&#xE0041;", "&shy;"):
        for text in (f"pay {entity}bob", f"`pay` {entity}bob", f"[pay{entity}](https://a.example '{entity}')"):
            html = str(markdown(text))
            assert not [each for each in html if each in "\u202e\u200b\U000e0041\xad"], text
            assert "⟨U+" in html, text


def test_a_long_or_deeply_nested_text_costs_little() -> None:
    assert "<pre" in markdown("> " * 60_000)
    assert markdown("[" * 2000 + "x" + "](y)" * 2000)


def test_terminal_output_keeps_colours_as_classes_and_its_last_state_and_markup_in_it_stays_text() -> None:
    assert terminal_line("\x1b[1;31mFAILED\x1b[0m x") == '<span class="t1 t-bold">FAILED</span> x'
    assert terminal_line("\x1b[38;5;196mred\x1b[39m \x1b[38;2;0;200;0mgreen") == (
        '<span class="t9">red</span> <span class="t2">green</span>'
    )
    assert terminal_line("<img src=x onerror=y>\x1b[31m<b>") == (
        '&lt;img src=x onerror=y&gt;<span class="t1">&lt;b&gt;</span>'
    )
    assert terminal_lines("10 %\r100 %\x1b[2K\n\x1b]0;title\x07done\n") == ["100 %", "done"]
    # An unclosed sequence swallows only its own line.
    assert terminal_lines("\x1b]0;never closed\nvisible") == ["", "visible"]
    assert terminal_lines("\n".join(map(str, range(100))), last=2) == ["98", "99"]
