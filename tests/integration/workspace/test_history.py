"""Commits and single files of the drone's own repositories: one warm repository, and no process that stays."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

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


@pytest.fixture
def object_format() -> str:
    return "sha1"


@pytest.fixture
def repository(object_format: str, tmp_path: Path) -> Path:
    """A work tree with one commit: a file, a link, a directory and a file with a magic name."""
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", f"--object-format={object_format}")
    (work / "docs").mkdir()
    (work / "docs" / "guide.md").write_text("Read me.\n")
    (work / ":(top)AGENTS.md").write_text("Odd.\n")
    (work / "link").symlink_to("docs/guide.md")
    git(work, "add", "--all")
    git(work, "commit", "-q", "-m", "First")
    return work


def opened(repository: Path) -> History:
    return History(Git(git_environment(repository / "config", os.environ), repository / ".git"))


@pytest.fixture
def incompressible(repository: Path) -> str:
    """The commit of a file of which hardly anything can be packed."""
    (repository / "docs" / "guide.md").write_bytes(random.Random(1).randbytes(2000))
    git(repository, "add", "--all")
    git(repository, "commit", "-q", "-m", "Second")
    return git(repository, "rev-parse", "HEAD")


HOW = ("missing", "empty", "cut short")


@contextmanager
def damaged(repository: Path, revision: str, how: str) -> Iterator[str]:
    """Does to an object what a power cut does, and undoes it; yields its id."""
    name = git(repository, "rev-parse", revision)
    file = repository / ".git" / "objects" / name[:2] / name[2:]
    whole = file.read_bytes()
    file.unlink()
    if how != "missing":
        file.write_bytes(b"" if how == "empty" else whole[: len(whole) // 2])
    yield name
    file.write_bytes(whole)


@pytest.fixture
def history(repository: Path) -> Iterator[History]:
    with opened(repository) as found:
        yield found


def test_neither_a_scan_for_secrets_nor_an_agents_instructions_pass_over_a_damaged_object(
    repository: Path, incompressible: str
) -> None:
    names = git(repository, "rev-list", "--objects", "--no-object-names", "HEAD").split()
    plain = Git(git_environment(repository / "config", os.environ), repository / ".git")
    for how in HOW:
        with damaged(repository, "HEAD:docs/guide.md", how) as blob, opened(repository) as history:
            for count in (1, 20) if how != "cut short" else ():
                with pytest.raises(GitFailed):
                    SecretScan(plain, history, lambda _: False).with_secrets([blob, *names][:count])
            with pytest.raises(FleetFault) as raised:
                read_agent_instructions(DefaultBranch(plain, "main", incompressible), "docs/guide.md", "kim")
            assert raised.value.code == "E-GIT-DAMAGED"


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("revision", ["HEAD", "HEAD^{tree}", "HEAD:docs", "HEAD:docs/guide.md"])
def test_what_cannot_be_read_fails_and_is_not_said_to_be_absent(
    repository: Path, incompressible: str, how: str, revision: str, tmp_path: Path
) -> None:
    commit, is_file = incompressible, revision.endswith(".md")
    asks: dict[str, Callable[[History], object]] = {
        "file": lambda history: history.file(commit, "docs/guide.md", 100),
        "export": lambda history: history.export(commit, "docs", tmp_path / "out", limit=10_000),
    }
    with damaged(repository, revision, how) as name, opened(repository) as history:
        if is_file:
            asks["content"] = lambda history: history.content(name)
        else:
            asks["entry"] = lambda history: history.entry(commit, "docs/guide.md")
            asks["absent"] = lambda history: history.entry(commit, "docs/absent")
        if how != "cut short":
            asks["kind"] = lambda history: history.kind_and_size(name)
        for ask in asks.values():
            with pytest.raises(GitFailed):
                ask(history)
        # A commit is here only with its tree, and what is whole can be read afterwards.
        assert history.has(commit) == (revision not in {"HEAD", "HEAD^{tree}"})
        assert not is_file or history.file(commit, ":(top)AGENTS.md", 100) == "Odd.\n"


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child.name() == "git"]


def test_its_processes_run_until_it_is_closed_and_are_started_again_if_they_were_killed(
    history: History, repository: Path
) -> None:
    commit, before = git(repository, "rev-parse", "HEAD"), children()
    assert history.has(commit)
    for process in children():
        process.kill()
    assert history.file(commit, "docs/guide.md", 100) == "Read me.\n"
    warm = [child for child in children() if child not in before]
    history.close()
    assert [child.cmdline()[1:] for child in warm if child.is_running()] == []
    assert len(warm) == 2
    assert children() == before


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
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
    names = [git(repository, "rev-parse", revision) for revision in ("HEAD^{tree}", "HEAD:docs/guide.md")]
    kinds, sizes = zip(*map(history.kind_and_size, names), strict=True)
    assert (kinds, sizes[1]) == (("tree", "blob"), 9)


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


def test_its_processes_get_the_drones_environment_alone(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    foreign = {"GIT_CONFIG_COUNT": "0", "GIT_TRACE": str(tmp_path / "trace"), "GIT_CEILING_DIRECTORIES": "/"}
    for name, value in foreign.items():
        monkeypatch.setenv(name, value)
    with opened(repository) as history:
        # Both have answered then: a process that is only just being started shows no environment yet.
        assert history.file(commit, "docs/guide.md", 100) == "Read me.\n"
        environments = [child.environ() for child in children()]
    assert len(environments) == 2
    assert [name for each in environments for name in each if name in foreign] == []
    assert {each["GIT_TERMINAL_PROMPT"] for each in environments} == {"0"}
    assert not (tmp_path / "trace").exists()
