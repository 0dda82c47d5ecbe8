"""A browser's live stream, as its shared worker holds it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from control_plane.client import following
from tests.support import wait_until


@dataclass
class LiveStream:
    """One open stream, read in a thread."""

    browser: httpx.Client
    topics: Mapping[str, str]
    """With the versions that the pages have."""
    events: list[tuple[str, Any]] = field(default_factory=list)
    closed: bool = False
    _response: httpx.Response | None = None

    def of(self, kind: str) -> list[Any]:
        """The data of all events of this kind so far."""
        return [data for event, data in list(self.events) if event == kind]

    def versions(self) -> dict[str, str]:
        """The version of each topic as last told."""
        return {each["topic"]: each["version"] for each in self.of("changed")}

    def told(self, topic: str) -> int:
        """How often this topic was told to have changed."""
        return len([each for each in self.of("changed") if each["topic"] == topic])

    def follow(self, topics: Mapping[str, str]) -> httpx.Response:
        """Follow other topics from now on."""
        return self.browser.post(f"/live/{self.of('hello')[0]['stream']}/topics", json=dict(topics))

    def read(self) -> None:
        query = [("topic", f"{topic}={version}") for topic, version in self.topics.items()]
        with self.browser.stream("GET", "/live", params=query, timeout=None) as response:
            self._response = response
            try:
                for message in following.parse(response.iter_bytes()):
                    self.events.append((message.event, json.loads(message.data)))
            except (httpx.TransportError, httpx.StreamError):
                return
            finally:
                self.closed = True


@contextmanager
def live(browser: httpx.Client, *topics: str, **versions: str) -> Iterator[LiveStream]:
    """A stream that said hello; it is closed at the end."""
    with httpx.Client(
        base_url=browser.base_url, headers=browser.headers, cookies=browser.cookies, trust_env=False
    ) as own:
        stream = LiveStream(own, {**dict.fromkeys(topics, ""), **versions})
        thread = threading.Thread(target=stream.read, daemon=True)
        thread.start()
        wait_until(lambda: stream.of("hello"))
        try:
            yield stream
        finally:
            if stream._response is not None and (network := stream._response.extensions.get("network_stream")):
                network.get_extra_info("socket").shutdown(2)
            thread.join(60)
            assert not thread.is_alive()
