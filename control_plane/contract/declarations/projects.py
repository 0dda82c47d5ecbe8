"""Projects: the git repositories that orders work on."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from control_plane.contract.declarations.checks import CHECK, CHECK_AGAIN, ProjectCheckDocument
from control_plane.contract.declarations.operation import (
    READS,
    SETS_WORK,
    About,
    ByHand,
    Command,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.contract.declarations.run_settings import LIMITS, THINKING
from control_plane.contract.documents.base import Document, Request
from control_plane.contract.documents.limits import LimitsGiven
from shared.trailers import Trailer
from shared.work_order import ThinkingLevel

PullRequests = Literal["never", "ready", "open"]
SLUG = About("project", "The project's short name.", source="projects:slug")
GIT_URL = About("git url", "https, ssh or file URL of the repository.")
NAME = About("name", "Display name.", absent="the slug")
DESCRIPTION = About(
    "description", "Contents and purpose of the repository; people and programs use it to choose a project."
)
BRANCH = About("branch", "Branch that work starts from.", absent="the remote's default branch", none="none")
SETUP = About("setup", "Command to run before the model starts.", absent="no command", none="--no-setup")
VERIFY = About("verify", "Command that must pass at the end.", absent="no command", none="--no-verify")
PROVIDER = About(
    "provider", "Provider of its orders.", absent="the only provider", source="providers:name", none="none"
)
REVIEWER = About(
    "reviewer",
    "Provider, or its model, that reviews changes before they are delivered.",
    absent="the organization's reviewer",
    source="providers:name",
    none="none",
)
BUDGET = About(
    "budget",
    "Daily budget; model calls that could exceed it are not made. `fleet budget set` sets others.",
    unit="USD/day",
    absent="no limit",
    flag="--budget",
    none="none",
)
PULL_REQUESTS = About(
    "pull requests",
    "When an order was pushed: never (do nothing), ready (prepare title and text to paste) or open (a pull request).",
)
TRAILERS = About(
    "trailers",
    "Trailer of commits and pull requests that records their origin.",
    absent="Fleet-Order",
    flag="--trailer",
    none="--no-trailers",
)


class ProjectRequest(Request):
    slug: Annotated[str, SLUG]
    git_url: Annotated[str, GIT_URL] = Field(repr=False)
    name: Annotated[str | None, NAME] = None
    description: Annotated[str, DESCRIPTION] = ""
    branch: Annotated[str | None, BRANCH] = None
    setup: Annotated[list[str], SETUP] = Field(default_factory=list)
    verify: Annotated[list[str], VERIFY] = Field(default_factory=list)
    provider: Annotated[str | None, PROVIDER] = None
    reviewer: Annotated[str | None, REVIEWER] = None
    budget_usd_day: Annotated[float | None, BUDGET] = Field(None, allow_inf_nan=False)
    pull_requests: Annotated[PullRequests, PULL_REQUESTS] = "never"
    trailers: Annotated[list[Trailer], TRAILERS] = Field(default_factory=list)
    limits: Annotated[dict[str, Any], LIMITS, LimitsGiven] = Field(default_factory=dict)
    thinking: Annotated[ThinkingLevel | None, THINKING] = None
    check: Annotated[bool, CHECK] = False


class ProjectEdit(Request):
    """Only the given fields change."""

    git_url: Annotated[str | None, GIT_URL] = Field(None, repr=False)
    name: Annotated[str | None, NAME] = None
    description: Annotated[str | None, DESCRIPTION] = None
    branch: Annotated[str | None, BRANCH] = None
    setup: Annotated[list[str] | None, SETUP] = None
    verify: Annotated[list[str] | None, VERIFY] = None
    provider: Annotated[str | None, PROVIDER] = None
    reviewer: Annotated[str | None, REVIEWER] = None
    budget_usd_day: Annotated[float | None, BUDGET] = Field(None, allow_inf_nan=False)
    pull_requests: Annotated[PullRequests | None, PULL_REQUESTS] = None
    trailers: Annotated[list[Trailer] | None, TRAILERS] = None
    limits: Annotated[dict[str, Any] | None, LIMITS, LimitsGiven] = None
    thinking: Annotated[ThinkingLevel | None, THINKING] = None
    check: Annotated[bool | None, CHECK_AGAIN] = None


class ProjectDocument(Document):
    id: str
    slug: Annotated[str, SLUG]
    name: Annotated[str, NAME]
    description: Annotated[str, DESCRIPTION]
    git_url: Annotated[str, GIT_URL]
    """Without a password."""
    branch: Annotated[str | None, BRANCH]
    setup: Annotated[list[str], SETUP]
    verify: Annotated[list[str], VERIFY]
    provider: Annotated[str | None, PROVIDER]
    reviewer: Annotated[str | None, REVIEWER]
    budget_usd_day: Annotated[float | None, BUDGET]
    pull_requests: Annotated[str, PULL_REQUESTS]
    trailers: Annotated[list[str], TRAILERS]
    limits: Annotated[dict[str, Any], LIMITS]
    thinking: Annotated[str | None, THINKING]
    check: Annotated[ProjectCheckDocument, CHECK]
    created_at: datetime


NAMES = {"slug": Annotated[str, SLUG]}
COMMANDS_RUN = NoDoor("a project's commands run on drones unchanged, so only people set them")

ADD = Operation(
    name="add_project",
    role="admin",
    route="POST /projects",
    status=201,
    errors=(404, 409),
    request=ProjectRequest,
    answer=ProjectDocument,
    summary="Add a project",
    tool=COMMANDS_RUN,
    command=Command(
        "project add",
        "Add a project. A password in the URL is sealed on arrival and never shown again.",
        "fleet project add shop --git-url git@example.org:shop.git",
        arguments=("slug",),
        defaults={"check": True},
    ),
)
LIST = Operation(
    name="list_projects",
    role="viewer",
    route="GET /projects",
    answer=list[ProjectDocument],
    summary="List projects",
    tool=Tool(
        "list_projects",
        "List projects",
        READS,
        "List the projects: the git repositories that agents work on. Other tools take a project's slug as `project`.",
    ),
    command=Command(
        "project ls",
        "List the projects.",
        "fleet project ls",
        columns=("slug", "check", "git_url", "branch", "provider"),
        empty="no projects; fleet project add creates one",
    ),
)
SHOW = Operation(
    name="show_project",
    role="viewer",
    route="GET /projects/{slug}",
    names=NAMES,
    errors=(404,),
    answer=ProjectDocument,
    summary="Show a project",
    tool=NoDoor("list_projects returns every field"),
    command=Command("project show", "Show a project.", "fleet project show SLUG"),
)
EDIT = Operation(
    name="edit_project",
    role="admin",
    route="PATCH /projects/{slug}",
    names=NAMES,
    errors=(404,),
    request=ProjectEdit,
    answer=ProjectDocument,
    summary="Change the given fields",
    tool=COMMANDS_RUN,
    command=Command(
        "project edit",
        "Change a project; only the given options change.",
        "fleet project edit SLUG --branch develop",
    ),
)
TEST = Operation(
    name="test_project",
    role="operator",
    route="POST /projects/{slug}/test",
    names=NAMES,
    errors=(404,),
    answer=ProjectDocument,
    summary="Try a project's repository and commands on a drone",
    more="It runs the set-up and verify commands in a fresh workspace. The project's `check` shows the result.",
    tool=Tool(
        "test_project",
        "Try a project",
        SETS_WORK,
        "Let a drone try a project: reach its repository, then run its set-up and verify commands in a fresh "
        "workspace. Returns the project; once its check is ok or failed, which list_projects shows, the check says "
        "whether it works, and if not, why. Requires the operator role.",
    ),
    command=ByHand("project test", "it waits for the result"),
)
REMOVE = Operation(
    name="remove_project",
    role="admin",
    route="DELETE /projects/{slug}",
    names=NAMES,
    errors=(404, 409),
    answer=ProjectDocument,
    summary="Remove a project; its orders are kept",
    tool=NoDoor("removal is left to people"),
    command=Command(
        "project rm",
        "Remove a project; its orders are kept.",
        "fleet project rm SLUG",
        confirm="Remove project {slug}?",
        done="project {slug} removed",
    ),
)
