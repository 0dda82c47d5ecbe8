"""web_fetch: one page of the web as text, in parts that a model can read."""

from __future__ import annotations

from drone.agent.values import ToolResult
from drone.sandbox.network import Gateway
from drone.sandbox.output import SHOWN
from drone.sandbox.protocol import Check
from drone.tools.arguments import WebFetchArguments
from drone.tools.web.page_markdown import markdown
from drone.tools.web.page_request import SECONDS, PageRequests
from drone.tools.web.page_text import decoded, is_html
from drone.tools.wrong_use import WrongUse
from shared.redaction import cut_off, cut_short

NAME = "web_fetch"


class WebFetch:
    """Fetches pages for the model. It keeps the last one, of which the model may read on."""

    def __init__(self, gateway: Gateway, check: Check, seconds: float = SECONDS) -> None:
        """`seconds`: the longest that an answer may take, and then its conversion."""
        self._requests = PageRequests(gateway, check, seconds)
        self._check, self._seconds = check, seconds
        self._last = "", ""
        """The URL that was asked for, and its text."""

    def __call__(self, call: WebFetchArguments) -> ToolResult:
        url, text = self._last
        if not call.offset or url != call.url:
            text = self._text(call.url)
            self._last = call.url, text
        return ToolResult(_part(text, call.offset), output_bytes=len(text.encode()))

    def _text(self, url: str) -> str:
        page = self._requests.get(url)
        text = decoded(page)
        if is_html(page, text):
            text = markdown(text, page.url, self._check, self._seconds)
        moved = "" if page.url == url else f"(redirected to {page.url})\n\n"
        return f"{moved}{text}"


def _part(text: str, offset: int) -> str:
    """What is shown of a text: first its head and tail, later the characters from `offset` on."""
    if not text.strip():
        return "(the page has no text)"
    if offset >= len(text):
        raise WrongUse(f"the page has only {len(text):,} characters; use a smaller `offset`")
    if len(text) - offset <= SHOWN:
        return text[offset:]
    if offset:
        part = cut_short(text[offset:], SHOWN)
        return f"{part}\n(more follows; read on with offset {offset + len(part)})"
    head, tail = cut_short(text, SHOWN // 2), cut_off(text, SHOWN // 2)
    elided = len(text) - len(head) - len(tail)
    return f"{head}\n[… {elided:,} characters elided; read on with offset {len(head)} …]\n{tail}"
