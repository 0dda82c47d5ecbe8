"""All extensions and guardrails of a run, merged into one set of hooks, rules and tools; `reload` merges again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial

from drone.agent.guardrails.loop_detection import LoopDetection
from drone.agent.guardrails.rule_set import RuleSet
from drone.agent.hooks.bus import HookBus
from drone.agent.hooks.calling import described, inside
from drone.agent.hooks.observer import EXTENSION_FAILED, ObservedRecorder
from drone.agent.protocols import Controls, Recorder
from drone.extensions.api import Api, Contributions, Origin
from drone.extensions.context import ExtensionContext, Running
from drone.extensions.controls import HeldControls
from drone.extensions.foreign_calls import ForeignCalls
from drone.extensions.modules import LoadFailed, ModuleLoader
from drone.extensions.sources import Found, Sources, found_in, installed
from drone.extensions.tools import ExtensionTool
from shared.errors import LimitsExceeded
from shared.events import CommentStep, ErrorStep


@dataclass(frozen=True)
class Services:
    """What extensions need from a run, and their time limits in seconds."""

    recorder: Recorder
    controls: Controls
    max_retries: int = 3
    """Of a model call; reported to extensions."""
    read_only: Collection[str] = ()
    """Names of further tools that change nothing, for example of MCP servers."""
    tool_seconds: float = 120.0
    """0: no limit."""
    call_seconds: float = 5.0
    load_seconds: float = 10.0
    limits: Callable[[], None] = lambda: None
    """Raises LimitsExceeded when the run has used up its time or money; called while a tool runs."""
    on_reload: Callable[[], None] = lambda: None
    """Called after each merge except the first."""


def load(sources: Sources, services: Services) -> Extensions:
    """Load everything in the sources. A file that cannot be loaded is recorded as an error step and left out."""
    extensions = Extensions(sources, services)
    extensions.merge()
    return extensions


class Extensions:
    """The extensions of a run. `bind` them to the run before the agent begins, `close` them at the end.

    The agent takes `hooks` and `guardrails`; it and all other parts of the run that record or check take `recorder` and
    `controls`; its toolbox takes `tools`.
    """

    def __init__(self, sources: Sources, services: Services) -> None:
        self._sources = sources
        self._services = services
        self.controls = HeldControls(services.controls)
        stop = self.controls.stop_waiting
        self._calls = ForeignCalls(services.call_seconds, stop)
        self._tool_calls = ForeignCalls(services.tool_seconds, self._tool_has_to_stop)
        self._loops = LoopDetection(services.read_only)
        self.context = ExtensionContext(self.reload)
        self.hooks = HookBus(self._report, self.context, self._calls, self._reload_if_wanted)
        self.guardrails = RuleSet(self._report, (), self._calls, self._loops)
        self.recorder = ObservedRecorder(services.recorder, self.hooks, services.max_retries)
        self.tools: tuple[ExtensionTool, ...] = ()
        self.loaded: tuple[str, ...] = ()
        """Descriptions of the loaded files, in order."""
        self._live: list[ModuleLoader] = []
        self._merging = threading.Lock()
        self._wanted = False

    def bind(self, running: Running) -> None:
        """Connect the context object to its run."""
        self.context.bind(running)

    def reload(self) -> None:
        """Reload everything. Inside a handler this happens after the event, because reading takes time.

        The tools offered to the model at the start stay unchanged: they are part of the prompt's prefix.
        """
        if inside():
            self._wanted = True
        else:
            self.merge()
            self._services.on_reload()

    def close(self) -> None:
        """Release modules and threads, and record user messages that arrived too late."""
        for text in self.controls.left_over():
            self._services.recorder.record(CommentStep(text=f"Received too late for this run: {text}"))
        for loading in self._live:
            loading.close()
        self._calls.close()
        self._tool_calls.close()

    def merge(self) -> None:
        """Read the sources, and replace the current contributions with the new ones."""
        with self._merging:
            brought, live = self._read()
            for before in self._live:
                before.close()
            for loading in live:
                loading.goes_live()
            self._live, self.loaded = live, tuple(loading.found.source for loading in live)
            tools = self._distinct(brought.tools)
            self._loops.read_only = {*self._services.read_only, *(tool.spec.name for tool in tools if tool.read_only)}
            self.hooks.replace(brought.handlers)
            self.guardrails.replace(brought.rules)
            self.tools = tools

    def _read(self) -> tuple[Contributions, list[ModuleLoader]]:
        calling = ForeignCalls(self._services.load_seconds, self.controls.stop_waiting)
        brought, live = Contributions(), []
        for found in self._found():
            loading = ModuleLoader(found, self._api)
            try:
                brought.add(loading.load(calling))
            except LoadFailed as failed:
                self._report(failed.what, failed.detail)
                brought.rules[:0] = [failed.stand_in] if failed.stand_in else []
            else:
                live.append(loading)
        calling.close()
        return brought, live

    def _found(self) -> Iterator[Found]:
        sources = self._sources
        places = ((sources.drone, "drone"), (sources.project, "project"))
        searches: list[Callable[[], list[Found]]] = [
            partial(found_in, directory, kind, owner)
            for kind in ("guardrail", "extension")
            for directory, owner in places
        ]
        if sources.entry_points:
            searches.append(installed)
        for search in searches:
            try:
                yield from search()
            except Exception as error:  # noqa: BLE001 - the metadata of packages is foreign, and a directory may be anything
                self._report(f"The search for extensions failed: {described(error)}.", "")

    def _api(self, origin: Origin) -> Api:
        make_tool = partial(ExtensionTool, calling=self._tool_calls, check=self._check, report=self._report)
        return Api(origin, self.context, self.hooks, make_tool)

    def _check(self) -> None:
        self.controls.check()
        self._services.limits()

    def _tool_has_to_stop(self) -> bool:
        try:
            self._services.limits()
        except LimitsExceeded:
            return True
        return self.controls.stop_waiting()

    def _distinct(self, tools: list[ExtensionTool]) -> tuple[ExtensionTool, ...]:
        kept: dict[str, ExtensionTool] = {}
        for tool in tools:
            if kept.setdefault(tool.spec.name, tool) is not tool:
                self._report(
                    f"The tool {tool.spec.name} of {tool.source} is ignored: another tool has the same name.", ""
                )
        return tuple(kept.values())

    def _report(self, what: str, detail: str) -> None:
        # Bypasses the observed recorder: an extension that fails on errors must not receive its own.
        self._services.recorder.record(ErrorStep(what=what, detail=detail, code=EXTENSION_FAILED))

    def _reload_if_wanted(self) -> None:
        if self._wanted:
            self._wanted = False
            self.reload()
