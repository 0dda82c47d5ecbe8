"""The prompts: cache order, stable bytes, and everything that changes in the user message."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from drone.agent.prompts import MAX_INSTRUCTIONS, system_prompt, user_prompt
from drone.model.warm_order import ORDER
from shared.work_order import Limits, WorkOrder

NOW = datetime(2026, 11, 21, 23, 59, tzinfo=UTC)


def _order(mode: str = "build", **more: object) -> WorkOrder:
    return ORDER.model_copy(update={"session": ORDER.session.model_copy(update={"mode": mode}), **more})


@pytest.mark.parametrize("mode", ["plan", "build", "test", "ship", "develop"])
def test_each_mode_has_a_section_of_its_own(mode: str) -> None:
    assert f"# Mode: {mode}\n" in system_prompt(_order(mode))


def test_the_system_prompt_goes_from_what_never_changes_to_what_the_project_says() -> None:
    text = system_prompt(_order(), "Use tabs.")
    places = [text.index(part) for part in ("# Rules", "# Who you are", "# Mode: build", "Use tabs.")]
    assert places == sorted(places)


def test_the_system_prompt_does_not_change_with_order_session_or_prompt() -> None:
    other = _order(order_id="f" * 12, run_id="e" * 12, prompt="Something else.", limits=Limits(cost_limit=9))
    assert system_prompt(other, "Use tabs.") == system_prompt(_order(), "Use tabs.")


def test_modes_share_the_prefix_before_their_section() -> None:
    before = [system_prompt(_order(mode)).partition("# Mode:")[0] for mode in ("plan", "ship")]
    assert before[0] == before[1]


def test_instructions_that_are_too_long_are_cut_and_say_so() -> None:
    text = system_prompt(_order(), "x" * (MAX_INSTRUCTIONS + 7))
    assert "[7 more characters are not shown]" in text


def test_a_project_without_instructions_has_no_section_for_them() -> None:
    assert "Instructions of this project" not in system_prompt(_order())


def test_the_opening_message_has_the_prompt_first_then_date_directory_and_budget() -> None:
    order = _order(prompt="Mend {{ this }} & <that>.", limits=Limits(max_iterations=7, cost_limit=0.5))
    text = user_prompt(order, Path("/home/ada/my work"), NOW)
    assert text.startswith("Mend {{ this }} & <that>.\n")
    assert text.splitlines()[2:] == [
        "<situation>",
        "Date: 2026-11-21",
        "Project: warm-up",
        "Workspace: /home/ada/my work",
        "Session: 000000000000",
        "Steps: 7",
        "Cost: 0.50 USD",
        "Time: 1800 s",
        "One command: 120 s",
        "</situation>",
    ]


def test_a_limit_of_nought_is_called_no_limit() -> None:
    order = _order(limits=Limits(max_iterations=0, cost_limit=0, max_run_seconds=0, command_timeout=0))
    assert user_prompt(order, Path("/w"), NOW).count("no limit") == 4
