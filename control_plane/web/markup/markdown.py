"""Markdown of people and models as HTML that runs no script, loads nothing, and hides nothing."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from functools import cache, lru_cache
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from control_plane.web.markup.code import CLASSES, highlighted
from shared.visible_text import visible_prose

MAX_CHARACTERS = 100_000
"""A longer text is shown as it is: parsing time grows with nesting."""
MAX_NESTING = 20
_TEXT = ("p", "h3", "strong", "em", "s", "a", "code", "pre", "blockquote", "hr", "br", "span", "div")
_LISTS = ("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
TAGS = frozenset({*_TEXT, *_LISTS})
ATTRIBUTES: Mapping[str, set[str]] = {
    "a": {"href", "title"},
    "ol": {"start"},
    "pre": {"tabindex"},
    "div": {"tabindex"},
    **{tag: {"dir"} for tag in ("p", "h3", "li", "blockquote", "td", "th")},
}
"""What the sanitizer keeps. No images: their addresses would tell a third party who reads what."""


@lru_cache(maxsize=2000)
def markdown(text: str) -> Markup:
    """The text as HTML; its headings are of the third level, below those of the page."""
    shown = visible_prose(text)
    if len(shown) > MAX_CHARACTERS:
        return Markup('<pre dir="auto">{}</pre>').format(shown)
    # Again, because Markdown turns `&#x202e;` into the character.
    return Markup(visible_prose(_sanitized(_parser().render(shown))))  # noqa: S704 - sanitized


def _sanitized(html: str) -> str:
    return nh3.clean(
        html,
        tags=set(TAGS),
        attributes={tag: set(names) for tag, names in ATTRIBUTES.items()},
        allowed_classes={"span": set(CLASSES), "div": {"wide-table"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
    for rule, render in _RULES.items():
        parser.add_render_rule(rule, render)
    return parser


Env = MutableMapping[str, Any]


def _fence(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:  # noqa: ARG001
    token = tokens[index]
    language = token.info.split()[0] if token.info.split() else ""
    return f'<pre tabindex="0"><code>{highlighted(token.content, language)}</code></pre>\n'


def _image(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:  # noqa: ARG001
    token = tokens[index]
    return str(
        Markup('<a href="{}">{}</a>').format(token.attrGet("src") or "", token.content or token.attrGet("src") or "")
    )


def _with_direction(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    tokens[index].attrSet("dir", "auto")
    return self.renderToken(tokens, index, options, env)


def _heading(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    token = tokens[index]
    # One level for all: a text that begins with a deep heading would leave out levels of the page.
    token.tag = "h3"
    return (_with_direction if token.nesting == 1 else RendererHTML.renderToken)(self, tokens, index, options, env)


def _table_open(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:  # noqa: ARG001
    return '<div class="wide-table" tabindex="0"><table>'


def _table_close(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:  # noqa: ARG001
    return "</table></div>"


_RULES: Mapping[str, Any] = {
    "fence": _fence,
    "code_block": _fence,
    "image": _image,
    "heading_open": _heading,
    "heading_close": _heading,
    "table_open": _table_open,
    "table_close": _table_close,
    **{f"{name}_open": _with_direction for name in ("paragraph", "list_item", "blockquote", "td", "th")},
}


def plain(text: str) -> Markup:
    """A text as it was written, with its lines."""
    return escape(visible_prose(text))
