"""web_fetch: a page of the web as Markdown, through the network policy of the drone's owner."""

from drone.tools.web.web_fetch import WebFetch

__all__ = ["WebFetch"]
