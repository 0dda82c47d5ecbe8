"""Imported once by the fork server: loads and warms litellm, so that a run forked from it starts in milliseconds.

The import is the smaller part: litellm loads more modules at its first streamed call with tools, which would otherwise
cost every child seconds and megabytes. So a small complete run is made here against a scripted endpoint on loopback.
It leaves neither a thread nor a connection behind, which would be broken in a child.

The fork server ignores a preload that cannot be imported, so a child checks `WARM` before it relies on it.
"""

from __future__ import annotations

import gc
import threading
from contextlib import closing

from drone.agent.agent import Agent
from drone.agent.in_memory import EchoToolbox, KeptEvents, QuietControls
from drone.agent.prompts import system_prompt, user_prompt
from drone.model.litellm_import import litellm
from drone.model.litellm_model import LiteLLMModel
from drone.model.scripted.server import ScriptedServer
from drone.model.warm_order import ORDER, SCRIPT, WORKSPACE
from shared.clock import SystemClock
from shared.outcome import ExitStatus

WARM = False
PROBLEM = ""
"""Why the warm-up failed although this module could be imported; runs then work, but each starts slowly."""


def warm_up() -> None:
    """Make a small run of two answers over real HTTP, without leaving a thread or a connection behind."""
    clock, recorder, controls = SystemClock(), KeptEvents(), QuietControls()
    before = set(threading.enumerate())
    with ScriptedServer(SCRIPT) as server:
        provider = ORDER.provider.model_copy(update={"api_base": server.url})
        with closing(LiteLLMModel(provider, None, ORDER.limits, recorder, clock, controls)) as model:
            agent = Agent(model, EchoToolbox(), recorder, controls, ORDER.limits, clock)
            outcome = agent.run(system_prompt(ORDER), (), user_prompt(ORDER, WORKSPACE, clock.now()))
    if outcome.exit_status is not ExitStatus.STOPPED:
        raise OSError(f"the warm-up run ended with {outcome.exit_status}: {outcome.reason}")
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
    # Current objects live as long as the process: freezing them keeps collections in children from copying their pages.
    gc.collect()
    gc.freeze()


litellm()  # an ImportError propagates: without litellm nothing can run
try:
    warm_up()
    WARM = True
except OSError as error:
    # No loopback, or no free port: the fork server continues cold, and PROBLEM gives the reason.
    PROBLEM = f"{type(error).__name__}: {error}"
