"""The prompt's cost in tokens: each of them is paid for in every run, and a small model loses its way in a long one.

Counted with the tokenizer that LiteLLM ships (cl100k_base), which needs no network; other tokenizers differ by a tenth.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from drone.agent.prompts import system_prompt
from drone.model.conversion import tools_to_wire
from drone.model.litellm_import import litellm
from drone.model.warm_order import ORDER
from tests.support.toolboxes import toolbox

MAX_PROMPT, MAX_TOOLS = 1000, 1900
"""Tokens of the system prompt without anything from the project, and of the tools of mode build."""


def tokens(text: str) -> int:
    return len(litellm().encoding.encode(text))


def tools(workspace: Path) -> Iterator[str]:
    """Each tool as it is sent."""
    box = toolbox(workspace, spawn=lambda *_: None, record_todo=lambda _: None)
    yield from map(json.dumps, tools_to_wire(box.specs()))


def test_prompt_and_tools_stay_within_their_bounds(tmp_path: Path) -> None:
    modes = [
        ORDER.model_copy(update={"session": ORDER.session.model_copy(update={"mode": mode})})
        for mode in ("plan", "build", "test", "ship", "develop")
    ]
    counted = [tokens(each) for each in tools(tmp_path)]

    assert max(tokens(system_prompt(order)) for order in modes) <= MAX_PROMPT
    assert (len(counted), sum(counted) <= MAX_TOOLS) == (10, True)


def test_the_documents_have_the_numbers(tmp_path: Path) -> None:
    prompt, offered = tokens(system_prompt(ORDER)), sum(map(tokens, tools(tmp_path)))
    page = (Path(__file__).parents[3] / "docs" / "prompts.md").read_text(encoding="utf-8")

    assert f"| Dronefleet, mode build | {prompt:,} | 10 | {offered:,} | {prompt + offered:,} |" in page
