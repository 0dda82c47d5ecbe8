"""Every task of the evaluation can be solved, and is not solved by what is wrong."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from drone.sandbox import Sandbox, choose
from drone.sandbox.opened import close_all
from tests.eval.judging import judge
from tests.eval.task import EvalTask, load
from tests.support import needs

TASKS = load()
SOLVED = [task for task in TASKS if task.check]
ANSWERED = [task for task in TASKS if not task.check]
QUESTION = "Both are possible. Which one do you want?"
GAVE_UP = "I stopped: this cannot be done."


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    for program in ("python3", "node", "cc"):
        needs(program)
    yield choose("auto", os.environ)
    close_all()


def named(tasks: list[EvalTask]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("task", tasks, ids=[task.name for task in tasks])


@named(SOLVED)
def test_the_hidden_tests_fail_on_the_original(task: EvalTask, sandbox: Sandbox) -> None:
    untouched = (
        "diff --git a/NOTES b/NOTES\nnew file mode 100644\n--- /dev/null\n+++ b/NOTES\n@@ -0,0 +1 @@\n+Nothing.\n"
    )

    assert judge(task, untouched, "Done.", sandbox).why == "tests failed"


@named(SOLVED)
def test_the_hidden_tests_pass_with_the_reference(task: EvalTask, sandbox: Sandbox) -> None:
    assert judge(task, task.text("reference.patch"), "Done.", sandbox).why == "resolved"


@named(SOLVED)
def test_the_hidden_tests_fail_with_the_wrong_patch(task: EvalTask, sandbox: Sandbox) -> None:
    assert judge(task, task.text("wrong.patch"), "Done.", sandbox).why == "tests failed"


@named(SOLVED)
def test_asking_and_stopping_are_wrong_where_there_is_a_solution(task: EvalTask, sandbox: Sandbox) -> None:
    assert judge(task, "", QUESTION, sandbox).why == "asked"
    assert judge(task, "", GAVE_UP, sandbox).why == "no change"


@named(ANSWERED)
def test_the_reference_answer_is_right_where_nothing_may_be_changed(task: EvalTask, sandbox: Sandbox) -> None:
    assert judge(task, "", task.text("reference.md"), sandbox).resolved


@named(ANSWERED)
def test_a_patch_is_wrong_where_nothing_may_be_changed(task: EvalTask, sandbox: Sandbox) -> None:
    assert judge(task, task.text("wrong.patch"), task.text("reference.md"), sandbox).why == "changed files"


@named(ANSWERED)
def test_an_answer_that_does_not_name_the_reason_is_wrong(task: EvalTask, sandbox: Sandbox) -> None:
    assert not judge(task, "", QUESTION, sandbox).resolved
    assert not judge(task, "", GAVE_UP, sandbox).resolved


def test_only_a_question_is_right_where_asking_is_right(sandbox: Sandbox) -> None:
    (task,) = (task for task in TASKS if task.kind == "question")
    without_question = task.text("reference.md").rpartition(". ")[0] + "."

    assert judge(task, "", without_question, sandbox).why == "did not ask"


def test_there_are_thirty_tasks_of_several_languages_and_kinds() -> None:
    assert len(TASKS) == 30
    assert Counter(task.language for task in TASKS) == {"Python": 17, "JavaScript": 6, "shell": 3, "C": 3, "SQL": 1}
    assert set(Counter(task.kind for task in TASKS)) == {"bug", "feature", "refactoring", "question", "stop"}
    assert all(task.text("wrong.patch") and task.prompt and bool(task.check) != bool(task.words) for task in TASKS)


def test_no_agent_is_given_a_hidden_file() -> None:
    shown = {(task.name, path.name) for task in TASKS for path in (task.directory / "repo").rglob("*")}
    hidden = {(task.name, path.name) for task in TASKS for path in (task.directory / "hidden").rglob("*")}

    assert hidden
    assert shown & hidden == set()


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(ValueError, match="unknown task no-such-task; there are: c-hex"):
        load(["no-such-task"])
