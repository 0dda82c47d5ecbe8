"""The demo of `fleet up --demo`: its provider and project in the default organization, and the project's repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import projects, providers
from control_plane.contract.declarations.projects import ProjectEdit, ProjectRequest
from control_plane.contract.declarations.providers import ProviderEdit, ProviderRequest
from shared.errors import Conflict, FleetFault

NAME = "demo"
"""Of the provider and of the project."""
SCRIPT = Path(__file__).with_name("demo_script.json")
MODEL = "openai/scripted"
PROMPT = "Fix slug.sh so that sh test.sh passes"
REMOVE = "fleet project rm demo --yes && fleet provider rm demo --yes"


def model_url(port: int) -> str:
    """The scripted model's base URL."""
    return f"http://127.0.0.1:{port}/v1"


def remote_of(root: Path) -> Path:
    """The demo's repository in the data directory `root`."""
    return root / "demo" / "slugs.git"


def seed(client: FleetClient, root: Path, port: int) -> None:
    """Create the repository, the provider and the project, or correct addresses that changed since the last time.

    Raises Conflict if a provider or project of this name exists that is not the demo's; nothing is created then.
    """
    provider = next((each for each in client.call(providers.LIST) if each["name"] == NAME), None)
    project = next((each for each in client.call(projects.LIST) if each["slug"] == NAME), None)
    if provider and not is_demo_provider(provider):
        raise _taken("provider")
    if project and not is_demo_project(project):
        raise _taken("project")
    remote = remote_of(root)
    remote.parent.mkdir(mode=0o700, exist_ok=True)
    create_repository(remote)
    _seed_provider(client, provider, model_url(port))
    _seed_project(client, project, remote.as_uri())


def is_demo_provider(provider: dict[str, Any]) -> bool:
    return (provider["name"], provider["model"]) == (NAME, MODEL)


def is_demo_project(project: dict[str, Any]) -> bool:
    # Not the whole URL: the data directory may have been moved.
    return project["slug"] == NAME and str(project["git_url"]).endswith("/demo/slugs.git")


def _seed_provider(client: FleetClient, known: dict[str, Any] | None, url: str) -> None:
    if known is None:
        client.call(providers.ADD, ProviderRequest(name=NAME, model=MODEL, api_base=url, no_key=True))
    elif known["api_base"] != url:
        client.call(providers.EDIT, ProviderEdit(api_base=url), name=NAME)


def _seed_project(client: FleetClient, known: dict[str, Any] | None, url: str) -> None:
    if known is None:
        request = ProjectRequest(
            slug=NAME,
            git_url=url,
            description="A small shell program whose test fails, to try the fleet with a scripted model.",
            verify=["sh test.sh"],
            provider=NAME,
        )
        client.call(projects.ADD, request)
    elif known["git_url"] != url:
        client.call(projects.EDIT, ProjectEdit(git_url=url), slug=NAME)


def _taken(kind: str) -> Conflict:
    return Conflict(
        f"another {kind} named {NAME} already exists",
        code="E-UP-DEMO",
        why=f"`fleet up --demo` adds a {kind} with this name",
        next="fleet up    or, with a separate data directory: fleet up --demo --data-dir DIRECTORY",
    )


# --- a bare repository that accepts pushes, with one commit whose test fails -----------------------

SECONDS = 30
"""Time limit of one git command."""
FILES = {
    "README.md": "# slugs\n\nTurns titles into slugs for addresses. `sh test.sh` runs the test.\n",
    "slug.sh": """\
#!/bin/sh
# Print the title as a slug: lower case, words joined by single dashes, none at either end.
printf '%s' "$*" | tr 'A-Z' 'a-z' | tr -c 'a-z0-9' '-'
""",
    "test.sh": """\
#!/bin/sh
# Each line: a title, and the slug that it must give.
failed=0
expect() {
    got=$(sh slug.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok    '$1' -> '$2'"
    else
        echo "FAIL  '$1' -> '$got', expected '$2'"
        failed=1
    fi
}
expect "Hello World" "hello-world"
expect "Hello,   World!" "hello-world"
expect "(What is new in 2.0?)" "what-is-new-in-2-0"
exit $failed
""",
}
_COMMIT = """\
commit refs/heads/main
committer Dronefleet demo <demo@example.org> 1700000000 +0000
data <<END
Turn titles into slugs
END
"""


def create_repository(remote: Path) -> None:
    """Create the bare repository; do nothing if it exists.

    The user's own git configuration is not read, because it may sign commits or add hooks. Raises FleetFault with
    git's words if git fails; nothing is left at `remote` then.
    """
    if remote.exists():
        return
    draft = remote.with_name(f".{remote.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        _git("init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(draft))
        _git("-C", str(draft), "fast-import", "--quiet", commands=_COMMIT + "".join(map(_file, FILES)))
        draft.rename(remote)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _file(name: str) -> str:
    content = FILES[name]
    return f"M 100644 inline {name}\ndata {len(content.encode())}\n{content}\n"


def _git(*arguments: str, commands: str = "") -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run(
            ["git", *arguments],
            input=commands,
            capture_output=True,
            text=True,
            env=environment,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(str(error)) from error
    if done.returncode != 0:
        raise _failed(done.stderr.strip())


def _failed(why: str) -> FleetFault:
    return FleetFault("the demo's repository could not be created", code="E-UP-DEMO", why=why, next="git --version")
