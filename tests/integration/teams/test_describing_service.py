"""A service order on a drone: a model describes an agent, in a run that has no workspace."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from drone.runs.pipe import EndRun
from shared.events import Delivered, ErrorStep, Prepared, ToolResultStep
from shared.outcome import ExitStatus
from shared.work_order import Describe, Limits
from tests.support.runs import Bench, small_repository
from tests.support.scripted import ScriptedFactory, says

TEXT = "Lead plans the work. It hands tasks to the others. Give it goals. Do not give it code."
INSTEAD = "(next: add the file, or: fleet agent edit lead --instructions FILE)"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A run that is to describe `lead` from what was uploaded."""
    bench = Bench(tmp_path, small_repository(tmp_path / "remote.git"))
    return asking(bench, instructions="You lead. Plan, and hand the work on.")


def asking(bench: Bench, **where: str) -> Bench:
    changes = {"purpose": "describe", "describe": Describe(agent="lead", **where), "limits": Limits(max_iterations=5)}
    bench.order = bench.order.model_copy(update={"prompt": "Describe agent lead.", **changes})
    return bench


def sets(text: str, name: str = "set_description", **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": {"text": text}}], **more}


def in_repository(bench: Bench, content: bytes, path: str = "agents/lead.md") -> Bench:
    """The instructions lie in the repository, on its default branch."""
    remote = bench.directory / "remote.git"
    work = remote.with_suffix(".work")
    (work / path).parent.mkdir(parents=True, exist_ok=True)
    (work / path).write_bytes(content)
    commit(work, remote)
    return asking(bench, instructions_path=path)


def commit(work: Path, remote: Path) -> None:
    git = ["git", "-C", str(work), "-c", "user.name=t", "-c", "user.email=t@localhost"]
    for arguments in (["add", "-A"], ["commit", "-q", "-m", "more"], ["push", "-q", str(remote), "HEAD:main"]):
        subprocess.run([*git, *arguments], check=True)


def errors(bench: Bench) -> list[ErrorStep]:
    return [event.body for event in bench.events if isinstance(event.body, ErrorStep)]


def test_a_model_describes_the_agent_with_the_one_tool_that_there_is(bench: Bench, scripted: ScriptedFactory) -> None:
    """S-012."""
    usage = {"input_tokens": 300, "output_tokens": 40}
    bench.refuse_url = AssertionError("the repository was asked for")
    server = scripted([says("I read it.", usage=usage), sets(TEXT, usage=usage)])
    end = bench.run(server.url)

    assert (end.status, end.exit_status, end.response) == ("success", ExitStatus.SUBMITTED, TEXT)
    assert (end.stats.input_tokens, end.stats.output_tokens, end.stats.tool_calls) == (600, 80, 1)
    assert not bench.workspaces.exists()
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == ["set_description"]
    system, prompt = server.requests[0]["messages"]
    assert "4 to 6" in system["content"]
    assert "You lead. Plan, and hand the work on." in prompt["content"]
    assert "set_description" in server.requests[1]["messages"][-1]["content"]


def test_instructions_of_the_repository_are_read_fresh_from_its_default_branch(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    """S-010."""
    in_repository(bench, b"Plan the work.\n")
    server = scripted([sets(TEXT)])
    bench.run(server.url)
    assert [event.body for event in bench.events if isinstance(event.body, Prepared | Delivered)] == []
    assert not (bench.workspaces / "sessions").exists()
    in_repository(bench, "Plan the \u201cwork\u201d anew.\n".encode())
    bench.order = bench.order.model_copy(update={"run_id": "b" * 12, "generation": 2})
    bench.directory = bench.directory / "again"
    bench.directory.mkdir()
    bench.run(server.url)

    told = [request["messages"][1]["content"] for request in server.requests]
    assert "Plan the work." in told[0]
    assert "Plan the \u201cwork\u201d anew." in told[1]


def test_a_repository_that_the_owner_of_the_machine_refuses_is_not_asked(bench: Bench) -> None:
    in_repository(bench, b"Plan.")
    bench.refuse_url = PermissionError("not this one")

    assert bench.run("http://127.0.0.1:9/v1").status == "failed"
    assert not bench.workspaces.exists()


def test_a_file_that_cannot_be_instructions_fails_the_order_and_says_why(tmp_path: Path) -> None:
    for number, (content, why) in enumerate(
        (
            (b" \n", "is empty"),
            (b"x" * 5_000_000, "has 5,000,000 bytes; the maximum is 100,000 characters"),
            (b"x" * 100_001, "has 100,001 characters; the maximum is 100,000"),
            (b"Lead the t\xe9am.", "is not UTF-8: byte 10"),
        )
    ):
        bench = Bench(tmp_path / str(number), small_repository(tmp_path / str(number) / "remote.git"))
        end = in_repository(bench, content).run("http://127.0.0.1:9/v1")

        assert (end.status, end.exit_status, end.order_at_fault) == ("failed", ExitStatus.REFUSED, True)
        assert [error.code for error in errors(bench)] == ["E-AGENT-INSTRUCTIONS"]
        assert f"agent lead cannot be read: agents/lead.md on the branch main {why}" in end.reason


def test_what_is_no_file_of_the_repository_fails_the_order_and_is_named(bench: Bench) -> None:
    remote = bench.directory / "remote.git"
    work = remote.with_suffix(".work")
    (work / "link.md").symlink_to("/etc/hostname")
    (work / "folder.md").mkdir()
    (work / "folder.md" / "more.md").write_text("Plan.")
    commit(work, remote)
    place = bench.directory
    paths = ("agents/gone.md", "README/lead.md", "../lead.md", "/etc/lead.md", ":(glob)*.md", "link.md", "folder.md")
    for number, path in enumerate(paths):
        bench.directory = place / str(number)
        bench.directory.mkdir()
        asking(bench, instructions_path=path)
        bench.order = bench.order.model_copy(update={"run_id": f"{number:012}", "generation": number + 1})
        end = bench.run("http://127.0.0.1:9/v1")
        assert errors(bench)[-1].code == "E-AGENT-INSTRUCTIONS", path
        assert ("agent lead" in end.reason, path in end.reason) == (True, True), path


def test_a_model_that_never_sets_a_description_fails_the_order_and_its_cost_counts(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    usage = {"input_tokens": 10, "output_tokens": 2}
    end = bench.run(scripted([says("Lead leads.", usage=usage), says("It leads, I said.", usage=usage)]).url)

    assert (end.status, end.exit_status) == ("failed", ExitStatus.REFUSED)
    assert "the model did not provide a description of agent lead" in end.reason
    assert (end.stats.input_tokens, end.stats.output_tokens) == (20, 4)


def test_wrong_use_is_answered_and_the_model_may_mend_it(bench: Bench, scripted: ScriptedFactory) -> None:
    wrong = [sets("x" * 1001), sets("  "), sets("ls", name="shell"), sets(TEXT)]
    end = bench.run(scripted(wrong).url)

    results = [event.body.output for event in bench.events if isinstance(event.body, ToolResultStep)]
    assert end.response == TEXT
    assert [result.split("; ")[0] for result in results[:3]] == [
        "Error: the text has 1,001 characters (maximum 1,000)",
        "Error: the text is empty",
        "Error: there is no tool named 'shell'. Call one of: set_description.",
    ]


def test_a_cancel_ends_it_while_the_model_is_silent(bench: Bench, scripted: ScriptedFactory) -> None:
    told = [EndRun(wish="cancel", reason="not needed")]
    bench.on_doing = lambda text: bench.controls.receive(told.pop()) if text.startswith("waiting") and told else None
    end = bench.run(scripted([sets(TEXT, delay_s=30)]).url)

    assert (end.status, end.exit_status, end.reason) == ("preempted", ExitStatus.CANCELED, "not needed")
    assert end.receipt is not None
