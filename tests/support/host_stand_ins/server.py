"""What the stand-ins of code hosts share: what they hold, what people do there, and how requests reach it."""

from __future__ import annotations

import json
import subprocess
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx

from tests.support.git_servers import GitHttpServer, _GitHandler
from tests.support.repositories import git

Doc = dict[str, Any]
LOGIN = "kim:hunter2"
REPOSITORY = "shop/calc"
PEOPLE = {"kim": 1, "alice": 2, "bob": 3, "mallory": 4}
DELETED = "ghost"
"""Who wrote with an account that was deleted since."""
LOST = "lost"
"""The host does what is asked, and the connection breaks before its answer."""


def now() -> datetime:
    return datetime.now(UTC)


def iso(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Thread:
    """An issue or a pull request."""

    place: str
    number: int
    title: str
    body: str
    author: str
    state: str = "open"
    merged: bool = False
    head: str = ""
    base: str = ""
    at: datetime = field(default_factory=now)
    updated: datetime = field(default_factory=now)


@dataclass
class Note:
    """A comment; with a path one on a line."""

    id: int
    place: str
    author: str
    body: str
    at: datetime = field(default_factory=now)
    edited: datetime | None = None
    review: int | None = None
    path: str = ""
    line: int = 0
    reply_to: int | None = None
    """The first comment of its thread."""
    commit: str = ""

    @property
    def changed(self) -> datetime:
        return self.edited or self.at


@dataclass
class Review:
    id: int
    place: str
    author: str
    body: str
    state: str = "COMMENTED"
    at: datetime = field(default_factory=now)


@dataclass
class Check:
    id: int
    name: str
    head: str
    log: str


@dataclass(frozen=True)
class Delivery:
    """A webhook as the host sends it, before it is signed."""

    headers: dict[str, str]
    body: bytes


class HostStandIn(GitHttpServer, ABC):
    """The repository `shop/calc` at a code host of one kind, with the login `kim`."""

    kind = ""
    api = ""
    """The beginning of the API's addresses."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, LOGIN)
        self.RequestHandlerClass = _StandInHandler
        self.ids = count(101)
        self.threads: dict[str, Thread] = {}
        self.notes: list[Note] = []
        self.reviews: list[Review] = []
        self.checks: list[Check] = []
        self.asked: list[tuple[str, str]] = []
        """Method and path of each request to the API."""
        self.refusals: list[int | str] = []
        """The answers to the next requests that write comments: a status, or LOST."""

    # --- what people do -------------------------------------------------------------------

    def open_issue(self, title: str, body: str, author: str = "bob") -> Thread:
        return self._open(Thread("", self.next_number("issues"), title, body, author), "issues")

    def comment(self, place: str, author: str, body: str) -> Note:
        self.threads[place].updated = now()
        note = Note(next(self.ids), place, author, body)
        self.notes.append(note)
        return note

    def edit(self, note: Note, body: str) -> None:
        note.body, note.edited = body, note.at.replace(year=note.at.year + 1)

    def review(self, place: str, author: str, lines: list[tuple[str, int, str]], body: str = "") -> Review:
        self.threads[place].updated = now()
        review = Review(next(self.ids), place, author, body)
        self.reviews.append(review)
        for path, line, text in lines:
            note = Note(next(self.ids), place, author, text, review=review.id, path=path, line=line)
            note.commit = self.tip(self.threads[place].head)
            self.notes.append(note)
        return review

    def fail_check(self, place: str, name: str, log: str) -> Check:
        check = Check(next(self.ids), name, self.tip(self.threads[place].head), log)
        self.checks.append(check)
        return check

    def merge(self, place: str) -> None:
        thread = self.threads[place]
        thread.state, thread.merged = "closed", True

    # --- what there is --------------------------------------------------------------------

    @property
    def repository(self) -> Path:
        return self.root / f"{REPOSITORY}.git"

    def tip(self, branch: str) -> str:
        return git(self.repository, "rev-parse", f"refs/heads/{branch}")

    def has_conflicts(self, thread: Thread) -> bool:
        """As git says of the two branches."""
        base, head = self.tip(thread.base), self.tip(thread.head)
        merge = ["git", "-C", str(self.repository), "merge-tree", "--write-tree", base, head]
        return subprocess.run(merge, capture_output=True, check=False).returncode == 1

    def pulls(self) -> list[Thread]:
        return [each for each in self.threads.values() if each.place.startswith("pulls/")]

    def written(self, place: str) -> list[Note]:
        """The comments that the fleet's login wrote in a thread."""
        return [each for each in self.notes if each.place == place and each.author == "kim"]

    def in_place(self, place: str, *, on_lines: bool) -> list[Note]:
        return [each for each in self.notes if each.place == place and bool(each.path) == on_lines]

    def note(self, id: str | int) -> Note | None:
        return next((each for each in self.notes if str(each.id) == str(id)), None)

    def next_number(self, kind: str) -> int:
        return len(self.threads) + 1

    def open_pull(self, head: str, base: str, title: str, body: str) -> Thread:
        thread = Thread("", self.next_number("pulls"), title, body, "kim", head=head, base=base)
        return self._open(thread, "pulls")

    def _open(self, thread: Thread, kind: str) -> Thread:
        thread.place = f"{kind}/{thread.number}"
        self.threads[thread.place] = thread
        return thread

    # --- requests -------------------------------------------------------------------------

    def allows(self, headers: Any) -> bool:
        return bool(headers.get("Authorization") == self.expected)

    def answers(self, path: str) -> bool:
        """Whether an address belongs to the API."""
        return path.startswith(self.api[:7])

    @abstractmethod
    def answer(self, method: str, path: list[str], query: dict[str, str], said: Doc) -> tuple[int, Any]:
        """The answer to a request, `path` below the repository's."""
        ...

    @abstractmethod
    def public(self, path: str) -> Doc | None:
        """What the host says without a login, by which its kind is recognized."""
        ...

    # --- webhooks -------------------------------------------------------------------------

    @abstractmethod
    def delivery(self, what: str, about: Any) -> Delivery:
        """The webhook that reports `what`: comment, review, check, push or merged."""
        ...

    @abstractmethod
    def sign(self, secret: str, body: bytes) -> dict[str, str]: ...

    def send(self, url: str, secret: str, delivery: Delivery, *, times: int = 1) -> httpx.Response:
        """Deliver it to the fleet, the same bytes each time; returns the last answer."""
        headers = {"Content-Type": "application/json", **delivery.headers, **self.sign(secret, delivery.body)}
        for _ in range(times):
            answer = httpx.post(url, content=delivery.body, headers=headers, timeout=60)
        return answer


class _StandInHandler(_GitHandler):
    server: HostStandIn

    def do_GET(self) -> None:
        self._host() if self.path.startswith("/api/") else self._serve()

    def do_POST(self) -> None:
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def _host(self) -> None:
        server, body = self.server, self._body()
        address = urlsplit(self.path)
        server.asked.append((self.command, self.path))
        if (said := server.public(address.path)) is not None:
            self._json(200, said)
            return
        if not server.answers(address.path):
            self._json(404, {"message": "Not Found"})
            return
        if not server.allows(self.headers):
            self._json(401, {"message": "Bad credentials"})
            return
        writes = self.command != "GET" and any(word in self.path for word in ("comments", "notes", "reviews"))
        refusal = server.refusals.pop(0) if writes and server.refusals else None
        if isinstance(refusal, int):
            self._json(refusal, {"message": "refused by the test"})
            return
        root = f"{server.api}/"
        path = [unquote(part) for part in address.path.removeprefix(root).split("/")]
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        status, answer = server.answer(self.command, path, query, json.loads(body) if body else {})
        if refusal == LOST:
            self.close_connection = True
            return
        if isinstance(answer, str):
            self._answer(status, {"Content-Type": "text/plain"}, answer.encode())
        else:
            self._json(status, answer)

    def _json(self, status: int, answer: Any) -> None:
        self._answer(status, {"Content-Type": "application/json"}, json.dumps(answer).encode())


def page_of(rows: list[Doc], query: dict[str, str], size: str = "per_page") -> list[Doc]:
    """One page of a list."""
    length, number = int(query.get(size, "30")), int(query.get("page", "1"))
    return rows[(number - 1) * length : number * length]


def delivery_id() -> str:
    return f"{time.time_ns():x}"
