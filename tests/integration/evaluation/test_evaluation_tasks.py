"""Every task of the evaluation can be solved, and is not solved by what is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from drone.sandbox import Sandbox, choose
from drone.sandbox.opened import close_all
from tests.eval.judging import judge
from tests.eval.task import load
from tests.support import needs

TASKS = load()
UNTOUCHED = "diff --git a/NOTES b/NOTES\nnew file mode 100644\n--- /dev/null\n+++ b/NOTES\n@@ -0,0 +1 @@\n+Nothing.\n"


QUESTION = "Both are possible. Which one do you want?"
GAVE_UP = "I stopped: this cannot be done."


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    for program in ("python3", "node", "cc"):
        needs(program)
    yield choose("auto", os.environ)
    close_all()


def test_only_the_reference_answer_is_right_where_nothing_may_be_changed(sandbox: Sandbox) -> None:
    wrong = {}
    for task in (task for task in TASKS if not task.check):
        answer = task.text("reference.md")
        given = [("", answer), (task.text("wrong.patch"), answer), ("", QUESTION), ("", GAVE_UP)]
        resolved = [judge(task, patch, said, sandbox).resolved for patch, said in given]
        if resolved != [True, False, False, False]:
            wrong[task.name] = resolved
    assert wrong == {}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("many", [3, pytest.param(30, marks=pytest.mark.long)])
def test_only_the_reference_solves_a_task(sandbox: Sandbox, many: int) -> None:
    wrong = {}
    for task in [task for task in TASKS if task.check][:many]:
        patches = (UNTOUCHED, task.text("reference.patch"), task.text("wrong.patch"))
        whys = [judge(task, patch, "Done.", sandbox).why for patch in patches]
        whys += [judge(task, "", said, sandbox).why for said in (QUESTION, GAVE_UP)]
        if whys != ["tests failed", "resolved", "tests failed", "asked", "no change"]:
            wrong[task.name] = whys
    assert wrong == {}


def test_only_a_question_is_right_where_asking_is_right(sandbox: Sandbox) -> None:
    (task,) = (task for task in TASKS if task.kind == "question")
    without_question = task.text("reference.md").rpartition(". ")[0] + "."

    assert judge(task, "", without_question, sandbox).why == "did not ask"


def test_no_agent_is_given_a_hidden_file() -> None:
    shown = {(task.name, path.name) for task in TASKS for path in (task.directory / "repo").rglob("*")}
    assert len(TASKS) == 30
    hidden = {(task.name, path.name) for task in TASKS for path in (task.directory / "hidden").rglob("*")}

    assert hidden
    assert shown & hidden == set()
