"""The requests to GitHub, GitLab and Gitea (also Forgejo) that find, open, change and close a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from drone.services.pull_request.api import HostApi, HostRefused, Json

MOST_PAGES = 20
_PAGE = 50
MAX_ADDRESS = 2000


@dataclass(frozen=True)
class PullRequest:
    """A pull request on the host."""

    number: int
    url: str | None
    is_open: bool


@dataclass(frozen=True)
class PullRequestDraft:
    """The content of a pull request."""

    head: str
    base: str
    title: str
    body: str
    draft: bool = False


class Host(Protocol):
    """One repository on a host. Every call raises NotLetIn or HostRefused."""

    def find(self, head: str) -> PullRequest | None:
        """The open pull request from this branch, if there is one."""
        ...

    def open(self, wanted: PullRequestDraft) -> PullRequest: ...

    def change(self, number: int, wanted: PullRequestDraft) -> PullRequest:
        """Change its title and text; its branch has the pushed commits already."""
        ...

    def close(self, number: int, word: str) -> bool:
        """Close it if it is open, with a comment; return whether it was open."""
        ...


def host_for(kind: str, api: HostApi, path: str) -> Host:
    """The repository at `path` on a host of this kind: github, gitlab or gitea."""
    match kind:
        case "github":
            return GitHub(api, _parts(path))
        case "gitlab":
            return GitLab(api, quote(path, safe=""))
        case _:
            return Gitea(api, _parts(path))


@dataclass(frozen=True)
class GitHub:
    """GitHub, and GitHub Enterprise."""

    api: HostApi
    repository: str

    def find(self, head: str) -> PullRequest | None:
        owner = self.repository.partition("/")[0]
        query = f"state=open&head={owner}:{quote(head, safe='')}"
        for found in _rows(self.api.call("GET", f"repos/{self.repository}/pulls?{query}")):
            # A host that does not support the filter returns all of them.
            if _at(found, "head", "ref") == head:
                return _github(found)
        return None

    def open(self, wanted: PullRequestDraft) -> PullRequest:
        body = {"head": wanted.head, "base": wanted.base, "title": wanted.title, "body": wanted.body}
        return _github(self.api.call("POST", f"repos/{self.repository}/pulls", {**body, "draft": wanted.draft}))

    def change(self, number: int, wanted: PullRequestDraft) -> PullRequest:
        body = {"title": wanted.title, "body": wanted.body}
        return _github(self.api.call("PATCH", f"repos/{self.repository}/pulls/{number}", body))

    def close(self, number: int, word: str) -> bool:
        if not _github(self.api.call("GET", f"repos/{self.repository}/pulls/{number}")).is_open:
            return False
        self.api.call("POST", f"repos/{self.repository}/issues/{number}/comments", {"body": word})
        self.api.call("PATCH", f"repos/{self.repository}/pulls/{number}", {"state": "closed"})
        return True


@dataclass(frozen=True)
class GitLab:
    """GitLab, where they are called merge requests."""

    api: HostApi
    project: str

    def find(self, head: str) -> PullRequest | None:
        query = f"state=opened&source_branch={quote(head, safe='')}"
        for found in _rows(self.api.call("GET", f"projects/{self.project}/merge_requests?{query}")):
            if found.get("source_branch") == head:
                return _gitlab(found)
        return None

    def open(self, wanted: PullRequestDraft) -> PullRequest:
        title = f"Draft: {wanted.title}" if wanted.draft else wanted.title
        body = {"source_branch": wanted.head, "target_branch": wanted.base, "title": title}
        path = f"projects/{self.project}/merge_requests"
        return _gitlab(self.api.call("POST", path, {**body, "description": wanted.body}))

    def change(self, number: int, wanted: PullRequestDraft) -> PullRequest:
        title = f"Draft: {wanted.title}" if wanted.draft else wanted.title
        path = f"projects/{self.project}/merge_requests/{number}"
        return _gitlab(self.api.call("PUT", path, {"title": title, "description": wanted.body}))

    def close(self, number: int, word: str) -> bool:
        path = f"projects/{self.project}/merge_requests/{number}"
        if not _gitlab(self.api.call("GET", path)).is_open:
            return False
        self.api.call("POST", f"{path}/notes", {"body": word})
        self.api.call("PUT", path, {"state_event": "close"})
        return True


@dataclass(frozen=True)
class Gitea:
    """Gitea and Forgejo, whose list of pull requests has no filter by branch."""

    api: HostApi
    repository: str

    def find(self, head: str) -> PullRequest | None:
        for page in range(1, MOST_PAGES + 1):
            query = f"state=open&sort=recentupdate&limit={_PAGE}&page={page}"
            rows = _rows(self.api.call("GET", f"repos/{self.repository}/pulls?{query}"))
            for found in rows:
                if _at(found, "head", "ref") == head:
                    return _github(found)
            if not rows:
                return None
        return None

    def open(self, wanted: PullRequestDraft) -> PullRequest:
        title = f"WIP: {wanted.title}" if wanted.draft else wanted.title
        body = {"head": wanted.head, "base": wanted.base, "title": title, "body": wanted.body}
        return _github(self.api.call("POST", f"repos/{self.repository}/pulls", body))

    def change(self, number: int, wanted: PullRequestDraft) -> PullRequest:
        title = f"WIP: {wanted.title}" if wanted.draft else wanted.title
        body = {"title": title, "body": wanted.body}
        return _github(self.api.call("PATCH", f"repos/{self.repository}/pulls/{number}", body))

    def close(self, number: int, word: str) -> bool:
        if not _github(self.api.call("GET", f"repos/{self.repository}/pulls/{number}")).is_open:
            return False
        self.api.call("POST", f"repos/{self.repository}/issues/{number}/comments", {"body": word})
        self.api.call("PATCH", f"repos/{self.repository}/pulls/{number}", {"state": "closed"})
        return True


def _github(answer: Json) -> PullRequest:
    return _read(answer, "number", "html_url", "open")


def _gitlab(answer: Json) -> PullRequest:
    return _read(answer, "iid", "web_url", "opened")


def _read(answer: Json, number: str, url: str, open_: str) -> PullRequest:
    """The relevant parts of an answer. Raises HostRefused if it does not have the expected form."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get(number), int):
        raise HostRefused("unexpected answer from the host")
    address = answer.get(url)
    plain = isinstance(address, str) and address.startswith(("https://", "http://")) and len(address) <= MAX_ADDRESS
    return PullRequest(answer[number], address if plain else None, answer.get("state") == open_)


def _rows(answer: Json) -> list[Mapping[str, Json]]:
    return [each for each in answer if isinstance(each, Mapping)] if isinstance(answer, list) else []


def _at(row: Mapping[str, Json], *keys: str) -> Json:
    value: Json = row
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _parts(path: str) -> str:
    return "/".join(quote(part, safe="") for part in path.split("/"))
