"""What the drone takes over from its owner's git configuration, and what it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from drone.local.order import local_source
from drone.workspace import copy_owner_config, git_environment
from drone.workspace.git import Git
from shared.errors import FleetFault, NotFound, Precondition
from tests.support.repositories import bare_remote, git, work_tree

OWNERS = """\
[user]
    name = "Ada \\"the first\\" Ö"
    email = ada@example.org
[credential]
    helper = store --file ~/x
    helper = "!f() { echo \\"a\\\\b\\"; }; f"
[credential "https://example.org/a b"]
    username = ada
[url "ssh://git@example.org/"]
    insteadOf = https://example.org/
    pushInsteadOf = http://example.org/
[http]
    sslVerify
    proxy = http://proxy:3128
[http "https://example.org"]
    extraHeader = X: 1
[core]
    sshCommand = ssh -i ~/key
    hooksPath = /owners/hooks
    fsmonitor = /owners/program
    pager = less
[alias]
    x = !echo
[filter "lfs"]
    clean = git-lfs clean -- %f
[includeIf "gitdir:/"]
    path = other
[include]
    path = more
"""


def settings(config: Path) -> list[str]:
    """All settings in a file, as git itself reads them."""
    command = ["git", "config", "--file", config, "--list", "--null"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [entry.replace("\n", "=", 1) for entry in listing.split("\0") if entry]


def test_what_fetches_and_pushes_need_is_copied_word_for_word_and_no_program(
    owner_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nor anything from a repository around the current directory.
    around = work_tree(tmp_path / "around")
    git(around, "config", "core.gitProxy", "sprung")
    (owner_home / "around").write_text("[core]\n\tgitProxy = sprung\n")
    (owner_home / "more").write_text(f'[user]\n\tsigningkey = ABC\n[includeIf "gitdir:{around}/"]\n\tpath = around\n')
    (owner_home / ".gitconfig").write_text(OWNERS)
    monkeypatch.chdir(around)
    copy_owner_config(tmp_path / "drone" / "gitconfig", os.environ)
    copied = settings(tmp_path / "drone" / "gitconfig")
    assert {
        'user.name=Ada "the first" Ö',
        "user.email=ada@example.org",
        "user.signingkey=ABC",
        "credential.https://example.org/a b.username=ada",
        "url.ssh://git@example.org/.insteadof=https://example.org/",
        "url.ssh://git@example.org/.pushinsteadof=http://example.org/",
        "http.sslverify",
        "http.proxy=http://proxy:3128",
        "http.https://example.org.extraheader=X: 1",
        "core.sshcommand=ssh -i ~/key",
    } <= set(copied)
    helpers = [text for text in copied if text.startswith("credential.helper=")]
    assert helpers == ["credential.helper=store --file ~/x", 'credential.helper=!f() { echo "a\\b"; }; f']
    names = {text.partition("=")[0] for text in copied}
    assert "core.fsmonitor=false" in copied
    left_out = {"core.hookspath", "core.pager", "core.gitproxy", "alias.x", "filter.lfs.clean", "include.path"}
    assert not left_out & names


def test_an_owner_may_have_no_configuration_and_a_broken_one_or_a_missing_git_is_named(
    owner_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (owner_home / ".gitconfig").unlink()
    # A git that speaks the owner's language, on machines whose own git has no translations, too.
    translated = '[ "$LC_ALL" = C ] || { echo "Datei oder Verzeichnis nicht gefunden" >&2; exit 128; }'
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n{translated}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    german = {**os.environ, "PATH": str(program.parent), "LC_ALL": "de_DE.UTF-8"}
    assert copy_owner_config(tmp_path / "gitconfig", german) == 0
    assert "gc.auto=0" in settings(tmp_path / "gitconfig")
    assert (tmp_path / "gitconfig").stat().st_mode & 0o777 == 0o600
    (owner_home / ".gitconfig").write_text("[broken\n")
    with pytest.raises(Precondition) as refused:
        copy_owner_config(tmp_path / "gitconfig", os.environ)
    assert ".gitconfig" in refused.value.why
    monkeypatch.setenv("PATH", str(tmp_path))
    for ask in (lambda: copy_owner_config(tmp_path / "gitconfig", os.environ), lambda: local_source(str(tmp_path))):
        with pytest.raises(Precondition, match="git is not installed"):
            ask()
    with pytest.raises(FleetFault, match="git is not installed"):
        Git({"PATH": str(tmp_path)}).text("version")


def test_a_source_is_a_url_a_bare_repository_or_any_directory_of_a_work_tree(owner_home: Path, tmp_path: Path) -> None:
    source = work_tree(tmp_path / "my project", {"sub/file": "x"})
    for url in ("https://example.org/x.git", "ssh://git@example.org/x", "git@example.org:x.git"):
        assert local_source(url).url == url
    assert local_source(str(bare_remote(tmp_path / "x.git"))).url == str(tmp_path / "x.git")
    assert (local_source(str(source / "sub")).url, local_source(str(source)).notice) == (str(source), "")
    for name in ("nothing-there", "."):
        with pytest.raises(NotFound, match="no git repository at"):
            local_source(str(tmp_path / name))
    # Changes that are not committed are pointed out, and the work tree stays untouched.
    (source / "sub" / "file").write_text("2")
    (source / "b").write_text("3")
    before = (source / ".git" / "index").stat().st_mtime_ns
    assert local_source(str(source)).notice.startswith(f"2 files in {source} with uncommitted changes")
    assert (source / ".git" / "index").stat().st_mtime_ns == before


def test_the_drones_git_runs_with_its_own_configuration_and_asks_nobody(owner_home: Path, tmp_path: Path) -> None:
    source = {"PATH": "/bin:/usr/bin", "GIT_DIR": "/x", "GIT_SSH_COMMAND": "y", "SSH_ASKPASS": "z", "DISPLAY": ":0"}
    # Another program than ssh is left as the owner wrote it.
    for command, ours in (("ssh -i key", "ssh -i key -o BatchMode=yes"), ("plink -batch", "plink -batch")):
        (owner_home / ".gitconfig").write_text(f'[core]\n\tsshCommand = "{command}"\n')
        copy_owner_config(tmp_path / "gitconfig", os.environ)
        environment = git_environment(tmp_path / "gitconfig", source)
        assert not {"GIT_DIR", "SSH_ASKPASS", "DISPLAY"} & environment.keys()
        assert environment["GIT_TERMINAL_PROMPT"] == "0"
        assert environment["GIT_SSH_COMMAND"].startswith(ours)
        assert "file" not in environment["GIT_ALLOW_PROTOCOL"]


def test_a_repository_that_git_does_not_read_is_told_apart_from_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, future, bare, linked = (work_tree(tmp_path / name) for name in ("broken", "future", "bare", "linked"))
    (broken / ".git/config").write_text("[core\n")
    git(future, "config", "core.repositoryformatversion", "9")
    (linked / ".git/HEAD").unlink()
    (tmp_path / "empty").mkdir()
    wrong = {}
    for path, code in (
        (broken, "E-GIT-UNREADABLE"),
        (future, "E-GIT-UNREADABLE"),
        (linked, "E-GIT-NOT-FOUND"),
        (tmp_path / "empty", "E-GIT-NOT-FOUND"),
        (tmp_path / "nowhere", "E-GIT-NOT-FOUND"),
    ):
        with pytest.raises((NotFound, Precondition)) as refused:
            local_source(str(path))
        if (refused.value.code, "init" in refused.value.next) != (code, code == "E-GIT-NOT-FOUND"):
            wrong[path.name] = (refused.value.code, refused.value.why, refused.value.next)
    assert wrong == {}

    # As for a repository of another user; git's own tests do the same.
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    (bare / "sub").mkdir()
    for path in (bare, bare / "sub", bare / ".git", bare_remote(tmp_path / "remote.git")):
        with pytest.raises(Precondition) as refused:
            local_source(str(path))
        assert refused.value.code == "E-GIT-OWNER"
        assert refused.value.next.startswith("git config --global --add safe.directory ")
