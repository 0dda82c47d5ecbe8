"""The replies of the scripted model in the acceptance tests; a prompt names its script as `script:NAME`."""

from __future__ import annotations

from typing import Any

Reply = dict[str, Any]


def shell(command: str, *, text: str = "", **more: Any) -> Reply:
    """A reply that runs one command."""
    return {"text": text, "tool_calls": [{"name": "shell", "arguments": {"command": command}}], **more}


def calls(*pairs: tuple[str, Any], text: str = "") -> Reply:
    """A reply with several tool calls; arguments as a value or as raw text."""
    return {"text": text, "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in pairs]}


FIX: list[Reply] = [
    {**shell("ls && cat calc.py"), "text": "I look at the files first.", "thinking": "The test names calc.add."},
    {
        "text": "The sign is wrong.",
        "tool_calls": [
            {
                "name": "editor",
                "arguments": {
                    "command": "str_replace",
                    "path": "calc.py",
                    "old_str": "return a - b",
                    "new_str": "return a + b",
                },
            },
            {"name": "shell", "arguments": {"command": "python3 test_calc.py"}},
        ],
    },
    calls(("submit", {"summary": "calc.add adds now, and its test passes."})),
]

SCRIPTS: dict[str, list[Reply]] = {
    "default": [{"text": "There is nothing to do."}],
    "fix": FIX,
    "note": [shell("echo noted >> notes.txt"), {"text": "Noted."}],
    "slow": [shell("echo begun; sleep 4; echo done > slow.txt"), {"text": "Done, slowly."}],
    "gate": [shell("until [ -e go ]; do sleep 0.2; done; rm go; echo done > done.txt"), {"text": "Done."}],
    "hold": [shell("echo begun; sleep 300"), {"text": "Never said."}],
    "risky": [shell("rm calc.py && echo removed"), *({"text": f"Answer {number}."} for number in (1, 2, 3))],
    "ask": [
        shell("echo begun > begun.txt"),
        calls(("ask", {"question": "Which database?", "choices": ["PostgreSQL", "SQLite"]})),
        {"text": "Thank you."},
    ],
    # The fourth reply waits, so that a test can end its drone after the first report.
    "plan": [
        calls(("file_write", {"path": "early.txt", "content": "too early"})),
        calls(
            (
                "present_plan",
                {
                    "title": "Add notes",
                    "summary": "There are none yet.",
                    "points": [
                        {"text": "Write one.txt", "files": ["one.txt"], "verify": "cat one.txt"},
                        {"text": "Write two.txt"},
                        {"text": "Write three.txt"},
                    ],
                },
            )
        ),
        calls(
            ("file_write", {"path": "one.txt", "content": "one\n"}),
            ("report_point", {"point": 1, "result": "done"}),
        ),
        shell("until [ -e go ]; do sleep 0.2; done; rm go"),
        calls(("report_point", {"point": 3, "result": "skipped", "text": "No longer needed"})),
        {"text": "Done."},
        calls(("report_point", {"point": 2, "result": "changed", "commit": "abcdef1", "text": "In another file"})),
        {"text": "Reported."},
    ],
    "three": [*[shell(f"echo {n} >> steps.txt; sleep 0.3") for n in range(1, 4)], {"text": "Three steps done."}],
    "steps": [*[shell(f"echo step {n} >> steps.txt; sleep 0.8") for n in range(1, 11)], {"text": "Ten steps done."}],
    "nap": [
        shell("echo step 1 >> steps.txt"),
        shell("echo step 2 >> steps.txt"),
        shell("echo step 3 >> steps.txt; sleep 20"),
        {"text": "Three steps done."},
    ],
    "refused": [{"status": 401, "error": "Incorrect API key provided"}],
    "flaky": [{"text": "Said at last.", "fail": [{"status": 500, "error": "scripted"}, {"cut_after": 1}]}],
}
