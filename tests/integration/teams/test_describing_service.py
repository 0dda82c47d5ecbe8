"""A service order on a drone: a model describes an agent, in a run that has no workspace."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from drone.runs.pipe import EndRun
from shared.events import AssistantStep, Delivered, ErrorStep, Prepared, RunEnded, ToolResultStep
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
    server = scripted([sets(TEXT)])
    end = bench.run(server.url)

    assert (end.status, end.exit_status, end.response) == ("success", ExitStatus.SUBMITTED, TEXT)
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == ["set_description"]
    system, prompt = server.requests[0]["messages"]
    assert "4 to 6" in system["content"]
    assert "You lead. Plan, and hand the work on." in prompt["content"]


def test_its_cost_is_that_of_a_run_like_any_other(bench: Bench, scripted: ScriptedFactory) -> None:
    """S-012, S-034."""
    usage = {"input_tokens": 300, "output_tokens": 40}
    end = bench.run(scripted([says("I read it.", usage=usage), sets(TEXT, usage=usage)]).url)

    assert (end.stats.input_tokens, end.stats.output_tokens, end.stats.tool_calls) == (600, 80, 1)
    assert end.stats.duration_ms > 0


def test_no_workspace_is_laid_out_and_nothing_is_delivered(bench: Bench, scripted: ScriptedFactory) -> None:
    in_repository(bench, b"# Lead\n\nPlan.\n")
    bench.run(scripted([sets(TEXT)]).url)

    assert [event.body for event in bench.events if isinstance(event.body, Prepared | Delivered)] == []
    assert not (bench.workspaces / "sessions").exists()
    assert len(list((bench.workspaces / "mirrors").glob("*.git"))) == 1


def test_uploaded_instructions_need_no_repository(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.refuse_url = AssertionError("the repository was asked for")
    end = bench.run(scripted([sets(TEXT)]).url)

    assert end.response == TEXT
    assert not bench.workspaces.exists()


def test_instructions_of_the_repository_are_read_fresh_from_its_default_branch(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    """S-010."""
    in_repository(bench, b"Plan the work.\n")
    server = scripted([sets(TEXT)])
    bench.run(server.url)
    in_repository(bench, "Plan the \u201cwork\u201d anew.\n".encode())
    bench.order = bench.order.model_copy(update={"run_id": "b" * 12, "generation": 2})
    bench.directory = bench.directory / "again"
    bench.directory.mkdir()
    bench.run(server.url)

    told = [request["messages"][1]["content"] for request in server.requests]
    assert "Plan the work." in told[0]
    assert "Plan the \u201cwork\u201d anew." in told[1]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"x" * 5_000_000, "has 5,000,000 bytes; the maximum is 100,000 characters"),
        (b"x" * 100_001, "has 100,001 characters; the maximum is 100,000"),
        (b"Lead the t\xe9am.", "is not UTF-8: byte 10"),
    ],
    ids=["empty", "blank", "5 MB", "long", "latin-1"],
)
def test_a_file_that_cannot_be_instructions_fails_the_order_and_says_why(
    bench: Bench, content: bytes, why: str
) -> None:
    end = in_repository(bench, content).run("http://127.0.0.1:9/v1")

    assert (end.status, end.exit_status, end.order_at_fault) == ("failed", ExitStatus.REFUSED, True)
    assert [error.code for error in errors(bench)] == ["E-AGENT-INSTRUCTIONS"]
    what = f"the instructions of agent lead cannot be read: agents/lead.md on the branch main {why}"
    assert end.reason == f"{what} {INSTEAD}"


@pytest.mark.parametrize("path", ["agents/gone.md", "README/lead.md", "../lead.md", "/etc/lead.md", ":(glob)*.md"])
def test_a_file_that_is_gone_fails_the_order_and_is_named(bench: Bench, path: str) -> None:
    end = asking(bench, instructions_path=path).run("http://127.0.0.1:9/v1")

    assert [error.code for error in errors(bench)] == ["E-AGENT-INSTRUCTIONS"]
    assert "agent lead" in end.reason
    assert path in end.reason


@pytest.mark.parametrize(("target", "what"), [("/etc/hostname", "is a link"), (None, "is not a file")])
def test_a_link_or_a_directory_is_no_instructions_file(bench: Bench, target: str | None, what: str) -> None:
    remote = bench.directory / "remote.git"
    place = remote.with_suffix(".work") / "lead.md"
    if target:
        place.symlink_to(target)
    else:
        place.mkdir()
        (place / "more.md").write_text("Plan.")
    commit(place.parent, remote)
    end = asking(bench, instructions_path="lead.md").run("http://127.0.0.1:9/v1")

    assert end.reason.endswith(f"lead.md on the branch main {what} {INSTEAD}")


def test_a_repository_that_the_owner_of_the_machine_refuses_is_not_asked(bench: Bench) -> None:
    in_repository(bench, b"Plan.")
    bench.refuse_url = PermissionError("not this one")
    end = bench.run("http://127.0.0.1:9/v1")

    assert end.status == "failed"
    assert not bench.workspaces.exists()


def test_a_model_that_only_talks_is_asked_once_more(bench: Bench, scripted: ScriptedFactory) -> None:
    server = scripted([says("Lead leads."), sets(TEXT)])
    end = bench.run(server.url)

    assert end.response == TEXT
    assert "set_description" in server.requests[1]["messages"][-1]["content"]


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


def test_it_ends_after_five_answers(bench: Bench, scripted: ScriptedFactory) -> None:
    """S-012."""
    end = bench.run(scripted([sets(" ") for _ in range(9)]).url)

    assert (end.status, end.exit_status) == ("failed", ExitStatus.REFUSED)
    assert len([event for event in bench.events if isinstance(event.body, AssistantStep)]) == 5


def test_a_limit_ends_it_as_it_ends_every_run(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.order = bench.order.model_copy(update={"limits": Limits(token_limit=50)})
    end = bench.run(scripted([sets(" ", usage={"input_tokens": 60, "output_tokens": 1}), sets(TEXT)]).url)

    assert (end.status, end.exit_status) == ("failed", ExitStatus.TOKEN_LIMIT)


def test_a_cancel_ends_it_while_the_model_is_silent(bench: Bench, scripted: ScriptedFactory) -> None:
    told = [EndRun(wish="cancel", reason="not needed")]
    bench.on_doing = lambda text: bench.controls.receive(told.pop()) if text.startswith("waiting") and told else None
    end = bench.run(scripted([sets(TEXT, delay_s=30)]).url)

    assert (end.status, end.exit_status, end.reason) == ("preempted", ExitStatus.CANCELED, "not needed")
    assert end.receipt is not None


def test_a_drone_that_stops_gives_the_order_back(bench: Bench, scripted: ScriptedFactory) -> None:
    told = [EndRun(wish="stop", reason="the drone stops")]
    bench.on_doing = lambda text: bench.controls.receive(told.pop()) if text.startswith("waiting") and told else None
    end: RunEnded = bench.run(scripted([sets(TEXT, delay_s=30)]).url)

    assert (end.status, end.give_back) == ("preempted", True)
