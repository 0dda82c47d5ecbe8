"""The trajectory of a run: what its document says, in the format of mini-swe-agent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from drone.agent.in_memory import EchoToolbox
from drone.agent.values import ToolResult, ToolSpec
from shared.errors import Submitted
from shared.events import (
    AssistantStep,
    Body,
    CompactionStep,
    DecisionStep,
    GuardrailStep,
    Phase,
    Prepared,
    ReasoningStep,
    RunEnded,
    RunStarted,
    Stats,
    ToolCallStep,
    ToolResultStep,
    Usage,
    UserStep,
)
from shared.messages import ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.trajectories import FORMAT, NOT_EXECUTED, RunFacts, trajectory
from tests.support.scripted import Loop, submits

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FACTS = RunFacts("order1", "run1", "openai/x", "build", {"max_iterations": 50, "command_timeout": 120}, "0.1.0")
LIST = ToolCall(id="c1", name="shell", arguments='{"command": "ls"}')
WRITE = ToolCall(id="c2", name="file_write", arguments='{"path": "a", "content": "b"}')
PROMPT = UserStep(text="Mend it.\n\n<situation>\nWorkspace: /drones/one/work\n</situation>\n", source="prompt")
ENDED = RunEnded(status="success", exit_status="submitted", reason="Done.", response="It is mended.")


class Submitting(EchoToolbox):
    """A toolbox by which every call submits the work."""

    def specs(self) -> list[ToolSpec]:
        return [ToolSpec("submit", "End."), ToolSpec("shell", "Run a command.")]

    def execute(self, call: ToolCall) -> ToolResult:
        raise Submitted(outcome=Outcome(ExitStatus.SUBMITTED, "The model submitted its work.", "It is mended."))


def made(*bodies: Body) -> dict[str, Any]:
    document = trajectory(FACTS, ((AT, body) for body in bodies))
    assert json.loads(json.dumps(document)) == document
    return document


def answer(*calls: ToolCall, cost: float | None = 0.5, text: str = "I look.") -> AssistantStep:
    return AssistantStep(text=text, tool_calls=calls, usage=Usage(cost_usd=cost), model="x", finish_reason="stop")


def result(call: ToolCall, output: str, code: int | None = None, **facts: Any) -> ToolResultStep:
    facts = {"execution": "answered", "note": f"(return code {code})" if code is not None else "", **facts}
    return ToolResultStep(call_id=call.id, output=output, return_code=code, **facts)


def older(call: ToolCall, output: str, code: int | None = None, *, is_error: bool = False) -> ToolResultStep:
    """A result as drones recorded it before they said what became of a call."""
    return ToolResultStep(call_id=call.id, output=output, return_code=code, is_error=is_error)


def extra_of(*bodies: Body) -> dict[str, Any]:
    """What the last message of these steps says beside its text."""
    extra: dict[str, Any] = made(*bodies)["messages"][-1]["extra"]
    return extra


def test_a_run_becomes_a_document_of_the_format() -> None:
    document = made(
        RunStarted(boot_id="b", sandbox="bwrap"),
        Prepared(base_commit="a" * 40),
        PROMPT,
        ReasoningStep(text="Hm."),
        answer(LIST, WRITE),
        ToolCallStep(call_id="c1", tool="shell"),
        result(LIST, "a\nb\n(return code 0)", 0),
        result(WRITE, "Wrote a."),
        ENDED,
    )

    assert document["trajectory_format"] == FORMAT == "mini-swe-agent-1.1"
    assert [message["role"] for message in document["messages"]] == ["user", "assistant", "tool", "tool", "exit"]
    assert document["info"]["model_stats"] == {"instance_cost": 0.0, "api_calls": 1}
    assert (document["info"]["exit_status"], document["info"]["submission"]) == ("Submitted", "It is mended.")
    assert document["info"]["dronefleet"]["base_commit"] == "a" * 40
    assert document["info"]["config"]["environment"] == {"cwd": "/drones/one/work", "env": {}, "timeout": 120}
    assert document["info"]["config"]["environment_type"] == "dronefleet.bwrap"


def test_shell_calls_are_actions_and_all_calls_stay_native() -> None:
    message = made(answer(LIST, WRITE))["messages"][0]

    assert message["extra"]["actions"] == [{"command": "ls", "tool_call_id": "c1"}]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["shell", "file_write"]
    assert (message["extra"]["cost"], message["extra"]["timestamp"]) == (0.5, AT.timestamp())


def test_an_observation_has_its_output_without_the_template() -> None:
    message = made(answer(LIST), result(LIST, "a\nb\n(return code 2)", 2))["messages"][-1]

    assert message["content"] == "a\nb\n(return code 2)"
    assert (message["tool_call_id"], message["extra"]["raw_output"]) == ("c1", "a\nb\n")
    assert (message["extra"]["returncode"], message["extra"]["exception_info"]) == (2, "")


def test_what_an_older_shell_tool_added_is_taken_off_again() -> None:
    cases: list[str] = ["", "a\n", "a\n\n", "(return code 7)\n", "größe\n", "ended after 3 s\n"]
    for output in cases:
        done = extra_of(answer(LIST), older(LIST, f"{output}(return code 0)", 0))
        late = extra_of(answer(LIST), older(LIST, f"{output}(ended after 3 s; ask for more)", is_error=True))

        assert (done["raw_output"], done["returncode"], done["exception_info"]) == (output, 0, ""), output
        assert (late["raw_output"], late["returncode"]) == (output, -1), output
        assert late["exception_info"] == "ended after 3 s; ask for more", output


def test_a_command_that_ran_out_of_time_has_return_code_minus_one() -> None:
    note = "(ended after 3 s; give a longer `timeout`)"
    extra = extra_of(answer(LIST), result(LIST, f"half\n{note}", execution="timed_out", note=note))

    assert (extra["raw_output"], extra["returncode"], extra["execution"]) == ("half\n", -1, "timed_out")
    assert extra["exception_info"].startswith("ended after 3 s")


def test_a_call_that_was_not_run_says_so() -> None:
    cases: list[tuple[Body, ...]] = [
        (result(LIST, "Not now.", execution="held_back", note="Not now."),),
        (GuardrailStep(call_id="c1", guardrail="loop", action="block"), older(LIST, "Blocked: no.")),
        (DecisionStep(call_id="c1", approved=False), older(LIST, "No.")),
        (older(LIST, "This call was not run: the run had ended.", is_error=True),),
        (older(LIST, "This call was blocked: no.", is_error=True),),
        (older(LIST, "This call was broken off: canceled.", is_error=True),),
    ]
    for bodies in cases:
        extra = extra_of(answer(LIST), *bodies)

        assert (extra["raw_output"], extra["returncode"], extra["exception_info"]) == ("", -1, NOT_EXECUTED), bodies


def test_a_command_that_prints_the_words_for_a_call_that_was_not_run_was_run() -> None:
    for make in (result, older):
        output = "This call was not run: printed by a command.\n"
        extra = extra_of(answer(LIST), make(LIST, f"{output}(return code 0)", 0))

        assert (extra["raw_output"], extra["returncode"], extra["exception_info"]) == (output, 0, ""), make


@pytest.mark.parametrize("submits_by", ["submit", "shell"])
def test_the_call_that_submitted_says_that_it_was_run_as_the_loop_recorded_it(submits_by: str) -> None:
    reply = submits("It is mended.")
    reply["tool_calls"][0]["name"] = submits_by
    loop = Loop([reply])
    loop.toolbox = loop.agent.toolbox = Submitting()
    loop.run()
    observation = made(*loop.recorder.bodies)["messages"][-1]

    assert observation["content"] == "Submitted."
    assert [observation["extra"][name] for name in ("execution", "returncode", "exception_info")] == [
        "submitted",
        0,
        "",
    ]


def test_the_directory_is_that_of_the_workspace_and_not_one_that_a_prompt_names() -> None:
    prompt = UserStep(text="Workspace: /etc\n", source="prompt")
    document = made(Prepared(workspace="/drones/one/work"), prompt, answer(LIST))

    assert document["info"]["config"]["environment"]["cwd"] == "/drones/one/work"


def test_an_unknown_cost_is_null_and_said() -> None:
    ended = ENDED.model_copy(update={"stats": Stats(cost_usd=None)})
    document = made(PROMPT, answer(cost=0.1), answer(cost=None), ended)

    assert document["info"]["model_stats"] == {"instance_cost": None, "api_calls": 2}
    assert document["info"]["dronefleet"]["cost"].startswith("unknown")
    assert document["messages"][2]["extra"]["cost"] is None


def test_the_end_is_said_in_the_words_of_the_format() -> None:
    cases: list[tuple[str, str]] = [
        ("submitted", "Submitted"),
        ("stopped", "Submitted"),
        ("max_iterations", "LimitsExceeded"),
        ("cost_limit", "LimitsExceeded"),
        ("time_limit", "TimeExceeded"),
        ("format_errors", "RepeatedFormatError"),
        ("model_error", "model_error"),
    ]
    for ours, theirs in cases:
        document = made(ENDED.model_copy(update={"exit_status": ours}))

        assert document["info"]["exit_status"] == document["messages"][-1]["extra"]["exit_status"] == theirs, ours
        assert document["info"]["dronefleet"]["exit_status"] == ours, ours


def test_thinking_steering_and_compactions_are_in_their_places() -> None:
    messages = made(
        PROMPT,
        ReasoningStep(text="Hm."),
        answer(LIST),
        result(LIST, "(return code 0)", 0),
        UserStep(text="Faster!", source="steer"),
        CompactionStep(summary="So far so good."),
        Phase(name="working"),
        answer(text="Done."),
    )["messages"]

    assert messages[1]["reasoning_content"] == "Hm."
    assert (messages[3]["content"], messages[3]["extra"]["source"]) == ("Faster!", "steer")
    assert "So far so good." in messages[4]["content"]
    assert "reasoning_content" not in messages[5]
