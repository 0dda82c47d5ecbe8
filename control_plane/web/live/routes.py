"""Addresses of the live pages: the stream of a browser, its topics, and the same news for clients that must poll."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Body, Query, Request
from starlette.responses import Response, StreamingResponse

from control_plane.core import Caller, Core
from control_plane.web.access import CallerDep, CoreDep, identify
from control_plane.web.live.page_stream import MOST_TOPICS, PageStream
from control_plane.web.live.topics import Versions, Wanted
from control_plane.web.stream import Live
from shared.errors import NotFound

router = APIRouter(prefix="/live", include_in_schema=False)

HEADERS = {"Cache-Control": "no-cache, no-store", "X-Accel-Buffering": "no"}
Topics = Annotated[
    list[str], Query(max_length=MOST_TOPICS, description="`orders`, `order:ID`; with `=VERSION` or not.")
]


class PageStreams:
    """The open streams of this process."""

    def __init__(self, core: Core, live: Live) -> None:
        self._core = core
        self._live = live
        self._open: dict[str, PageStream] = {}
        self.versions = Versions(core)

    async def serve(self, request: Request, caller: Caller, topics: dict[str, str]) -> AsyncIterator[bytes]:
        """The events of a new stream."""
        still_allowed = functools.partial(identify, self._core, request.scope)
        stream = PageStream(self._core, self._live.hub, self.versions, caller, still_allowed)
        stream.follow(topics)
        self._open[stream.id] = stream
        try:
            async for event in stream.events(self._live.pace):
                yield event
        finally:
            del self._open[stream.id]

    def of(self, caller: Caller, stream_id: str) -> PageStream:
        """The caller's open stream in this organization. Raises NotFound; the client then opens another one."""
        stream = self._open.get(stream_id)
        if stream is None or _opener(stream.caller) != _opener(caller):
            raise NotFound("this stream has ended", code="E-STREAM-404", next="open it again")
        return stream


@router.get("")
async def follow(request: Request, caller: CallerDep, topic: Topics = []) -> Response:  # noqa: B006 - FastAPI copies it
    """Events: `hello` (the stream's id), `changed` (topic, version), `delta` (text in flight), `beat`."""
    streams: PageStreams = request.app.state.page_streams
    events = streams.serve(request, caller, _with_versions(topic))
    return StreamingResponse(events, headers=HEADERS, media_type="text/event-stream")


@router.get("/now")
async def now(
    core: CoreDep,
    request: Request,
    caller: CallerDep,
    topic: Topics = [],  # noqa: B006
) -> dict[str, object]:
    """The present versions, for a client whose stream does not arrive: `{"now": …, "versions": {topic: version}}`."""
    streams: PageStreams = request.app.state.page_streams
    wanted = [each for text in _with_versions(topic) if (each := Wanted.of(text))]
    versions = await to_thread.run_sync(streams.versions.of, caller, wanted)
    return {"now": core.clock.now(), "versions": versions}


@router.post("/{stream_id}/topics", status_code=204)
async def set_topics(
    request: Request, caller: CallerDep, stream_id: str, topics: Annotated[dict[str, str], Body()]
) -> None:
    """Follow exactly these topics from now on; the values are the versions that the client has."""
    streams: PageStreams = request.app.state.page_streams
    streams.of(caller, stream_id).follow(topics)


def _opener(caller: Caller) -> tuple[str | None, str]:
    return caller.login_session_id, caller.organization_id


def _with_versions(topics: list[str]) -> dict[str, str]:
    return {name: version for name, _, version in (each.partition("=") for each in topics)}
