"""`fleet project add|ls|show|edit|rm`: the repositories that work is done on."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.connection import Org, client
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, confirmed, examples, group, print_json, print_table, put, say

PANEL = "Set-up"
Doc = dict[str, Any]
Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The project's short name.")]
GitUrl = Annotated[str | None, typer.Option("--git-url", help="https, ssh or file URL of the repository.")]
Branch = Annotated[str | None, typer.Option("--branch", help="Where work starts; default: the remote's own.")]
Setup = Annotated[list[str] | None, typer.Option("--setup", help="Command to run before the model starts; repeats.")]
Verify = Annotated[list[str] | None, typer.Option("--verify", help="Command that must pass at the end; repeats.")]
ProviderOption = Annotated[str | None, typer.Option("--provider", help="The provider that its orders use.")]
Budget = Annotated[str | None, typer.Option("--budget", metavar="USD/day", help="The most it may spend in a day.")]
PullRequests = Annotated[
    str | None,
    typer.Option(
        "--pull-requests",
        metavar="never|ready|open",
        help="For each order that was pushed: nothing, title and text to paste, or a pull request.",
    ),
]
Trailers = Annotated[
    list[str] | None,
    typer.Option(
        "--trailer",
        metavar="Assisted-by|Fleet-Order",
        help="What commits and pull requests say of their origin; repeats; default: Fleet-Order.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("project", "Say which repositories work is done on.")
    commands.command("add", epilog=examples("fleet project add shop --git-url git@example.org:shop.git"))(add)
    commands.command("ls", epilog=examples("fleet project ls"))(list_)
    commands.command("show", epilog=examples("fleet project show SLUG"))(show)
    commands.command("edit", epilog=examples("fleet project edit SLUG --branch develop"))(edit)
    commands.command("rm", epilog=examples("fleet project rm SLUG"))(remove)
    app.add_typer(commands, rich_help_panel=PANEL)


def add(
    slug: Slug,
    git_url: GitUrl = None,
    name: Annotated[str | None, typer.Option("--name", help="A name for people; default: the slug.")] = None,
    branch: Branch = None,
    setup: Setup = None,
    verify: Verify = None,
    provider: ProviderOption = None,
    budget: Budget = None,
    pull_requests: PullRequests = None,
    trailer: Trailers = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Add a project. A password in the URL is sealed on arrival and never shown again."""
    if git_url is None:
        raise Invalid("--git-url is missing", code="E-USAGE", next=f"fleet project add {slug} --git-url URL")
    request = {
        "slug": slug,
        "git_url": git_url,
        "name": name,
        "branch": branch,
        "setup": setup or [],
        "verify": verify or [],
        "provider": provider,
        "budget_usd_day": _budget(budget),
        "pull_requests": pull_requests or "never",
        "trailers": trailer or [],
    }
    _tell(client(org).add_project(request), as_json=as_json)


def list_(as_json: JsonFlag = False, org: Org = None) -> None:
    """List the projects."""
    found = client(org).list_projects()
    if as_json:
        print_json(found)
        return
    rows = [(p["slug"], p["git_url"], p["branch"], p["provider"]) for p in found]
    print_table(("PROJECT", "GIT URL", "BRANCH", "PROVIDER"), rows, empty="no projects; fleet project add makes one")


def show(slug: Slug, as_json: JsonFlag = False, org: Org = None) -> None:
    """Show a project."""
    _tell(client(org).show_project(slug), as_json=as_json)


def edit(
    slug: Slug,
    git_url: GitUrl = None,
    name: Annotated[str | None, typer.Option("--name", help="A name for people.")] = None,
    branch: Branch = None,
    setup: Setup = None,
    verify: Verify = None,
    provider: ProviderOption = None,
    budget: Budget = None,
    pull_requests: PullRequests = None,
    trailer: Trailers = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Change a project; only what is named changes."""
    changes: Doc = {
        "git_url": git_url,
        "name": name,
        "branch": branch,
        "setup": setup,
        "verify": verify,
        "provider": provider,
        "budget_usd_day": _budget(budget),
        "pull_requests": pull_requests,
        "trailers": trailer,
    }
    project = client(org).edit_project(slug, {key: value for key, value in changes.items() if value is not None})
    _tell(project, as_json=as_json)


def remove(
    slug: Slug,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Remove a project; its orders keep their record."""
    confirmed(f"Remove project {slug}?", yes=yes)
    project = client(org).remove_project(slug)
    if as_json:
        print_json(project)
    else:
        say(f"project {slug} is removed")


def _budget(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text.removesuffix("/day").removeprefix("$"))
    except ValueError:
        raise Invalid(f"{text[:40]!r} is not a sum in USD", code="E-BUDGET", next="--budget 5/day") from None


def _tell(project: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(project)
        return
    lines = [
        f"project   {project['slug']}  ({project['name']})",
        f"git url   {project['git_url']}",
        f"branch    {project['branch'] or 'the default of the remote'}",
        f"provider  {project['provider'] or 'the only one of the organization'}",
        *(f"setup     {command}" for command in project["setup"]),
        *(f"verify    {command}" for command in project["verify"]),
        *([f"budget    ${project['budget_usd_day']:.2f} a day"] if project["budget_usd_day"] is not None else []),
        *([f"pull requests  {project['pull_requests']}"] if project["pull_requests"] != "never" else []),
        *([f"trailers  {', '.join(project['trailers'])}"] if project["trailers"] else []),
    ]
    put("\n".join(lines) + "\n")
