"""Whether an attempt is right: the hidden tests decide, or the answer where nothing may be changed."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError

from drone.sandbox import CommandSpec, Sandbox
from shared.closing_question import closes_with_question
from tests.eval.task import EvalTask, git

CHECK_SECONDS = 120


@dataclass(frozen=True)
class Verdict:
    """`why` is a short text for the table of tasks."""

    resolved: bool
    why: str


def judge(task: EvalTask, patch: str, answer: str, sandbox: Sandbox) -> Verdict:
    """Judge what an agent left behind: the patch against the task's commit, and its last words.

    Raises RuntimeError if the hidden tests could not be run, which says nothing about the work.
    """
    if task.kind in {"question", "stop"}:
        return _judged_answer(task, patch, answer)
    if not patch.strip():
        return Verdict(False, "asked" if closes_with_question(answer) else "no change")
    with tempfile.TemporaryDirectory(prefix="eval-") as directory:
        return _judged_work(task, patch, Path(directory, "work"), sandbox)


def _judged_answer(task: EvalTask, patch: str, answer: str) -> Verdict:
    if patch.strip():
        return Verdict(False, "changed files")
    if task.kind == "question" and not closes_with_question(answer):
        return Verdict(False, "did not ask")
    missing = [word for word in task.words if not re.search(word, answer, re.IGNORECASE)]
    if missing:
        return Verdict(False, "did not name the reason")
    return Verdict(True, "asked" if task.kind == "question" else "stopped")


def _judged_work(task: EvalTask, patch: str, work: Path, sandbox: Sandbox) -> Verdict:
    task.make_repository(work)
    try:
        git(work, "apply", "--whitespace=nowarn", "-", given=patch.encode(errors="surrogateescape"))
    except CalledProcessError:
        return Verdict(False, "patch does not apply")
    task.add_hidden_files(work)
    # An agent's code must not reach more than its commands could.
    result = sandbox.run(CommandSpec(task.check, workspace=work, timeout=CHECK_SECONDS))
    if result.lost:
        raise RuntimeError(f"{task.name}: the hidden tests were not run to their end: {result.lost}")
    if result.return_code == 0:
        return Verdict(True, "resolved")
    return Verdict(False, "tests timed out" if result.timed_out else "tests failed")
