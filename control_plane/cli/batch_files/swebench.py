"""SWE-bench: a project for each repository of a data set, and predictions for its evaluation (M-042, M-052)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.errors import Conflict, Invalid
from shared.terminal.text_file import text_of

if TYPE_CHECKING:
    from control_plane.contract.client.fleet import FleetClient

Doc = dict[str, Any]


def read_repositories(file: str) -> dict[str, str]:
    """The map of repositories: `owner/name` to a URL, or to a path beside the map. Raises NotFound and Invalid."""
    try:
        content = json.loads(text_of(file))
    except (ValueError, RecursionError) as error:
        raise _no_map(file, str(error)[:200]) from None
    if not isinstance(content, dict) or not all(isinstance(each, str) and each.strip() for each in content.values()):
        raise _no_map(file, "it must be an object of texts")
    return {name: _address(each.strip(), Path(file).expanduser().absolute().parent) for name, each in content.items()}


def _address(written: str, beside: Path) -> str:
    """A URL as it is; a path as an absolute one."""
    is_url = "://" in written or re.match(r"[A-Za-z0-9_.-]+@[^/]+:", written) is not None
    return written if is_url else str((beside / Path(written).expanduser()).resolve())


def _no_map(file: str, why: str) -> Invalid:
    return Invalid(
        f"{file} is no map of repositories",
        code="E-BATCH-REPOS",
        why=why,
        next='write {"owner/name": "https://host/owner/name.git", …}',
    )


def slugs_of(projects: Iterable[Doc], repositories: Mapping[str, str]) -> dict[str, str]:
    """The project of each repository: the one with its URL, else the one that `add_missing` adds.

    Raises Conflict if the name of a project to add is taken by another repository.
    """
    by_url = {_comparable(each["git_url"]): str(each["slug"]) for each in projects}
    taken = set(by_url.values())
    found: dict[str, str] = {}
    for name, url in repositories.items():
        slug = by_url.get(_comparable(url))
        if slug is None:
            slug = slug_of(name)
            if slug in taken or slug in found.values():
                raise Conflict(
                    f"project {slug} has another repository than {name}",
                    code="E-BATCH-REPOS",
                    next=f"fleet project show {slug}    then correct the map, or remove that project",
                )
        found[name] = slug
    return found


def add_missing(fleet: FleetClient, repositories: Mapping[str, str], slugs: Mapping[str, str], names: set[str]) -> None:
    """Add the projects of these repositories that do not exist. Requires the admin role. Raises the refusals."""
    from control_plane.contract.declarations.projects import ADD, LIST, ProjectRequest

    there = {each["slug"] for each in fleet.call(LIST)}
    for name in sorted(names):
        if slugs[name] not in there:
            fleet.call(ADD, ProjectRequest(slug=slugs[name], git_url=repositories[name], name=name[:128]))


def slug_of(repository: str) -> str:
    """`scikit-learn/scikit-learn` as the name of a project: `scikit-learn__scikit-learn`."""
    return re.sub(r"[^a-z0-9._-]+", "-", repository.lower().replace("/", "__")).strip("._-")[:64]


def _comparable(url: str) -> str:
    return url.removeprefix("file://").rstrip("/").removesuffix(".git")


def predictions(rows: Sequence[Doc]) -> Doc:
    """The ended rows as SWE-bench's evaluation reads them, by instance id."""
    return {
        row["id"]: {
            "model_name_or_path": row["model"] or "none",
            "instance_id": row["id"],
            "model_patch": row["patch"] or "",
        }
        for row in rows
        if row["state"] in {"succeeded", "failed", "canceled", "refused"}
    }
