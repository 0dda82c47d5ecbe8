"""Commits and single files of the drone's own repositories: one warm repository, and no process that stays."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from drone.workspace import DefaultBranch, git_environment, read_agent_instructions
from drone.workspace.git import Git, GitFailed
from drone.workspace.history import Entry, History
from drone.workspace.secret_scan import SecretScan
from shared.errors import FleetFault

WHO = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}


def git(directory: Path, *arguments: str) -> str:
    environment = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "-C", str(directory), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(params=["sha1", "sha256"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A work tree with one commit: a file, a link, a directory and a file with a magic name."""
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", f"--object-format={request.param}")
    (work / "docs").mkdir()
    (work / "docs" / "guide.md").write_text("Read me.\n")
    (work / ":(top)AGENTS.md").write_text("Odd.\n")
    (work / "link").symlink_to("docs/guide.md")
    git(work, "add", "--all")
    git(work, "commit", "-q", "-m", "First")
    return work


@pytest.fixture
def history(repository: Path, tmp_path: Path) -> Iterator[History]:
    with History(Git(git_environment(tmp_path / "config", os.environ), repository / ".git")) as opened:
        yield opened


@pytest.fixture(params=["missing", "empty", "cut short"])
def damage(request: pytest.FixtureRequest, repository: Path) -> Callable[[str], str]:
    """Does to an object what a power cut does; returns its id. Of the content, hardly anything can be packed."""
    (repository / "docs" / "guide.md").write_bytes(random.Random(1).randbytes(2000))
    git(repository, "add", "--all")
    git(repository, "commit", "-q", "-m", "Second")

    def damaged(revision: str) -> str:
        name = git(repository, "rev-parse", revision)
        file = repository / ".git" / "objects" / name[:2] / name[2:]
        whole = file.read_bytes()
        file.unlink()
        if request.param != "missing":
            file.write_bytes(b"" if request.param == "empty" else whole[: len(whole) // 2])
        return name

    return damaged


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child.name() == "git"]


def test_it_reads_files_links_and_odd_names(history: History, repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    guide, link, folder = (history.entry(commit, path) for path in ("docs/guide.md", "link", "docs"))
    assert isinstance(guide, Entry)
    assert isinstance(link, Entry)
    assert isinstance(folder, Entry)
    assert (guide.is_plain_file, guide.size, history.content(guide.blob)) == (True, 9, b"Read me.\n")
    assert (link.is_link, link.is_plain_file, folder.is_plain_file) == (True, False, False)
    assert history.file(commit, ":(top)AGENTS.md", 100) == "Odd.\n"
    assert (history.entry(commit, "missing"), history.entry(commit, "docs/guide.md/below")) == (None, None)


def test_a_file_that_is_not_there_starts_no_process_more_than_one_that_is(
    history: History, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run looks for several files that most repositories do not have."""
    commit = git(repository, "rev-parse", "HEAD").strip()
    assert history.entry(commit, "docs/guide.md") is not None
    started: list[object] = []

    class Counted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            started.append(arguments)
            super().__init__(*arguments, **settings)

    monkeypatch.setattr(subprocess, "Popen", Counted)

    def processes(path: str) -> int:
        before = len(started)
        history.entry(commit, path)
        return len(started) - before

    assert processes("AGENTS.md") == processes("docs/guide.md") <= 1


def test_it_knows_commits_and_those_that_are_made_after_it_was_opened(history: History, repository: Path) -> None:
    first, tree = git(repository, "rev-parse", "HEAD"), git(repository, "rev-parse", "HEAD^{tree}")
    assert history.has(first)
    assert not history.has(tree)
    assert not history.has("1" * len(first))
    git(repository, "commit", "-q", "--allow-empty", "-m", "Second")
    assert history.has(git(repository, "rev-parse", "HEAD"))


def test_a_folder_is_exported_without_links_and_large_files(repository: Path, history: History, tmp_path: Path) -> None:
    (repository / "docs" / "large").write_text("x" * 1000)
    (repository / "docs" / "link").symlink_to("/etc/passwd")
    git(repository, "add", "--all")
    git(repository, "commit", "-q", "-m", "Second")
    history.export(git(repository, "rev-parse", "HEAD"), "docs", tmp_path / "out", limit=100)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["guide.md"]


@pytest.mark.parametrize("revision", ["HEAD", "HEAD^{tree}"])
def test_a_damaged_commit_or_tree_is_no_commit_that_is_here(
    history: History, repository: Path, damage: Callable[[str], str], revision: str
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    damage(revision)
    assert not history.has(commit)


@pytest.mark.parametrize("revision", ["HEAD", "HEAD^{tree}", "HEAD:docs", "HEAD:docs/guide.md"])
def test_a_file_that_cannot_be_read_fails_and_is_not_said_to_be_absent(
    history: History, repository: Path, damage: Callable[[str], str], revision: str, tmp_path: Path
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    damage(revision)
    with pytest.raises(GitFailed):
        history.file(commit, "docs/guide.md", 100)
    with pytest.raises(GitFailed):
        history.export(commit, "docs", tmp_path / "out", limit=10_000)


@pytest.mark.parametrize("revision", ["HEAD", "HEAD^{tree}", "HEAD:docs"])
def test_an_entry_below_a_damaged_object_fails(
    history: History, repository: Path, damage: Callable[[str], str], revision: str
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    damage(revision)
    with pytest.raises(GitFailed):
        history.entry(commit, "docs/guide.md")
    with pytest.raises(GitFailed):
        history.entry(commit, "docs/absent")


def test_the_content_of_a_damaged_file_is_not_cut_short(history: History, damage: Callable[[str], str]) -> None:
    blob = damage("HEAD:docs/guide.md")
    with pytest.raises(GitFailed):
        history.content(blob)


@pytest.mark.parametrize("damage", ["missing", "empty"], indirect=True)
@pytest.mark.parametrize("revision", ["HEAD", "HEAD^{tree}", "HEAD:docs/guide.md"])
def test_the_kind_of_an_unreadable_object_fails(history: History, damage: Callable[[str], str], revision: str) -> None:
    with pytest.raises(GitFailed):
        history.kind_and_size(damage(revision))


def test_it_reads_on_after_a_damaged_object(history: History, repository: Path, damage: Callable[[str], str]) -> None:
    blob = damage("HEAD:docs/guide.md")
    with pytest.raises(GitFailed):
        history.content(blob)
    assert history.file(git(repository, "rev-parse", "HEAD"), ":(top)AGENTS.md", 100) == "Odd.\n"


def test_an_object_has_a_kind_and_a_size(history: History, repository: Path) -> None:
    names = [git(repository, "rev-parse", revision) for revision in ("HEAD^{tree}", "HEAD:docs/guide.md")]
    kinds, sizes = zip(*map(history.kind_and_size, names), strict=True)
    assert (kinds, sizes[1]) == (("tree", "blob"), 9)


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("damage", ["missing", "empty"], indirect=True)
def test_a_scan_for_secrets_fails_at_a_damaged_object(
    history: History, repository: Path, damage: Callable[[str], str], tmp_path: Path, count: int
) -> None:
    names = git(repository, "rev-list", "--objects", "--no-object-names", "HEAD").split()
    scan = SecretScan(
        Git(git_environment(tmp_path / "config", os.environ), repository / ".git"), history, lambda _: False
    )
    blob = damage("HEAD:docs/guide.md")
    with pytest.raises(GitFailed):
        scan.with_secrets([blob, *names][:count])


@pytest.mark.parametrize("repository", ["sha1"], indirect=True)
@pytest.mark.parametrize("damage", ["cut short"], indirect=True)
def test_what_an_agent_is_told_is_never_read_from_a_damaged_mirror(
    repository: Path, damage: Callable[[str], str], tmp_path: Path
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    damage("HEAD:docs/guide.md")
    branch = DefaultBranch(Git(git_environment(tmp_path / "config", os.environ), repository / ".git"), "main", commit)
    with pytest.raises(FleetFault) as raised:
        read_agent_instructions(branch, "docs/guide.md", "kim")
    assert raised.value.code == "E-GIT-DAMAGED"


@pytest.mark.parametrize("repository", ["sha1"], indirect=True)
def test_its_processes_run_until_it_is_closed(history: History, repository: Path) -> None:
    before = children()
    history.has(git(repository, "rev-parse", "HEAD"))
    warm = [child for child in children() if child not in before]
    history.close()
    assert [child.cmdline()[1:] for child in warm if child.is_running()] == []
    assert len(warm) == 2
    assert children() == before


@pytest.mark.parametrize("repository", ["sha1"], indirect=True)
def test_processes_that_were_killed_are_started_again(history: History, repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert history.has(commit)
    for process in children():
        process.kill()
    assert history.file(commit, "docs/guide.md", 100) == "Read me.\n"


@pytest.mark.parametrize("repository", ["sha1"], indirect=True)
def test_a_git_that_gives_no_answer_is_ended(
    history: History, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drone.workspace.history._SECONDS", 0.2)
    commit = git(repository, "rev-parse", "HEAD")
    conversation = Git.conversation

    def stopped(self: Git, *arguments: str) -> subprocess.Popen[bytes]:
        process = conversation(self, *arguments)
        psutil.Process(process.pid).suspend()
        return process

    monkeypatch.setattr(Git, "conversation", stopped)
    before = children()
    with pytest.raises(GitFailed, match="took too long"):
        history.has(commit)
    assert children() == before


@pytest.mark.parametrize("repository", ["sha1"], indirect=True)
def test_its_processes_get_the_drones_environment_alone(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    foreign = {"GIT_CONFIG_COUNT": "0", "GIT_TRACE": str(tmp_path / "trace"), "GIT_CEILING_DIRECTORIES": "/"}
    for name, value in foreign.items():
        monkeypatch.setenv(name, value)
    with History(Git(git_environment(tmp_path / "config", os.environ), repository / ".git")) as history:
        # Both have answered then: a process that is only just being started shows no environment yet.
        assert history.file(commit, "docs/guide.md", 100) == "Read me.\n"
        environments = [child.environ() for child in children()]
    assert len(environments) == 2
    assert [name for each in environments for name in each if name in foreign] == []
    assert {each["GIT_TERMINAL_PROMPT"] for each in environments} == {"0"}
    assert not (tmp_path / "trace").exists()
