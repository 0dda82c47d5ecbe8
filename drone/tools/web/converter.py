"""HTML as Markdown: nh3 makes it well formed and drops what is no text, markdownify writes what is left.

`python -I <this file> URL` reads HTML and prints Markdown. It is a program of its own, so it imports nothing of the
drone: a page can make any converter slow, and only a process can be ended at any time.
"""

from __future__ import annotations

import resource
import sys
from urllib.parse import urljoin

MOST = 1_000_000
"""Characters of HTML, once what is no text is dropped: two seconds, and a hundred megabytes of memory."""
MEMORY = 1024 * 1024 * 1024
TOO_DEEP = 3
"""Exit code for elements that are nested too deeply."""
_BLOCKS = {"p", "br", "hr", "div", "section", "blockquote", "pre", "main", "h1", "h2", "h3", "h4", "h5", "h6"}
_LISTS = {"ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption"}
_WORDS = {"a", "img", "em", "i", "strong", "b", "del", "s", "sub", "sup", "q", "code", "kbd", "samp"}
_DROPPED = {"script", "style", "noscript", "template", "svg", "math", "head", "nav", "footer", "button", "select"}
"""With all that is in them."""
_ATTRIBUTES = {"a": {"href"}, "img": {"alt", "src"}, "td": {"colspan"}}
_SCHEMES = {"http", "https", "mailto"}


def converted(html: str, url: str) -> str:
    """The text of the page at `url`, with absolute links; if the page has a main part, only that part."""
    import nh3
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    def absolute(_tag: str, name: str, value: str) -> str | None:
        if name not in {"href", "src"}:
            return value
        # A link within the page, as behind every heading of some, says nothing.
        return None if value.startswith("#") else _joined(url, value)

    clean = nh3.clean(
        html,
        tags=_BLOCKS | _LISTS | _WORDS,
        clean_content_tags=_DROPPED,
        attributes=_ATTRIBUTES,
        attribute_filter=absolute,
        url_schemes=_SCHEMES,
        link_rel=None,
    )
    soup = BeautifulSoup(f"<div>{clean[:MOST]}", "html.parser")
    part = soup.main if soup.main is not None and soup.main.get_text(strip=True) else soup
    markdown = MarkdownConverter(heading_style="ATX", bullets="-", escape_misc=False, table_infer_header=True)
    more = len(clean) - MOST
    rest = f"\n\n(the page continues; {more:,} characters of HTML are left out)" if more > 0 else ""
    return f"{markdown.convert_soup(part).strip()}{rest}\n"


def _joined(url: str, target: str) -> str | None:
    try:
        return urljoin(url, target)
    except ValueError:
        return None


if __name__ == "__main__":
    if sys.platform == "linux":  # macOS refuses it
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        text = converted(sys.stdin.buffer.read().decode(), sys.argv[1])
    except RecursionError:
        sys.exit(TOO_DEEP)
    sys.stdout.buffer.write(text.encode())
