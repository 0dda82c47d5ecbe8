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
from tests.support.repositories import commit_files, git


@pytest.fixture
def object_format() -> str:
    return "sha1"


@pytest.fixture
def repository(object_format: str, tmp_path: Path) -> Path:
    """A work tree with one commit: a file, a link, a directory and a file with a magic name."""
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", f"--object-format={object_format}")
    (work / "link").symlink_to("docs/guide.md")
    commit_files(work, {"docs/guide.md": "Read me.\n", ":(top)AGENTS.md": "Odd.\n"})
    return work


def opened(repository: Path) -> History:
    return History(Git(git_environment(repository / "config", os.environ), repository / ".git"))


@pytest.fixture
def incompressible(repository: Path) -> str:
    """The commit of a file of which hardly anything can be packed."""
    (repository / "docs" / "guide.md").write_bytes(random.Random(1).randbytes(2000))
    return commit_files(repository, {})


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


@pytest.mark.parametrize("how", ["missing", "empty", "cut short"])
def test_what_cannot_be_read_fails_and_is_not_said_to_be_absent(
    repository: Path, incompressible: str, how: str, tmp_path: Path
) -> None:
    commit = incompressible
    asks: dict[str, Callable[[History], object]] = {
        "file": lambda history: history.file(commit, "docs/guide.md", 100),
        "export": lambda history: history.export(commit, "docs", tmp_path / "out", limit=10_000),
        "entry": lambda history: history.entry(commit, "docs/guide.md"),
        "absent": lambda history: history.entry(commit, "docs/absent"),
        "kind": lambda history: history.kind_and_size(name),
        "content": lambda history: history.content(name),
    }
    left_out = {"kind"} if how == "cut short" else set()
    for revision in ("HEAD", "HEAD^{tree}", "HEAD:docs", "HEAD:docs/guide.md"):
        is_file = revision.endswith(".md")
        with damaged(repository, revision, how) as name, opened(repository) as history:
            for ask in asks.keys() - left_out - ({"entry", "absent"} if is_file else {"content"}):
                with pytest.raises(GitFailed):
                    asks[ask](history)
            # A commit is here only with its tree, and what is whole can be read afterwards.
            assert history.has(commit) == (revision not in {"HEAD", "HEAD^{tree}"})
            assert not is_file or history.file(commit, ":(top)AGENTS.md", 100) == b"Odd.\n"


@pytest.mark.parametrize("how", ["missing", "empty", "cut short"])
def test_neither_a_scan_for_secrets_nor_an_agents_instructions_pass_over_a_damaged_object(
    repository: Path, incompressible: str, how: str
) -> None:
    names = git(repository, "rev-list", "--objects", "--no-object-names", "HEAD").split()
    plain = Git(git_environment(repository / "config", os.environ), repository / ".git")
    with damaged(repository, "HEAD:docs/guide.md", how) as blob, opened(repository) as history:
        for count in (1, 20) if how != "cut short" else ():
            with pytest.raises(GitFailed):
                SecretScan(plain, history, lambda _: False).with_secrets([blob, *names][:count])
        with pytest.raises(FleetFault) as raised:
            read_agent_instructions(DefaultBranch(plain, "main", incompressible), "docs/guide.md", "kim")
        assert raised.value.code == "E-GIT-DAMAGED"


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child.name() == "git"]


def test_its_processes_run_until_it_is_closed_are_started_again_and_ended_when_they_give_no_answer(
    history: History, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, before = git(repository, "rev-parse", "HEAD"), children()
    assert history.has(commit)
    for process in children():
        process.kill()
    assert history.file(commit, "docs/guide.md", 100) == b"Read me.\n"
    warm = [child for child in children() if child not in before]
    history.close()
    assert [child.cmdline()[1:] for child in warm if child.is_running()] == []
    assert (len(warm), children()) == (2, before)

    conversation = Git.conversation

    def stopped(self: Git, *arguments: str) -> subprocess.Popen[bytes]:
        process = conversation(self, *arguments)
        psutil.Process(process.pid).suspend()
        return process

    monkeypatch.setattr("drone.workspace.history._SECONDS", 0.2)
    monkeypatch.setattr(Git, "conversation", stopped)
    with opened(repository) as silent, pytest.raises(GitFailed, match="took too long"):
        silent.has(commit)
    assert children() == before


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_it_reads_commits_files_links_odd_names_and_folders_without_links_and_large_files(
    history: History, repository: Path, tmp_path: Path
) -> None:
    commit, tree = git(repository, "rev-parse", "HEAD"), git(repository, "rev-parse", "HEAD^{tree}")
    assert (history.has(commit), history.has(tree), history.has("1" * len(commit))) == (True, False, False)
    guide, link, folder = (history.entry(commit, path) for path in ("docs/guide.md", "link", "docs"))
    assert isinstance(guide, Entry)
    assert isinstance(link, Entry)
    assert isinstance(folder, Entry)
    assert (guide.is_plain_file, guide.size, history.content(guide.blob)) == (True, 9, b"Read me.\n")
    assert (link.is_link, link.is_plain_file, folder.is_plain_file) == (True, False, False)
    assert history.file(commit, ":(top)AGENTS.md", 100) == b"Odd.\n"
    assert (history.entry(commit, "missing"), history.entry(commit, "docs/guide.md/below")) == (None, None)
    assert (history.kind_and_size(tree)[0], history.kind_and_size(guide.blob)) == ("tree", ("blob", 9))
    (repository / "docs" / "link").symlink_to("/etc/passwd")
    # Also a commit that was made after it was opened.
    later = commit_files(repository, {"docs/large": "x" * 1000})
    assert history.has(later)
    assert history.file(commit, "missing", 100) is None
    with pytest.raises(ValueError, match=r"^is a link"):
        history.file(commit, "link", 100)
    assert sorted(history.export(later, "docs", tmp_path / "out", limit=100)) == ["docs/large", "docs/link"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["guide.md"]


def test_its_processes_get_the_drones_environment_alone(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    foreign = {"GIT_CONFIG_COUNT": "0", "GIT_TRACE": str(tmp_path / "trace"), "GIT_CEILING_DIRECTORIES": "/"}
    for name, value in foreign.items():
        monkeypatch.setenv(name, value)
    with opened(repository) as history:
        # Both have answered then: a process that is only just being started shows no environment yet.
        assert history.file(commit, "docs/guide.md", 100) == b"Read me.\n"
        environments = [child.environ() for child in children()]
    assert len(environments) == 2
    assert [name for each in environments for name in each if name in foreign] == []
    assert {each["GIT_TERMINAL_PROMPT"] for each in environments} == {"0"}
    assert not (tmp_path / "trace").exists()
