"""The work order of `drone run`, built only from its command line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drone.installation.policy import Policy
from drone.workspace.git import git_is_missing
from shared.clock import SystemClock
from shared.errors import Invalid, NotFound, Precondition
from shared.names import new_id
from shared.terminal.output import say
from shared.work_order import (
    OWN_PARAMS,
    Limits,
    Mode,
    OrderProject,
    OrderProvider,
    OrderSession,
    ThinkingLevel,
    WorkOrder,
)

HERE = "local"
"""Placeholder for the drone, the boot and other names that only a fleet assigns."""


@dataclass(frozen=True)
class LocalWishes:
    """Options from the command line."""

    prompt: str
    repo: str
    model: str
    api_base: str | None = None
    mode: Mode = "build"
    thinking: ThinkingLevel | None = None
    """None: the model's default."""
    max_iterations: int = 50
    cost_limit: float = 3.0
    max_run_seconds: float = 1800
    api_key_variable: str | None = None
    """None: that of the model's provider, such as OPENAI_API_KEY, if it is set and no address is given."""
    sandbox: str = "auto"
    context_window: int = 0
    """Tokens; 0: LiteLLM's value for the model."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Sent to the model unchanged: temperature, seed and so on."""


def order_of(wishes: LocalWishes, env: Mapping[str, str]) -> WorkOrder:
    """Return the order for these wishes; a repository on this machine is checked immediately.

    Raises Invalid, NotFound, Precondition or Forbidden if the run cannot begin.
    """
    if not wishes.prompt.strip():
        raise Invalid("the prompt is empty", code="E-PROMPT-EMPTY", next='drone run "Make the tests pass" --repo .')
    if not wishes.model.strip():
        raise Invalid("a model name is required", code="E-MODEL-NAME", next="--model openai/gpt-x")
    if own := sorted(OWN_PARAMS & wishes.params.keys()):
        raise Invalid(f"{', '.join(own)} cannot be given as a parameter", code="E-PARAM", next="use its own option")
    return WorkOrder(
        order_id=new_id(),
        run_id=new_id(),
        generation=1,
        drone_id=HERE,
        project=OrderProject(id=HERE, name=HERE, slug=HERE, git_url=_git_url(wishes.repo)),
        session=OrderSession(id=new_id(), name=HERE, mode=wishes.mode),
        provider=OrderProvider(
            name=HERE,
            model=wishes.model,
            api_base=wishes.api_base,
            api_key=_key(wishes, env),
            context_window=wishes.context_window,
            thinking=wishes.thinking,
            params=dict(wishes.params),
        ),
        limits=Limits(
            max_iterations=wishes.max_iterations,
            cost_limit=wishes.cost_limit,
            max_run_seconds=wishes.max_run_seconds,
        ),
        prompt=wishes.prompt,
        submitted_at=SystemClock().now(),
    )


def _key(wishes: LocalWishes, env: Mapping[str, str]) -> str | None:
    variable = wishes.api_key_variable
    if variable is None:
        provider, is_named, _ = wishes.model.partition("/")
        # Only for its provider's own address: any other would learn the key.
        is_own = is_named and not wishes.api_base and provider != "bedrock"
        return env.get(f"{provider.upper()}_API_KEY", "").strip() or None if is_own else None
    key = env.get(variable, "").strip()
    if not key:
        raise Precondition(
            f"environment variable {variable} is empty or not set", code="E-KEY-VARIABLE", next=f"export {variable}=..."
        )
    return key


def _git_url(repo: str) -> str:
    """Return the URL for git to fetch from. Raises NotFound without a repository, Forbidden for a helper program."""
    source = local_source(repo)
    Policy().check_git_url(source.url, None)
    if source.notice:
        say(f"note: {source.notice}")
    return source.url


# --- the repository on this machine: read, never written to --------------------------------------

_URL_SIGN = "://"


@dataclass(frozen=True)
class LocalSource:
    """What to fetch from, and a notice for the user."""

    url: str
    """A URL as it was given, or an absolute path."""
    notice: str = ""
    """One sentence, if the work tree has uncommitted changes, which will not be seen."""


def local_source(given: str) -> LocalSource:
    """Find the given repository: a URL, a bare repository, a work tree or a directory in one.

    Raises NotFound if there is no git repository, and Precondition if git does not read it.
    """
    if _URL_SIGN in given or _is_scp_address(given):
        return LocalSource(given)
    path = Path(given).expanduser().absolute()
    if not path.is_dir():
        raise _no_repository(path, "directory not found")
    top = _git(path, "rev-parse", "--show-toplevel")
    if top.returncode == 0 and top.stdout.strip():
        return LocalSource(top.stdout.strip(), _uncommitted(Path(top.stdout.strip())))
    bare = _git(path, "rev-parse", "--absolute-git-dir")
    if bare.returncode != 0:
        raise _unusable(path, bare.stderr.strip())
    return LocalSource(bare.stdout.strip())


def _is_scp_address(given: str) -> bool:
    """`git@host:path`, unless there is a file of that name: the same rule as git's own."""
    head, colon, _ = given.partition(":")
    return bool(colon) and "/" not in head and not Path(given).exists()


def _uncommitted(top: Path) -> str:
    status = _git(top, "status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all")
    count = len(status.stdout.splitlines())
    if not count:
        return ""
    files = "1 file" if count == 1 else f"{count} files"
    return f"{files} in {top} with uncommitted changes; the run starts from the last commit without them."


def _git(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # No optional locks: `git status` would otherwise write the index of a repository that is not ours to write to.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(path), *arguments]
    environ = {**os.environ, "LC_ALL": "C"}  # git's messages are parsed
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=120, check=False, env=environ
        )
    except FileNotFoundError as error:
        raise git_is_missing(Precondition) from error


def _unusable(path: Path, said: str) -> NotFound | Precondition:
    """The error for a directory in which git reads no repository, with what it said."""
    if "dubious ownership" in said:
        # Reading it would run the programs that its configuration names.
        return Precondition(
            f"the repository at {path} belongs to another user",
            code="E-GIT-OWNER",
            why="git does not read it unless you say that you trust its owner",
            next=said.splitlines()[-1].strip(),
        )
    first = next(iter(said.splitlines()), "not a git repository").removeprefix("fatal: ")
    if "not a git repository" in first:
        return _no_repository(path, first)
    return Precondition(
        f"git cannot read the repository at {path}", code="E-GIT-UNREADABLE", why=first, next=f"git -C {path} status"
    )


def _no_repository(path: Path, why: str) -> NotFound:
    return NotFound(
        f"no git repository at {path}",
        code="E-GIT-NOT-FOUND",
        why=why,
        next=f"git init {path}, or use another --repo",
    )
