"""The demo's provider and project in the default organization."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from control_plane.client.fleet import FleetClient
from control_plane.declarations import projects, providers
from control_plane.declarations.projects import ProjectEdit, ProjectRequest
from control_plane.declarations.providers import ProviderEdit, ProviderRequest
from control_plane.embedded.demo.repository import create
from shared.errors import Conflict

NAME = "demo"
"""Of the provider and of the project."""
SCRIPT = Path(__file__).with_name("script.json")
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
    create(remote)
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
