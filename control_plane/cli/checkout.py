"""Gets a session's last work into a user's repository: fetched from the remote, else from a bundle.

git itself ensures that nothing is overwritten: no command here is forced.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.errors import Conflict, Invalid, NotFound

Doc = dict[str, Any]
SECONDS = 600
"""Time limit of one git command."""


@dataclass(frozen=True)
class Checkout:
    """A user's repository, and the work to get into it."""

    directory: Path
    head: Doc
    """`session_documents.HeadDocument`."""
    fetch_bundle: Callable[[], bytes]

    def run(self) -> str:
        """Check the branch out at the work's head; returns a sentence that says what was done.

        Raises Invalid if the directory is not a git repository, Conflict if git refuses because it would lose the
        user's changes, NotFound if the commits are not available anywhere.
        """
        branch, commit = self.head["branch"], self.head["commit"]
        if self._git("rev-parse", "--show-toplevel").returncode != 0:
            raise Invalid(
                f"{self.directory} is not a git work tree",
                code="E-CHECKOUT-DIRECTORY",
                next=f"git clone {self.head['git_url']}    then: fleet session checkout … --directory DIR",
            )
        whence = self._see_to(branch, commit)
        if self._git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").returncode != 0:
            self._must("checkout", "--no-track", "-b", branch, commit)
        else:
            self._must("checkout", branch)
            self._must("merge", "--ff-only", commit)
        return f"{branch} is checked out in {self.directory} at {commit[:12]}, {whence}"

    @property
    def push_command(self) -> str:
        """How the user hands own commits back: pushed to the branch that was checked out."""
        return f"git push {shlex.quote(self._remote())} HEAD:{self.head['branch']}"

    def _see_to(self, branch: str, commit: str) -> str:
        """Get the commit into the repository; returns where it came from."""
        if self._has(commit):
            return "which already existed"
        remote = self._remote()
        if self.head["pushed"] and self._fetched(remote, f"refs/heads/{branch}") and self._has(commit):
            return f"fetched from {remote}"
        if self.head["bundle"] and self._from_bundle(remote, branch) and self._has(commit):
            return "from the bundle on the control plane"
        raise NotFound(
            f"commit {commit[:12]} is neither on {remote} nor in a bundle that fits this repository",
            code="E-CHECKOUT-COMMIT",
            next=f"fleet patch {self.head['order']} | git apply",
        )

    def _from_bundle(self, remote: str, branch: str) -> bool:
        """Fetch from the bundle; it may build on commits of the remote that are not here yet."""
        with tempfile.TemporaryDirectory(prefix="fleet-") as directory:
            bundle = Path(directory, "session.bundle")
            bundle.write_bytes(self.fetch_bundle())
            if self._git("bundle", "verify", "--quiet", str(bundle)).returncode != 0:
                self._fetched(remote)
            return self._fetched(str(bundle), f"refs/heads/{branch}")

    def _fetched(self, whence: str, *refs: str) -> bool:
        return self._git("fetch", "--quiet", "--no-tags", whence, *refs).returncode == 0

    def _has(self, commit: str) -> bool:
        return self._git("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0

    def _remote(self) -> str:
        return remote_of(self._git("remote", "-v").stdout, self.head["git_url"])

    def _must(self, *arguments: str) -> None:
        done = self._git(*arguments)
        if done.returncode != 0:
            raise Conflict(
                f"git {arguments[0]} failed in {self.directory}",
                code="E-CHECKOUT-CHANGES",
                why=" ".join(done.stderr.split())[:600],
                next=f"git -C {shlex.quote(str(self.directory))} status    then commit or stash your changes",
            )

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                ["git", "-C", str(self.directory), *arguments],
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Invalid(
                "git could not be run", code="E-CHECKOUT-DIRECTORY", why=str(error), next="install git"
            ) from error


def remote_of(listing: str, url: str) -> str:
    """The remote to fetch from, given `git remote -v`: the one with this URL, else origin, else the URL."""
    remotes = {line.split()[0]: line.split()[1] for line in listing.splitlines() if len(line.split()) > 1}
    same = [name for name, address in remotes.items() if address.rstrip("/") == url.rstrip("/")]
    return same[0] if same else "origin" if "origin" in remotes else url


def commands(head: Doc) -> list[str]:
    """The commands that a user would type in a clone of the project."""
    branch, commit, session = map(shlex.quote, (head["branch"], head["commit"], head["session"]))
    if head["pushed"]:
        return [f"git fetch origin {branch}", f"git checkout -b {branch} {commit}"]
    return [f"fleet session checkout {session} --directory ."]
