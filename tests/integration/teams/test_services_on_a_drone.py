"""Service orders on a drone: a model describes an agent or writes a title, in a run without a workspace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from drone.runs.pipe import EndRun
from drone.workspace import DefaultBranch, git_environment, read_agent_instructions
from drone.workspace.git import Git
from shared.errors import OrderError
from shared.events import Delivered, ErrorStep, Prepared, ToolResultStep
from shared.outcome import ExitStatus
from shared.work_order import Describe, Limits, WriteTitle
from tests.support.repositories import git
from tests.support.runs import Bench, small_repository
from tests.support.scripted import ScriptedFactory, says

TEXT = "Lead plans the work. It hands tasks to the others. Give it goals. Do not give it code."
NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A run that is to describe `lead` from what was uploaded."""
    bench = Bench(tmp_path, small_repository(tmp_path / "remote.git"))
    return asking(bench, instructions="You lead. Plan, and hand the work on.")


@pytest.fixture
def title_bench(bench: Bench) -> Bench:
    """A run that is to write the title of a session."""
    limits = Limits(max_iterations=1, max_format_errors=1, retry_enabled=False, max_retries=0)
    title = WriteTitle(session="c" * 12, prompt="The parser fails on tabs.")
    changes = {"purpose": "title", "title": title, "limits": limits, "prompt": "Write a title.", "describe": None}
    bench.order = bench.order.model_copy(update=changes)
    return bench


def asking(bench: Bench, **where: str) -> Bench:
    changes = {"purpose": "describe", "describe": Describe(agent="lead", **where), "limits": Limits(max_iterations=5)}
    bench.order = bench.order.model_copy(update={"prompt": "Describe agent lead.", **changes})
    return bench


def sets(text: str, name: str = "set_description", **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": {"text": text}}], **more}


def in_repository(bench: Bench, content: bytes) -> Bench:
    """The instructions lie in the repository, on its default branch."""
    remote = bench.directory / "remote.git"
    work = remote.with_suffix(".work")
    (work / "agents").mkdir(exist_ok=True)
    (work / "agents" / "lead.md").write_bytes(content)
    commit(work)
    git(work, "push", "-q", str(remote), "HEAD:main")
    return asking(bench, instructions_path="agents/lead.md")


def commit(work: Path) -> str:
    """Commit all files; returns the commit's id."""
    git(work, "add", "-A")
    git(work, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "-m", "more")
    return git(work, "rev-parse", "HEAD")


def errors(bench: Bench) -> list[str]:
    return [event.body.code for event in bench.events if isinstance(event.body, ErrorStep)]


def test_a_model_describes_the_agent_with_the_one_tool_that_there_is(bench: Bench, scripted: ScriptedFactory) -> None:
    """S-012. Wrong use of it is answered, and the model may mend that."""
    usage = {"input_tokens": 300, "output_tokens": 40}
    bench.refuse_url = AssertionError("the repository was asked for")
    wrong = [sets("x" * 1001), sets("  "), sets("ls", name="shell")]
    bench.order = bench.order.model_copy(update={"limits": Limits(max_iterations=9)})
    server = scripted([says("I read it.", usage=usage), *wrong, sets(TEXT, usage=usage)])
    end = bench.run(server.url)

    assert (end.status, end.exit_status, end.response) == ("success", ExitStatus.SUBMITTED, TEXT)
    assert not bench.workspaces.exists()
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == ["set_description"]
    system, prompt = server.requests[0]["messages"]
    assert "4 to 6" in system["content"]
    assert "You lead. Plan, and hand the work on." in prompt["content"]
    assert "set_description" in server.requests[1]["messages"][-1]["content"]
    results = [event.body.output for event in bench.events if isinstance(event.body, ToolResultStep)]
    assert [result.split("; ")[0] for result in results[:3]] == [
        "Error: the text has 1,001 characters (maximum 1,000)",
        "Error: the text is empty",
        "Error: there is no tool named 'shell'. Call one of: set_description.",
    ]


def test_instructions_of_the_repository_are_read_fresh_from_its_default_branch(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    """S-010. A file that cannot be instructions fails the order and says why, and so does a repository that the owner
    of the machine refuses, which is not asked."""
    in_repository(bench, b"Plan.")
    bench.refuse_url = PermissionError("not this one")
    assert bench.run(NOBODY).status == "failed"
    assert not bench.workspaces.exists()

    bench.refuse_url = None
    server = scripted([sets(TEXT)])
    told = []
    for number, content in enumerate(("Plan the work.\n", "Plan the \u201cwork\u201d anew.\n", " \n"), 2):
        in_repository(bench, content.encode())
        bench.order = bench.order.model_copy(update={"run_id": f"{number:012}", "generation": number})
        told.append(bench.run(server.url))
    assert [event.body for event in bench.events if isinstance(event.body, Prepared | Delivered)] == []
    assert not (bench.workspaces / "sessions").exists()
    said = [request["messages"][1]["content"] for request in server.requests]
    assert ["Plan the work." in said[0], "Plan the \u201cwork\u201d anew." in said[1], len(said)] == [True, True, 2]
    assert (told[2].status, told[2].exit_status, told[2].order_at_fault) == ("failed", ExitStatus.REFUSED, True)
    assert errors(bench)[-1] == "E-AGENT-INSTRUCTIONS"
    assert "agents/lead.md on the branch main is empty" in told[2].reason


def test_what_cannot_be_instructions_is_refused_with_the_reason(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "folder.md").mkdir(parents=True)
    git(work, "init", "-q")
    (work / "link.md").symlink_to("/etc/hostname")
    (work / "folder.md" / "more.md").write_text("Plan.")
    (work / "huge.md").write_bytes(b"x" * 5_000_000)
    here = Git(git_environment(tmp_path / "config", os.environ), work / ".git")
    branch = DefaultBranch(here, "main", commit(work))
    refused = {
        "huge.md": "has 5,000,000 bytes",
        "gone.md": "was not found",
        "huge.md/lead.md": "was not found",
        "../lead.md": "is not a path inside the repository",
        "/etc/lead.md": "is not a path inside the repository",
        ":(glob)*.md": "was not found",
        "link.md": "is a link",
        "folder.md": "is not a file",
    }
    for path, why in refused.items():
        with pytest.raises(OrderError) as refusal:
            read_agent_instructions(branch, path, "lead")
        assert (refusal.value.code, why in refusal.value.why) == ("E-AGENT-INSTRUCTIONS", True), path


def test_a_model_that_never_sets_a_description_fails_the_order_and_its_cost_counts(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    usage = {"input_tokens": 10, "output_tokens": 2}
    end = bench.run(scripted([says("Lead leads.", usage=usage), says("It leads, I said.", usage=usage)]).url)
    assert (end.status, end.exit_status) == ("failed", ExitStatus.REFUSED)
    assert "the model did not provide a description of agent lead" in end.reason
    assert (end.stats.input_tokens, end.stats.output_tokens) == (20, 4)


def test_a_cancel_ends_it_while_the_model_is_silent(bench: Bench, scripted: ScriptedFactory) -> None:
    told = [EndRun(wish="cancel", reason="not needed")]
    bench.on_doing = lambda text: bench.controls.receive(told.pop()) if text.startswith("waiting") and told else None
    end = bench.run(scripted([sets(TEXT, delay_s=30)]).url)
    assert (end.status, end.exit_status, end.reason) == ("preempted", ExitStatus.CANCELED, "not needed")
    assert end.receipt is not None


def test_one_call_without_tools_and_without_a_repository_gives_the_title(
    title_bench: Bench, scripted: ScriptedFactory
) -> None:
    title_bench.refuse_url = AssertionError("the repository was asked for")
    server = scripted([says("Tabs in the parser")])
    end = title_bench.run(server.url)
    assert (end.status, end.exit_status, end.response) == ("success", ExitStatus.STOPPED, "Tabs in the parser")
    (request,) = server.requests
    assert "tools" not in request
    assert "The parser fails on tabs." in request["messages"][1]["content"]
    assert not title_bench.workspaces.exists()


def test_a_model_that_calls_tools_or_fails_is_asked_once_and_gives_no_title(
    title_bench: Bench, scripted: ScriptedFactory
) -> None:
    server = scripted([{"text": "Let me see.", "tool_calls": [{"name": "shell", "arguments": {"command": "ls"}}]}] * 3)
    assert (title_bench.run(server.url).status, len(server.requests)) == ("failed", 1)
    assert errors(title_bench) == ["E-TITLE"]
    server = scripted([says("Too late", fail=[{"status": 500, "error": "scripted"}])])
    assert (title_bench.run(server.url).status, len(server.requests)) == ("failed", 1)
