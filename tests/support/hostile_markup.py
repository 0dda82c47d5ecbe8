"""Texts that try to run a script, load something, or hide something in a page."""

from __future__ import annotations

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
