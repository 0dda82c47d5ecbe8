"""What an order brings along: a mode, notes, a review, a branch that was left, work to merge, limits and messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.budgets import Money
from shared.control import Say, TakeBack
from shared.events import (
    ApprovalStep,
    ChargeStep,
    ChildStep,
    CommentStep,
    CompactionStep,
    Delivered,
    ErrorStep,
    RememberStep,
    RetryStep,
    ReviewAnswerStep,
    ToolResultStep,
    UserStep,
)
from shared.messages import Message
from shared.outcome import ExitStatus, Verification
from shared.tool_names import ALWAYS, SELECTABLE
from shared.work_order import Base, Limits, MergedWork, ModeDefinition, OrderMemory, OrderProvider
from tests.support.local_runs import call
from tests.support.repositories import git, push_commit
from tests.support.runs import Bench, shell
from tests.support.scripted import ScriptedFactory, says

pytestmark = pytest.mark.usefixtures("warm_model")
RUN = "run000000000"
REMEMBERS = call("remember", note="Run make test.", why="pytest alone misses files", scope="organization")
ANSWERS = call("answer_review", comment="a1b2c3", verdict="done")
COMMENT = "a1b2c3000000"
SUMMARY = "A cache made it slower."
FAILS = {"status": 500, "error": "boom"}


def offered(request: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in request["tools"]}


def results(bench: Bench) -> list[str]:
    return [step.output for step in bench.of(ToolResultStep)]


def test_model_and_users_are_told_which_submodules_are_empty_and_why(
    bench: Bench, scripted: ScriptedFactory, tmp_path: Path
) -> None:
    remote = tmp_path / "remote.git"
    modules = '[submodule "m"]\n\tpath = lib\n\turl = https://evil.example/lib\n'
    head = push_commit(remote, {".gitmodules": modules})
    entry = f"160000 commit {head}\tlib\n" + git(remote, "ls-tree", head) + "\n"
    tree = git(remote, "mktree", "--missing", stdin=entry.encode())
    git(remote, "update-ref", "refs/heads/main", git(remote, "commit-tree", tree, "-p", head, "-m", "Add lib"))
    server = scripted([says("Done.")])
    assert bench.run(server.url).status == "success"
    (note,) = [step.text for step in bench.of(CommentStep) if "lib (https://evil.example/lib" in step.text]
    assert note in server.requests[0]["messages"][-1]["content"]


# --- modes, notes, reviews -----------------------------------------------------------------------


def in_mode(bench: Bench, *tools: str) -> None:
    bench.change(mode=ModeDefinition(name="docs", text="Write {{ documentation }}.", tools=tools))


def test_the_model_is_told_the_modes_text_and_has_its_tools_alone_in_every_question(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    in_mode(bench, "file_read", "editor", "extension:clock")
    server = scripted([shell("touch x"), call("file_read", path="README"), says("done")])
    bench.run(server.url)
    assert "# Mode: docs\n\nWrite {{ documentation }}." in server.requests[0]["messages"][0]["content"]
    assert offered(server.requests[0]) - {*ALWAYS} == {"file_read", "editor"}
    assert "there is no tool named 'shell'. Call one of: file_read, editor" in results(bench)[0]
    assert len({json.dumps(request["tools"]) for request in server.requests}) == 1
    # A tool that the run does not have is named, and a mode without tools has all.
    (problem,) = [step.what for step in bench.of(ErrorStep)]
    assert "'clock'" in problem
    in_mode(bench)
    server = scripted([says("done")])
    bench.run(server.url)
    assert {*SELECTABLE} <= offered(server.requests[0]) <= {*SELECTABLE, *ALWAYS}


def test_kept_notes_are_in_the_system_prompt_which_a_new_note_does_not_change(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    bench.change(memory=OrderMemory(project=("Use tabs.",)))
    server = scripted([REMEMBERS, says("done")])
    assert bench.run(server.url).status == "success"
    (system,) = {request["messages"][0]["content"] for request in server.requests}
    assert "For this project:\n\n- Use tabs.\n" in system
    note = RememberStep(text="Run make test.", why="pytest alone misses files", scope="organization")
    assert bench.of(RememberStep) == [note]


def test_a_review_that_arrives_meanwhile_brings_its_tool_but_not_for_a_child(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    message = Say(run_id=bench.order.run_id, text="Review: === comment a1b2c3", review=(COMMENT,))
    bench.on_doing = lambda text: bench.controls.receive(message) if text.startswith("shell:") else None
    parent = [shell("true"), call("spawn", task="script:child Look."), ANSWERS, says("done")]
    server = scripted({"default": parent, "child": [ANSWERS, says("found")]})
    assert bench.run(server.url).status == "success"
    assert [(step.comment, step.verdict) for step in bench.of(ReviewAnswerStep)] == [(COMMENT, "done")]
    assert ["answer_review" in offered(request) for request in server.requests] == [False, *[True] * 5]
    (refused,) = [step.step["output"] for step in bench.of(ChildStep) if step.step["kind"] == "tool_result"]
    assert "a child agent cannot" in refused


def test_tools_for_what_the_order_does_not_have_are_neither_offered_nor_run(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    bench.limit(max_iterations=4)
    names = ("remember", "answer_review", "add_comment")
    server = scripted([REMEMBERS, ANSWERS, call("add_comment", message="Hello?"), says("done")])
    end = bench.run(server.url)
    assert (end.exit_status, end.response) == ("stopped", "done")
    assert offered(server.requests[0]) & {*names} == set()
    refused = [output.partition("'")[2].partition("'")[0] for output in results(bench) if "there is no tool" in output]
    assert refused == [*names]
    assert bench.of(RememberStep, ReviewAnswerStep, CommentStep) == []
    # Nor is a turn of its own reminded of a comment, or of the answers that are left.
    assert [step.source for step in bench.of(UserStep)] == ["prompt"]
    assert "<budget>" not in str(server.requests)


# --- a branch that was left ----------------------------------------------------------------------


def leave(bench: Bench, **fields: Any) -> None:
    left = (Message(role="user", content="Try a cache."), Message(role="assistant", content="It was slower."))
    bench.change(session=bench.order.session.model_copy(update={"left": left, "left_leaf": "e1", **fields}))


def test_the_model_summarizes_the_branch_that_was_left_and_reads_it_with_the_prompt(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    leave(bench)
    server = scripted({"default": [says("done")], "summary": [says(SUMMARY)]})
    bench.run(server.url)
    asked, turn = server.requests
    assert "It was slower." in asked["messages"][-1]["content"]
    opening = turn["messages"][-1]["content"]
    assert opening.startswith("Write a file")
    assert f"Summary of the branch of this conversation that was left:\n\n{SUMMARY}" in opening
    assert [(step.text, step.left_leaf) for step in bench.of(CommentStep)] == [(SUMMARY, "e1")]
    assert [step.about for step in bench.of(ChargeStep)] == ["summary"]
    assert bench.of(UserStep)[0].text == opening


def test_a_known_summary_is_not_paid_again_and_a_run_begins_without_one(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    leave(bench, left=(), left_summary=SUMMARY)
    server = scripted([says("done")])
    bench.run(server.url)
    assert [SUMMARY in request["messages"][-1]["content"] for request in server.requests] == [True]
    leave(bench, left_summary="")
    ended = bench.run(scripted({"default": [says("done")], "summary": [{"status": 401, "error": "no"}]}).url)
    assert ended.exit_status == "stopped"
    assert [step.what.partition(": ")[0] for step in bench.of(ErrorStep)] == [
        "The branch that was left was not summarized"
    ]


def test_a_message_while_the_branch_is_summarized_waits_and_no_person_is_asked_for_money(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    words = [word("Use Postgres.", interrupt=True)]
    bench.on_doing = lambda text: bench.controls.receive(words.pop()) if words and text.startswith("summ") else None
    leave(bench)
    server = scripted({"default": [says("done")], "summary": [says(SUMMARY, delay_s=1)]})
    assert bench.run(server.url).exit_status == "stopped"
    opening, message = server.requests[-1]["messages"][-2:]
    assert (SUMMARY in opening["content"], message["content"]) == (True, "Use Postgres.")

    provider = OrderProvider(name="priced", model="openai/gpt-4o-mini", api_key="sk-main")
    bench.change(provider=provider, limits=Limits(cost_limit=1e-9, approval_timeout=1), money=Money(on_limit="ask"))
    assert bench.run(server.url).exit_status == "cost_limit"
    assert [step.call_id for step in bench.of(ApprovalStep)] == ["money-1"]


# --- work to merge -------------------------------------------------------------------------------


def test_merged_work_is_delivered_without_the_model_unless_a_check_fails(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    remote, bases = bench.directory / "remote.git", {}
    for name in ("own", "lower"):
        git(remote, "branch", f"fleet/{name}", "main")
        commit = push_commit(remote, {f"{name}.txt": f"{name}\n"}, f"fleet/{name}")
        bases[name] = Base(commit=commit, branch=f"fleet/{name}")
    merged = MergedWork(order="1" * 12, base=bases["lower"])
    bench.change(base=bases["own"], merges=(merged,), merge_only=True)
    bench.change_project(verify=("test -e own.txt && test -e lower.txt",))
    server = scripted([shell("echo both > own.txt"), says("Mended.")])
    end = bench.run(server.url)
    assert (end.exit_status, end.verification) == (ExitStatus.STOPPED, Verification.VERIFIED)
    assert server.requests == []
    delivered = bench.last(Delivered)
    assert (delivered.base_commit, delivered.files_changed) == (bases["own"].commit, 1)
    assert [step.text.startswith(bench.order.prompt) for step in bench.of(UserStep)] == [True]

    bench.change_project(verify=("grep -q both own.txt",))
    end = bench.run(server.url)
    assert (end.response, end.verification) == ("Mended.", Verification.VERIFIED)
    asked = server.requests[0]["messages"]
    assert bench.order.prompt in str(asked[1])
    assert "Your work was checked and did not pass" in str(asked[-1])


# --- limits --------------------------------------------------------------------------------------


def test_waits_commands_and_unusable_answers_have_the_orders_limits(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.limit(base_delay=0.2, command_timeout=0.5, max_format_errors=5)
    ended = bench.run(scripted([{**shell("sleep 600"), "fail": [FAILS]}, says("", repeat=True)]).url)
    (retry,) = bench.of(RetryStep)
    assert 0.15 <= retry.delay_s <= 0.25
    assert ["0.5 s" in output for output in results(bench)] == [True]
    assert (ended.exit_status, "5 unusable answers" in ended.reason) == ("format_errors", True)


def test_a_failed_call_is_repeated_as_often_as_max_retries_says_and_not_at_all_without_retries(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    server = scripted([says("done", fail=[FAILS] * 9)])
    for enabled, repeated in ((False, 0), (True, 3)):
        bench.limit(base_delay=0.01, max_retries=3, retry_enabled=enabled)
        assert bench.run(server.url).exit_status == "model_error"
        assert len(bench.of(RetryStep)) == repeated


def test_a_full_window_is_compacted_at_the_reserve_and_keeps_what_was_set_or_not_at_all(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    fills = [*[shell("yes word | head -c 4000")] * 8, says("done")]
    server = scripted({"default": fills, "summary": [says("What happened so far.", repeat=True)]})
    bench.change(provider=bench.order.provider.model_copy(update={"context_window": 12_000}))
    found = []
    for enabled, reserve, keep in ((True, 0, 0), (True, 8_000, 500), (False, 0, 0)):
        known = len(bench.of(CompactionStep))
        bench.limit(compaction_enabled=enabled, reserve_tokens=reserve, keep_recent_tokens=keep)
        assert bench.run(server.url).exit_status == "stopped"
        found.append(bench.of(CompactionStep)[known:])
    usual, early, off = found
    assert early[0].tokens_before < 9_000 <= usual[0].tokens_before
    assert early[0].kept < usual[0].kept
    assert off == []


# --- messages ------------------------------------------------------------------------------------


def word(text: str, **how: Any) -> Say:
    return Say(run_id=RUN, text=text, **how)


def test_messages_are_given_together_or_alone_follow_ups_one_for_each_stop_and_what_was_taken_back_never(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    messages = [
        word("a", message="7"),
        word("b", message="8"),
        TakeBack(run_id=RUN, messages=("7",)),
        word("c"),
        word("d", alone=True),
        word("e", after=True, alone=True),
        word("f", after=True, alone=True),
    ]

    def tell(doing: str) -> None:
        while "sleep" in doing and messages:
            bench.controls.receive(messages.pop(0))

    bench.on_doing = tell
    server = scripted([shell("sleep 0.1"), shell("true"), says("one"), says("two"), says("three")])
    bench.run(server.url)
    given = [[m["content"] for m in body["messages"] if m["role"] == "user"][1:] for body in server.requests]
    assert given == [[], ["b", "c"], ["b", "c", "d"], ["b", "c", "d", "e"], ["b", "c", "d", "e", "f"]]
    assert [(step.text, step.message) for step in bench.of(UserStep)[1:3]] == [("b", "8"), ("c", "")]
