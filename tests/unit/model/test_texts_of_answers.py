"""Calls and thoughts in the text of an answer: they are known in every form, and what is quoted is text."""

# ruff: noqa: RUF001 - the bars of DeepSeek

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from time import process_time

import pytest

from drone.agent.in_memory import SUBMIT
from drone.agent.values import ToolSpec
from drone.model.spoken_calls import spoken_call
from drone.model.thought_tags import ThoughtTags
from shared.messages import Message, ToolCall

SHELL = ToolSpec("shell", "Run.", {"properties": {"command": {"type": "string"}}, "required": ["command"]})
WRITE = ToolSpec("file_write", "Write.", {"properties": {"path": {"type": "string"}, "content": {"type": "string"}}})
TOOLS = [SHELL, WRITE, SUBMIT]

HERMES = '<tool_call>\n{"name": "shell", "arguments": {"command": "ls"}}\n</tool_call>'
JSON = '{"name": "shell", "arguments": {"command": "ls"}}'
FENCED = f"I list the files.\n\n```json\n{JSON}\n```"
SCHEMA = '{"name": "shell", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}'

WRITTEN: dict[str, list[str]] = {
    "DeepSeek": [
        "I look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>shell\n```json\n"
        '{"command": "ls"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>shell<｜tool▁sep｜>{"command": "ls"}<｜tool▁call▁end｜>'
        '<｜tool▁call▁begin｜>shell<｜tool▁sep｜>{"command": "id"}',
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="shell">\n<｜DSML｜parameter name="command" string="true">ls'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ],
    "harmony": [
        '<|channel|>commentary to=functions.shell <|constrain|>json<|message|>{"command":"ls"}<|call|>',
        "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant to=functions.shell<|channel|>commentary"
        '<|message|>{"command": "ls"}<|call|>',
        'assistantcommentary to=functions.shell json{"command": "ls"}',
    ],
    "Llama": [
        '<|python_tag|>{"name": "shell", "parameters": {"command": "ls"}}<|eom_id|>',
        '<|python_tag|>shell.call(command="ls")',
        '<function=shell>{"command": "ls"}</function><|eot_id|>',
        '{"type": "function", "function": {"name": "shell", "arguments": "{}"}}',
        '{"name": "shell", "parameters": {"command": "ls"}}; {"name": "shell", "parameters": {"command": "id"}}',
    ],
    "Mistral": [
        f"I look.\n[TOOL_CALLS] [{JSON}]</s>",
        '[TOOL_CALLS]shell[CALL_ID]a1b2c3d4e[ARGS]{"command": "ls"}',
        '[TOOL_CALLS]shell{"command": "ls"}[TOOL_CALLS]submit{}',
    ],
    "Hermes": [
        HERMES,
        f"I list the files.\n{HERMES}\n{HERMES}",
        '<tool_call>{"arguments": {"command": "ls"}, "name": "shell"}</tool_call><|im_end|>',
        "<tool_call>\n{'name': 'shell', 'arguments': {'command': 'ls'}}\n</tool_call>",
        '<tool_call>\n{"name": "shell", "arguments": {"command": "echo "hi""}}\n</tool_call>',
        '<tool_call>\n```json\n{"name": "shell", "arguments": {"command": "ls"}}\n```\n</tool_call>',
        "<tool_call>shell</tool_call>",
        f"<TOOLCALL>[{JSON}]</TOOLCALL>",
        f"{HERMES}\n<tool_response>\nREADME\n</tool_response>\nThere is one file, so all is done.",
        f"{HERMES}\n\nI wait for its result.",
    ],
    "Qwen Coder": [
        "<tool_call>\n<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
        "<function=shell>\n<parameter=command>\nls -la",
        "<function=file_write>\n<parameter=path>\nd.md\n</parameter>\n<parameter=content>\n# Use\n\n```sh\nmake\n```\n"
        "\nThen `make test`.\n</parameter>\n</function>",
    ],
    "Claude and MiniMax": [
        '<minimax:tool_call>\n<invoke name="shell">\n<parameter name="command">ls</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
        "I look.\n<invoke name='shell'><parameter name='command'>ls</parameter></invoke>",
        "<shell>\n<command>ls</command>\n</shell>",
        '{"type": "tool_use", "id": "1", "name": "shell", "input": {"command": "ls"}}',
    ],
    "GLM and Kimi": [
        "<tool_call>shell\n<arg_key>command</arg_key>\n<arg_value>ls",
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.shell:0<|tool_call_argument_begin|>{"command": "ls"}'
        "<|tool_call_end|><|tool_calls_section_end|>",
    ],
    "as in Python": [
        "I look.\n\n[shell(command='ls (all)'), submit(text=\"Done.\")]",
        '```tool_code\nprint(default_api.shell(command="ls"))\n```',
        "file_write(\n    path='a',\n    content='it\\'s (one',\n)",
        'shell(command="ls")\nshell(command="id")',
        "submit()",
        "shell({'command': 'ls'})",
    ],
    "JSON": [
        FENCED,
        JSON,
        f"```\n[{JSON}, {JSON}]\n```\n",
        f"I list the files. {JSON}",
        '{"tool_calls": [{"id": "1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}]}',
        '{"function_call": {"name": "shell", "arguments": "{}"}}',
        "{'name': 'shell', 'arguments': {'command': 'ls'}}",
        f"<|assistant|>{JSON}",
        "<tool_use>\n<name>shell</name>\n<parameters>\n<command>ls</command>\n</parameters>\n</tool_use>",
        '{"action": "shell", "action_input": {"command": "ls"}}',
        '{"tool": "shell", "command": "ls"}',
        '{"name": "functions.shell", "arguments": {"cmd": "ls"}}',
        '{"name": "file_write", "arguments": {"path": "a", "content": "one\ntwo"}}',
        f'See [1] and {{"x": 1}}.\n\n{json.dumps({"name": "file_write", "arguments": {"content": HERMES}})}',
        "I look.\n\n~~~action shell\nls",
        'Action: shell\nAction Input: {"command": "ls"}\nObservation: README\nDone.',
        f"functools[{JSON}]",
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "shell", "parameters": {"command": "ls"}}]<|END_ACTION|>',
        "<start_function_call>call:shell{command:<escape>ls<escape>}<end_function_call>",
    ],
}

QUOTED = [
    "I documented that a call looks like `<tool_call>shell</tool_call>`.",
    'It is ``<function=shell>{"command": "ls"}</function>``',
    "The marks are `[TOOL_CALLS]shell`, `<|python_tag|>` and `<｜tool▁sep｜>shell`.",
    f"Hermes writes a call like this:\n\n```\n{HERMES}\n```\n\nThe template closes it.",
    f"{FENCED}\n\nThat is the JSON of the call, as you asked.",
    "```action shell\nls\n```\nThis block is our own form.",
    f"# Calls\n\n## Hermes\n\n```xml\n{HERMES}\n```\n\n## JSON\n\n```json\n{JSON}\n```\n\nBoth name the tool.",
    f"> {HERMES.replace(chr(10), ' ')}",
    'You said:\n> [shell(command="ls")]',
    '<tool_call>\n{"name": "web_search", "arguments": {"query": "shell"}}\n</tool_call>',
    "<div>\n<span>shell</span>\n</div>",
    'I ran shell(command="ls") and it works.',
    'shell(command="ls") lists the files (all of them).',
    "```python\nshell(check=True)\n```",
    'The config is:\n```json\n{"shell": true, "name": "shell"}\n```',
    f"The tool is described as:\n\n```json\n{SCHEMA}\n```",
    f"The call was {JSON}, which lists the files.",
    f'"{JSON}"',
    f"| form | example |\n|---|---|\n| Hermes | {HERMES.replace(chr(10), ' ')} |",
    f"I test parse('{HERMES}')",
    "[" * 5000,
    "{" + '"a":{' * 2000,
    '{"name": "shell", "arguments": ' + "9" * 5000,
    "x" * 200_000,
    "",
]


def read(text: str, *before: Message, tools: Sequence[ToolSpec] = TOOLS) -> str:
    return spoken_call(text, [Message(role="user", content="Do it."), *before], tools)


def test_a_call_that_ends_an_answer_is_known_in_the_forms_that_models_use() -> None:
    assert [text for texts in WRITTEN.values() for text in texts if "written as text" not in read(text)] == []
    assert read(HERMES, tools=[]) == ""


def test_an_answer_that_quotes_a_call_or_names_no_tool_that_exists_is_finished() -> None:
    assert {text[:200]: said for text in QUOTED if (said := read(text))} == {}


def said(text: str, *calls: ToolCall) -> Message:
    return Message(role="assistant", content=text, tool_calls=calls)


TOLD = Message(role="user", content="Make the call itself.")
WORKED = said("I write.", ToolCall(id="a", name="file_write"))


def test_an_answer_that_is_given_again_after_the_model_was_told_is_final_if_it_can_make_calls() -> None:
    readable = [FENCED, JSON, f"```json\n{JSON}\n```", f"Documented:\n```\n{HERMES}\n```", '[shell(command="ls")]']
    readable += [f"# Calls\n{HERMES}\nThat is Hermes' form.", "```action shell\nls\n```"]
    plain = [HERMES, '<function=shell>{"command": "ls"}</function>', f"Done. [TOOL_CALLS][{JSON}]"]
    for text in (*readable, *plain):
        assert read(text, WORKED), text
        assert bool(read(text, WORKED, said(text), TOLD)) is (text in plain), text
        # Another answer in between, one that differs, or no sign that calls reach us.
        assert read(text, said(text), TOLD, WORKED), text
        assert read(text, WORKED, said(f"{text} "), TOLD), text
        assert read(text, said(text), TOLD), text


WELL = "All is well."

SEPARATED: dict[str, tuple[str, str]] = {
    # whole
    "<think>I should look first.</think>": ("I should look first.", ""),
    f"<think>\nHm.\n\nYes.\n</think>\n\n{WELL}": ("Hm.\n\nYes.", WELL),
    f"<thinking>Hm.</thinking>\n{WELL}": ("Hm.", WELL),
    f"<Thought>Hm.</Thought>\n{WELL}": ("Hm.", WELL),
    f"<seed:think>Hm.</seed:think>\n{WELL}": ("Hm.", WELL),
    f"◁think▷Hm.◁/think▷{WELL}": ("Hm.", WELL),
    f"[THINK]Hm.[/THINK]{WELL}": ("Hm.", WELL),
    f"<think></think>\n\n{WELL}": ("", WELL),
    "<think> </think>\n": ("", ""),
    # not closed
    "<think>I should look first.": ("I should look first.", ""),
    f"{WELL}\n<think>Hm.": ("Hm.", f"{WELL}\n"),
    "<think>": ("", ""),
    "<think>Hm.</thin": ("Hm.</thin", ""),
    # not opened: the question had the opening tag
    "I should look first.</think>": ("I should look first.", ""),
    f"Hm, so I\n</think>\n\n{WELL}": ("Hm, so I", WELL),
    f"I call `ls`.\n```sh\nls\n```\nDone. </think> {WELL}": ("I call `ls`.\n```sh\nls\n```\nDone.", WELL),
    f"</think>\n{WELL}": ("", WELL),
    # several
    f"<think>One.</think><think>Two.</think>{WELL}": ("One.\n\nTwo.", WELL),
    "<think>One.</think>First.\n<think>Two.</think>\nSecond.": ("One.\n\nTwo.", "First.\n\nSecond."),
    "First. <think>One.</think> Second.": ("One.", "First.  Second."),
    f"<think>The tag `</think>` ends it.</think>{WELL}": ("The tag `</think>` ends it.", WELL),
    f"<think>A <think> in it.</think>{WELL}": ("A <think> in it.", WELL),
    f"One.</think>\n<think>Two.</think>\n{WELL}": ("One.\n\nTwo.", WELL),
}

QUOTED_TAGS = [
    WELL,
    "",
    "The parser drops `<think>` and `</think>`.",
    "`<think>` begins a thought.",
    "It ends with `</think>`",
    "The tag <think> begins a thought, and </think> ends it.",
    "Models write <think>Hm.</think>",
    "It ends with </think>",
    'It splits at "</think>" now.',
    "text.split('</think>')[1]",
    "- <think>: a thought\n- </think>: its end",
    "> <think>Hm.</think>",
    "| <think> | thought |",
    "```\n<think>Hm.</think>\nAnswer\n```",
    "```xml\n<think>\nHm.\n</think>\n```\n\nThat is the form.",
    "Use:\n\n    <think>Hm.</think>",
    "<thinker>x</thinker> <rethink>",
    "<think time=1> < think >",
    "<think> is the opening tag.",
    "a < b and c > d, [1], ◁",
    "I think </b>",
]


def separated(*pieces: str) -> tuple[str, str, dict[str, str]]:
    tags, shown = ThoughtTags(), {"text": "", "thinking": ""}
    for step in (*(tags.feed(piece) for piece in pieces), tags.end()):
        for kind, text in step:
            shown[kind] += text
    return tags.thoughts, tags.text, shown


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_thoughts_in_tags_are_no_text_and_tags_in_code_or_within_a_sentence_are_however_an_answer_is_cut(
    size: int,
) -> None:
    cases = SEPARATED | {text: ("", text) for text in QUOTED_TAGS}
    cut = {text: [text[at : at + size] for at in range(0, len(text), size)] for text in cases}
    assert {text: found for text, pieces in cut.items() if (found := separated(*pieces)[:2]) != cases[text]} == {}


def test_thoughts_are_shown_as_thinking_while_they_stream() -> None:
    assert separated("<thi", "nk>", "Hm", ".</th", "ink>", "All is ", "well.")[2] == {"thinking": "Hm.", "text": WELL}
    tags = ThoughtTags()
    assert list(tags.feed("<think>Let me")) == [("thinking", "Let me")]
    assert list(tags.feed(" see a < b. ")) == [("thinking", " see a < b. ")]
    assert list(tags.feed("</think>")) == [], "what follows decides"
    assert list(tags.feed("All")) == [("text", "All")]


BUSY = """` ``` ```x ~~~ < [ { {" {"a [" \\" {"a":[ shell( <tool_call>shell <tool_call> </a> <tooltool <|tool <|end"""
BUSY_LINES = ["", "shell(a=", 'shell(a="', "[shell(command=", "<shell>  ", "> ", 'Action: shell\n"name"   ', "a`` "]


def test_the_search_takes_time_that_grows_with_the_text() -> None:
    openings = [texts[0][: len(texts[0]) // part] for texts in WRITTEN.values() for part in (1, 3)]
    characters = [*BUSY.split(), " ", *(f"\n{line}" for line in BUSY_LINES)]
    assert [text for text in dict.fromkeys([*openings, *characters]) if not grows_with(text, search)] == []
    # An error of the JSON decoder counts lines, which is so fast that it shows in longer texts only.
    assert grows_with("\n{", search, 300_000)
    tags = [*list(SEPARATED)[::3], "<", "[", "<think", "`", "x<think>", "x </think>", " ", "\n", "<think>`</think>`"]
    assert [text for text in tags if not grows_with(text, separate)] == []


def search(text: str) -> None:
    read(text)
    read(f"```a{text}x")


def separate(text: str) -> None:
    separated(text)
    separated(*(text[at : at + 8] for at in range(0, len(text), 8)))


def grows_with(text: str, reads: Callable[[str], None], longest: int = 8_000) -> bool:
    def seconds(size: int) -> float:
        began = process_time()
        reads((text * size)[:size])
        return process_time() - began

    # Eight times the length: 64 times the time if it grows with the square.
    return seconds(longest) < 24 * max(0.002, min(seconds(longest // 8) for _ in range(2)))
