"""Calls written as text: those that end an answer are known in every form, and what is quoted is part of an answer."""

# ruff: noqa: RUF001 - the bars of DeepSeek

from __future__ import annotations

import json
from collections.abc import Sequence
from time import process_time

from drone.agent.in_memory import SUBMIT
from drone.agent.values import ToolSpec
from drone.model.spoken_calls import spoken_call
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
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>shell\n{"command":"ls"}<｜tool▁call▁end｜>',
        "I look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>shell\n```json\n"
        '{"command": "ls"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>shell<｜tool▁sep｜>{"command": "ls"}<｜tool▁call▁end｜>'
        '<｜tool▁call▁begin｜>shell<｜tool▁sep｜>{"command": "id"}',
        '<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>shell\n{"command": "ls"}<|tool_call_end|>',
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="shell">\n<｜DSML｜parameter name="command" string="true">ls'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ],
    "harmony": [
        '<|channel|>commentary to=functions.shell <|constrain|>json<|message|>{"command":"ls"}<|call|>',
        '<|start|>assistant<|channel|>commentary to=functions.shell <|constrain|>json<|message|>{"command": "ls"}',
        "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant to=functions.shell<|channel|>commentary"
        '<|message|>{"command": "ls"}<|call|>',
        'assistantcommentary to=functions.shell json{"command": "ls"}',
        '<|channel|>commentary to=shell code<|message|>{"command": "ls"}<|call|>',
    ],
    "Llama": [
        '<|python_tag|>{"name": "shell", "parameters": {"command": "ls"}}<|eom_id|>',
        '<|python_tag|>shell.call(command="ls")',
        '<function=shell>{"command": "ls"}</function>',
        '<function=shell>{"command": "ls"}</function><|eot_id|>',
        '{"type": "function", "name": "shell", "parameters": {"command": "ls"}}',
        '{"type": "function", "function": {"name": "shell", "arguments": "{}"}}',
        '{"name": "shell", "parameters": {"command": "ls"}}; {"name": "shell", "parameters": {"command": "id"}}',
        '<|python_start|>[shell(command="ls")]<|python_end|>',
    ],
    "Mistral": [
        f"[TOOL_CALLS][{JSON}]",
        f"I look.\n[TOOL_CALLS] [{JSON}]</s>",
        '[TOOL_CALLS]shell[ARGS]{"command": "ls"}',
        '[TOOL_CALLS]shell[CALL_ID]a1b2c3d4e[ARGS]{"command": "ls"}',
        '[TOOL_CALLS]shell{"command": "ls"}[TOOL_CALLS]submit{}',
    ],
    "Hermes": [
        HERMES,
        f"I list the files.\n{HERMES}\n{HERMES}",
        '<tool_call>{"arguments": {"command": "ls"}, "name": "shell"}</tool_call><|im_end|>',
        "<tool_call>\n{'name': 'shell', 'arguments': {'command': 'ls'}}\n</tool_call>",
        '<tool_call>\n{"name": "shell", "arguments": {"command": "echo "hi""}}\n</tool_call>',
        '<tool_call>\n{"name": "shell", "arguments": {"command": "ls"}}',
        '<tool_call>\n```json\n{"name": "shell", "arguments": {"command": "ls"}}\n```\n</tool_call>',
        "<tool_call>shell</tool_call>",
        f"<tool_calls>[{JSON}]</tool_calls>",
        f"<TOOLCALL>[{JSON}]</TOOLCALL>",
        f"{HERMES}\n<tool_response>\nREADME\n</tool_response>\nThere is one file, so all is done.",
        f"{HERMES}\n\nI wait for its result.",
    ],
    "Qwen Coder": [
        "Sure. <function=shell><parameter=command>ls</parameter></function>",
        "<tool_call>\n<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
        "<function=shell>\n<parameter=command>\nls -la",
        "<function=file_write>\n<parameter=path>\nd.md\n</parameter>\n<parameter=content>\n# Use\n\n```sh\nmake\n```\n"
        "\nThen `make test`.\n</parameter>\n</function>",
        "<seed:tool_call><function=shell><parameter=command>ls</parameter></function></seed:tool_call>",
    ],
    "Claude and MiniMax": [
        '<function_calls>\n<invoke name="shell">\n<parameter name="command">ls</parameter>\n</invoke>\n'
        "</function_calls>",
        '<minimax:tool_call>\n<invoke name="shell">\n<parameter name="command">ls</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
        "I look.\n<invoke name='shell'><parameter name='command'>ls</parameter></invoke>",
        "<shell>\n<command>ls</command>\n</shell>",
        '{"type": "tool_use", "id": "1", "name": "shell", "input": {"command": "ls"}}',
    ],
    "GLM and Kimi": [
        "<tool_call>shell\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
        "<tool_call>shell\n<arg_key>command</arg_key>\n<arg_value>ls",
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.shell:0<|tool_call_argument_begin|>{"command": "ls"}'
        "<|tool_call_end|><|tool_calls_section_end|>",
        '<|tool_call_begin|>functions.shell:12<|tool_call_argument_begin|>{"command": "ls"}',
        "<tool_call>submit\n</tool_call>",
    ],
    "as in Python": [
        '[shell(command="ls")]',
        "I look.\n\n[shell(command='ls (all)'), submit(text=\"Done.\")]",
        '```python\nshell(command="ls")\n```',
        '```tool_code\nprint(default_api.shell(command="ls"))\n```',
        '<|tool_call_start|>[shell(command="ls")]<|tool_call_end|>',
        "file_write(\n    path='a',\n    content='it\\'s (one',\n)",
        'shell(command="ls")\nshell(command="id")',
        "submit()",
        'functions.shell({"command": "ls"})',
        "shell({'command': 'ls'})",
    ],
    "JSON": [
        FENCED,
        JSON,
        f"```json\n{JSON}\n```",
        f"```\n[{JSON}, {JSON}]\n```\n",
        f"```json\n{JSON}",
        f"```{JSON}```",
        f"I list the files. {JSON}",
        f"{JSON}\n{JSON}",
        '{"tool_calls": [{"id": "1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}]}',
        '{"function_call": {"name": "shell", "arguments": "{}"}}',
        "{'name': 'shell', 'arguments': {'command': 'ls'}}",
        f"<|assistant|>{JSON}",
        "<tool_use>\n<name>shell</name>\n<parameters>\n<command>ls</command>\n</parameters>\n</tool_use>",
        '{"action": "shell", "action_input": {"command": "ls"}}',
        '{"tool": "shell", "command": "ls"}',
        '{"name": "functions.shell", "arguments": {"cmd": "ls"}}',
        '{"name": "file_write", "arguments": {"path": "a", "content": "one\ntwo"}}',
        '{"name": "shell", "arguments": {"command": "echo "hi""}}',
        f'See [1] and {{"x": 1}}.\n\n{json.dumps({"name": "file_write", "arguments": {"content": HERMES}})}',
        "```action shell\nls\n```",
        "I look.\n\n~~~action shell\nls",
        'Action: shell\nAction Input: {"command": "ls"}',
        'Action: shell\nAction Input: {"command": "ls"}\nObservation: README\nDone.',
        f"<|tool_call|>[{JSON}]<|/tool_call|>",
        f"functools[{JSON}]",
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "shell", "parameters": {"command": "ls"}}]<|END_ACTION|>',
        "<start_function_call>call:shell{command:<escape>ls<escape>}<end_function_call>",
    ],
}

QUOTED = [
    "I documented that a call looks like `<tool_call>shell</tool_call>`.",
    f"I documented that a call looks like `{JSON}`",
    'It is ``<function=shell>{"command": "ls"}</function>``',
    "The marks are `[TOOL_CALLS]shell`, `<|python_tag|>` and `<｜tool▁sep｜>shell`.",
    f"Hermes writes a call like this:\n\n```\n{HERMES}\n```\n\nThe template closes it.",
    f"{FENCED}\n\nThat is the JSON of the call, as you asked.",
    "```action shell\nls\n```\nThis block is our own form.",
    f"# Calls\n\n## Hermes\n\n```xml\n{HERMES}\n```\n\n## JSON\n\n```json\n{JSON}\n```\n\nBoth name the tool.",
    f"> {HERMES.replace(chr(10), ' ')}",
    'You said:\n> [shell(command="ls")]',
    '<tool_call>\n{"name": "web_search", "arguments": {"query": "shell"}}\n</tool_call>',
    '{"name": "ada", "arguments": []}',
    '[search(query="shell")]',
    "<div>\n<span>shell</span>\n</div>",
    '<|channel|>commentary to=functions.browser <|message|>{"query": "shell"}<|call|>',
    "I ran shell and it works.",
    'I ran shell(command="ls") and it works.',
    'shell(command="ls") lists the files (all of them).',
    'Use shell(command="ls")',
    "```python\nprint({'name': 'shell'})\n```",
    "```python\nshell(check=True)\n```",
    "```sh\nls\n```",
    'The config is:\n```json\n{"shell": true, "name": "shell"}\n```',
    f"The tool is described as:\n\n```json\n{SCHEMA}\n```",
    f"```json\n[{SCHEMA}]\n```",
    f"The call was {JSON}, which lists the files.",
    f"const call = ({JSON})",
    f'"{JSON}"',
    "Summary:\n- shell: ok\n- submit: done",
    f"| form | example |\n|---|---|\n| Hermes | {HERMES.replace(chr(10), ' ')} |",
    "```yaml\nname: shell\narguments: {}\n```",
    f"I test parse('{HERMES}')",
    "The form is <tool_call>…</tool_call>, with the name in JSON.",
    "Done. See [the docs](https://example.com/tools).",
    "All 3 tests pass [OK].",
    '{"echo": true}',
    "[" * 5000,
    "{" + '"a":{' * 2000,
    '{"name": "shell", "arguments": ' + "9" * 5000,
    "x" * 200_000,
    "",
]


def read(text: str, *before: Message, tools: Sequence[ToolSpec] = TOOLS) -> str:
    return spoken_call(text, [Message(role="user", content="Do it."), *before], tools)


def test_a_call_that_ends_an_answer_is_known_in_the_forms_that_models_use() -> None:
    wrong = {form: [text for text in texts if "written as text" not in read(text)] for form, texts in WRITTEN.items()}
    assert {form: texts for form, texts in wrong.items() if texts} == {}
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


def test_the_search_takes_time_that_grows_with_the_text() -> None:
    openings = [text[: len(text) // part] for texts in WRITTEN.values() for text in texts for part in (1, 3)]
    characters = [
        "`",
        "``",
        "```\n",
        "```x y",
        "~~~",
        " ",
        "\n",
        "<",
        "[",
        "{",
        '{"',
        '{"a',
        '["',
        '\\"',
        '{"a":[',
        "shell(",
    ]
    characters += [
        "\nshell(a=",
        '\nshell(a="',
        "\nshell(a='\\",
        "\n[shell(command=",
        "<tool_call>shell",
        "<tool_call>",
        "</a>",
    ]
    characters += [
        "<tooltool",
        "<|tool",
        "<|end",
        "``` a",
        "Action: shell\n",
        "\n<shell>  ",
        '"name"   ',
        "\n> ",
        "a` ",
        "a`` ",
    ]
    slow = [text for text in dict.fromkeys([*openings, *characters]) if not _grows_with(text)]
    assert slow == []
    # An error of the JSON decoder counts lines, which is so fast that it shows in longer texts only.
    assert _grows_with("\n{", 300_000)


def _grows_with(text: str, longest: int = 8_000) -> bool:
    def seconds(size: int) -> float:
        began = process_time()
        read((text * size)[:size])
        read(f"```a{text * size}"[:size] + "x")
        return process_time() - began

    # Eight times the length: 64 times the time if it grows with the square.
    return seconds(longest) < 24 * max(0.002, min(seconds(longest // 8) for _ in range(2)))
