"""The prompt's cost in tokens: each of them is paid for in every run, and a small model loses its way in a long one.

Counted with the tokenizer that LiteLLM ships (cl100k_base), which needs no network; other tokenizers differ by a tenth.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("mode", ["plan", "build", "test", "ship", "develop"])
def test_the_system_prompt_stays_within_its_bound(mode: str) -> None:
    order = ORDER.model_copy(update={"session": ORDER.session.model_copy(update={"mode": mode})})

    assert 500 < tokens(system_prompt(order)) <= MAX_PROMPT


def test_the_tools_stay_within_their_bound(tmp_path: Path) -> None:
    counted = [tokens(each) for each in tools(tmp_path)]

    assert len(counted) == 10
    assert 1000 < sum(counted) <= MAX_TOOLS


def test_the_documents_have_the_numbers(tmp_path: Path) -> None:
    prompt, offered = tokens(system_prompt(ORDER)), sum(map(tokens, tools(tmp_path)))
    page = (Path(__file__).parents[3] / "docs" / "prompts.md").read_text(encoding="utf-8")

    assert f"| Dronefleet, mode build | {prompt:,} | 10 | {offered:,} | {prompt + offered:,} |" in page
