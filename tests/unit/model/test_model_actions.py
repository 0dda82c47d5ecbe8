"""Tools in text: what the model is told, which blocks count, and what of a conversation it reads."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from drone.agent.in_memory import SUBMIT
from drone.agent.values import ToolSpec
from drone.model.actions import acted, blocks, in_text, section
from drone.model.conversion import WireConversation
from drone.model.model_families import Family
from shared.messages import Message, ToolCall

SHELL = ToolSpec(
    "shell",
    "Run a command.",
    {"properties": {"command": {"type": "string"}, "timeout": {"type": "number"}}, "required": ["command"]},
)
_PATH = {"path": {"type": "string"}, "content": {"type": "string"}}
FILES = ToolSpec("write_file", "Write.", {"properties": _PATH, "required": ["path", "content"]})
TOOLS = [SHELL, FILES, SUBMIT]


def read(text: str, *, cut: bool = False) -> tuple[Message, str]:
    return acted(Message(role="assistant", content=text), TOOLS, 3, cut=cut)


def made(text: str) -> tuple[str, object]:
    message, problem = read(text)
    assert problem == ""
    (call,) = message.tool_calls
    assert (message.content, call.id) == (text, "action_3")
    return call.name, json.loads(call.arguments)


def test_a_block_with_a_json_object_is_a_call() -> None:
    assert made('I look.\n\n```action shell\n{"command": "ls", "timeout": 5}\n```\n') == (
        "shell",
        {"command": "ls", "timeout": 5},
    )


def test_plain_text_is_the_only_required_string_in_any_fence() -> None:
    nested = "cat > README.md <<'EOF'\n```sh\nmake\n```\n```action submit\n```\nEOF"
    bodies = ["cd src\nls | wc -l", "{ echo a; }", '{"name": 1}', "[1]", '"ls"', nested]
    for body in bodies:
        assert made(f"````action shell\n{body}\n````") == ("shell", {"command": body})
    assert made("~~~action shell\necho '```'\n~~~") == ("shell", {"command": "echo '```'"})
    assert made("```action submit\n```") == ("submit", {})
    assert [block.name for block in blocks("```action submit\r\n{}\r\n```\r\n")] == ["submit"]


def test_anything_but_exactly_one_whole_block_is_named_and_not_run() -> None:
    cases: list[tuple[str, str]] = [
        ("All done.", "no action block"),
        ("````markdown\n```action shell\nls\n```\n````", "no action block"),
        ("```bash\nls\n```", "no action block"),
        ("```action\nls\n```", "no action block"),
        ("```action shell\nls\n```\n```action shell\nls\n```", "2 action blocks"),
        ("```action shell\nrm -rf build", "not closed"),
    ]
    for text, problem in cases:
        message, said = read(text)
        assert (message.tool_calls, message.content) == ((), text), text
        assert problem in said, text
    assert "length limit" in read("```action shell\nrm -rf bu", cut=True)[1]
    assert read("```action shell\nls\n```\nAnd then", cut=True)[1] == ""
    # No JSON for a tool with several parameters is left for its error.
    (call,) = read("```action write_file\na.py\nhello\n```")[0].tool_calls
    assert call.arguments == "a.py\nhello"


@given(st.text(alphabet="`~ab{}\n ", max_size=80))
def test_any_body_comes_back_whole_from_a_fence_that_is_long_enough(body: str) -> None:
    fence = "`" * 90
    (block,) = blocks(f"{fence}action shell\n{body}\n{fence}")
    assert (block.body, block.closed) == (body, True)


@given(st.text(max_size=200))
def test_no_text_confuses_the_reader(text: str) -> None:
    message, problem = read(text)
    assert bool(message.tool_calls) != bool(problem)


def test_a_model_is_told_of_every_tool_and_of_the_form_in_the_same_bytes_each_time() -> None:
    told = section(TOOLS)
    assert told == section(list(TOOLS))
    assert all(f"## {tool.name}\n{tool.description}\n" in told for tool in TOOLS)
    assert "- shell, submit: these take plain text too" in told


def test_calls_of_a_model_that_could_make_them_are_written_as_blocks() -> None:
    call = ToolCall(id="a", name="shell", arguments='{"command": "echo ```"}')
    said = in_text(Message(role="assistant", content="I look.", tool_calls=(call,)), TOOLS, {})
    assert said.content == 'I look.\n\n````action shell\n{"command": "echo ```"}\n````'
    assert [block.name for block in blocks(said.content)] == ["shell"]


def test_users_and_results_take_turns_with_the_model() -> None:
    calls = ToolCall(id="a", name="shell"), ToolCall(id="b", name="shell")
    results = (Message(role="tool", tool_call_id=call.id, content=f"out {call.id}") for call in calls)
    history = [
        Message(role="system", content="Rules."),
        Message(role="user", content="Go."),
        Message(role="assistant", content="Both.", tool_calls=calls),
        *results,
        Message(role="user", content="Faster."),
    ]
    documents = WireConversation(Family(text=True), "", TOOLS).documents(history)
    assert [document["role"] for document in documents] == ["system", "user", "assistant", "user"]
    said = (f'<result tool="shell" call="{call.id}">\nout {call.id}\n</result>' for call in calls)
    assert documents[-1]["content"] == "\n\n".join([*said, "Faster."])
