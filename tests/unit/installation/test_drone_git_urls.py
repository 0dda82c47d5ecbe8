"""A repository URL must not lead into the drone's own directories, however it is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from drone.installation.git_urls import leads_into
from drone.installation.policy import Policy
from shared.errors import Forbidden


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The drone's workspace, with the mirror of a project."""
    (tmp_path / "drone" / "mirrors" / "abc.git").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    return tmp_path / "drone"


SPELLINGS: dict[str, Callable[[Path], str]] = {
    "path": lambda own: f"{own}/mirrors/abc.git",
    "url": lambda own: f"file://{own}/mirrors/abc.git",
    "url of localhost": lambda own: f"file://localhost{own}/mirrors/abc.git",
    "url of another host, which git ignores": lambda own: f"file://example.org{own}/mirrors/abc.git",
    "large letters": lambda own: f"FILE://{own}/mirrors/abc.git",
    "escaped": lambda own: f"file://{str(own).replace('drone', '%64rone')}/mirrors/abc%2egit",
    "without the suffix": lambda own: f"file://{own}/mirrors/abc",
    "with dots": lambda own: f"file://{own.parent}/outside/../drone/mirrors/abc.git",
    "many slashes": lambda own: f"file:////{own}//mirrors///abc.git//",
    "the directory": str,
    "a session": lambda own: f"{own}/sessions/s/work",
}


def test_every_spelling_of_an_own_directory_is_refused(own: Path) -> None:
    codes = {spelling: refusal_of(url(own), own) for spelling, url in SPELLINGS.items()}
    assert codes == dict.fromkeys(SPELLINGS, "E-POLICY-OWN")


def refusal_of(url: str, own: Path) -> str:
    with pytest.raises(Forbidden) as refusal:
        Policy(file_urls=True).check_git_url(url, None, own=(own,))
    return refusal.value.code


def test_links_and_git_files_that_lead_there_are_refused(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = own.parent / "outside"
    (outside / "link").symlink_to(own / "mirrors")
    (outside / "linked.git").symlink_to(own / "mirrors" / "abc.git")
    (outside / "worktree").mkdir()
    (outside / "worktree" / ".git").write_text("gitdir: ../../drone/mirrors/abc.git\n")
    urls = [f"file://{outside}/{name}" for name in ("link/abc.git", "linked.git", "linked", "worktree")]

    (own / "work").symlink_to(outside)
    assert [leads_into(url, [own]) for url in (*urls, f"file://{own}/work")] == [True] * 5
    # The own home may be a link itself, or be written from the owner's.
    monkeypatch.setenv("HOME", str(own.parent))
    (own.parent / "alias").symlink_to(own)
    assert leads_into("~/drone/mirrors/abc.git", [own])
    assert leads_into(f"{own}/mirrors/abc.git", [own.parent / "alias"])


def test_other_places_and_other_machines_are_not_refused(own: Path) -> None:
    (own.parent / "drone-two").mkdir()
    urls = [f"file://{own.parent}/outside", str(own.parent), f"{own.parent}/drone-two/x", "/nowhere/x.git", "a\0b"]

    assert not any(leads_into(url, [own, own.parent / "missing"]) for url in urls)
    Policy().check_git_url(f"ssh://host{own}/mirrors/abc.git", None, own=(own,))
