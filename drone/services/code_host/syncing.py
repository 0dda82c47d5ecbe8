"""Carries out an order for a code host: writes the comments that are due, then reads what happened."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote

from drone.reporting.event_size import ROOM, cut_texts, size_of, taken
from drone.services.code_host.gitea import GiteaReader
from drone.services.code_host.github import GitHubReader
from drone.services.code_host.gitlab import GitLabReader
from drone.services.code_host.host_answers import Answers, HostReader, PullGone
from drone.services.context import ServiceContext
from drone.services.pull_request.address import Address, address_of
from drone.services.pull_request.api import HostApi, HostRefused, NotLetIn
from drone.services.pull_request.opening import rewritten
from drone.services.pull_request.routes import Surroundings, surroundings, ways_to
from drone.workspace.remote import Remote
from shared.code_hosts import (
    MOST_COMMENTS,
    CodeHostReading,
    CommentToWrite,
    SeenComment,
    SeenPull,
    SeenReview,
    SyncCodeHost,
    WrittenComment,
    marked,
)
from shared.errors import FleetError, OrderError
from shared.outcome import ExitStatus, Outcome
from shared.redaction import Redactor
from shared.work_order import WorkOrder

MAX_WHY = 1000
log = logging.getLogger(__name__)
T = TypeVar("T")


def sync_code_host(order: WorkOrder, context: ServiceContext) -> Outcome:
    """Do what the order's `code_host` asks for; the response is a CodeHostReading as JSON.

    A comment is looked for by its mark before it is created, so that a repetition never duplicates it. The response
    fits in the event that reports it, and says what was left out. What the host refuses is in the result; only without
    any login there the order fails (`E-CODE-HOST-LOGIN`).
    """
    asked = order.code_host
    if asked is None:
        raise OrderError("the order does not specify a code host", code="E-SERVICE-UNKNOWN")
    context.check_url(order.project.git_url)
    around = _surroundings(order, context)
    for way in ways_to(around):
        if way.kind != asked.kind:
            around.missing.append(f"the login with {way.api.via} is for {way.kind}, not for {asked.kind}")
            continue
        redactor = Redactor(around.secrets)
        context.recorder.doing(f"reading {around.address.host} with {way.api.via}")
        try:
            host = _reader(asked, way.api, around.address, partial(_conflicts, order, context))
            reading = _Sync(host, asked, context.controls.check_end).done()
        except NotLetIn as error:
            around.missing.append(str(error))
            continue
        told = reading.model_copy(update={"via": way.api.via})
        clean: Any = redactor.value(told.model_dump(mode="json"))
        return Outcome(
            ExitStatus.SUBMITTED,
            f"Read {around.address.host} with {way.api.via}.",
            CodeHostReading.model_validate(clean).model_dump_json(),
        )
    why = "; ".join(around.missing) or f"the drone's machine has no login for {around.address.host}"
    raise OrderError(
        f"{around.address.host} cannot be read from this drone",
        code="E-CODE-HOST-LOGIN",
        why=Redactor(around.secrets).text(why),
        next="log in there with gh, glab or tea on the drone's machine, or set a token: docs/code-hosts.md",
    )


def _surroundings(order: WorkOrder, context: ServiceContext) -> Surroundings:
    """The workstation's ways to the host. Raises OrderError if there is none, or the owner allows none."""
    branch = context.workspaces().default_branch(order, context.controls.check_end)
    remote = Remote(order.project.git_url)
    address = address_of(rewritten(branch, remote))
    if address is None or not context.policy.pull_requests:
        what = f"{remote.shown} is not the address of a code host"
        raise OrderError(
            what if address is None else "the drone's policy does not allow the use of code hosts",
            code="E-CODE-HOST-LOGIN",
            next="connect a project whose git URL names the code host"
            if address is None
            else "pull_requests = true    in the policy file of the drone's owner",
        )
    git = branch.git.adding(remote.login)
    return surroundings(address, context.environ, context.policy, git, context.controls.check_end)


def _conflicts(order: WorkOrder, context: ServiceContext, pull: SeenPull) -> bool:
    """Whether git finds conflicts in the pull request; False while it cannot find out, as that starts paid work."""
    try:
        return context.workspaces().has_conflicts(order, pull.branch, pull.base, context.controls.check_end)
    except FleetError as error:
        log.info("the conflicts of pull request %s are unknown: %s", pull.number, error)
        return False


def _reader(asked: SyncCodeHost, api: HostApi, address: Address, conflicts: Callable[[SeenPull], bool]) -> HostReader:
    answers = Answers(api)
    path = "/".join(quote(part, safe="") for part in address.path.split("/"))
    match asked.kind:
        case "github":
            return GitHubReader(answers, f"repos/{path}")
        case "gitlab":
            return GitLabReader(answers, f"projects/{quote(address.path, safe='')}")
        case _:
            return GiteaReader(answers, f"repos/{path}", conflicts)


class _Sync:
    """One order that is being carried out."""

    def __init__(self, host: HostReader, asked: SyncCodeHost, check: Callable[[], None]) -> None:
        self._host = host
        # Hosts tell times in whole seconds: a comment of the second in which the last reading began counts, too.
        since = asked.since.replace(microsecond=0) if asked.since is not None else None
        self._asked = asked.model_copy(update={"since": since})
        self._check = check
        self._problems: list[str] = []
        self._refused: list[int] = []
        """The pull requests that could not be read."""

    def done(self) -> CodeHostReading:
        """Raises NotLetIn if the host does not accept the login."""
        written = tuple(self._written(each) for each in self._asked.writes)
        room = ROOM - size_of(*written)
        found = self._tried(self._comments)
        comments = taken(found or (), room // 2, cut_texts)
        has_comments = self._asked.since is not None and found is not None
        pulls = taken(self._pulls(has_comments), room - size_of(*comments), _cut_pull)
        read = {*self._refused, *(each.number for each in pulls)}
        return CodeHostReading(
            comments=comments,
            pulls=pulls,
            written=written,
            more_comments=len(comments) < len(found or ()) or len(comments) == MOST_COMMENTS,
            left_out=tuple(number for number in self._asked.pulls if number not in read),
            comments_read=has_comments,
            why="; ".join(dict.fromkeys(self._problems))[:MAX_WHY],
        )

    def _written(self, wanted: CommentToWrite) -> WrittenComment:
        """Write a comment. A host that answers nothing may have written it: the next order finds it by its mark."""
        self._check()
        body = marked(wanted.id, wanted.text)
        try:
            comment = wanted.comment or self._host.find(wanted, body.partition("\n")[0])
            return WrittenComment(id=wanted.id, comment=self._host.write(wanted, comment, body))
        except HostRefused as error:
            return WrittenComment(id=wanted.id, error=str(error)[:MAX_WHY])

    def _comments(self) -> tuple[SeenComment, ...]:
        return tuple(islice(self._host.comments(self._asked), MOST_COMMENTS)) if self._asked.since is not None else ()

    def _pulls(self, has_comments: bool) -> Iterator[SeenPull]:
        """What is new in each; the rest is not asked for once there is no room."""
        for number in self._asked.pulls:
            pull = self._tried(partial(self._pull, number, has_comments))
            if pull is None:
                self._refused.append(number)
            else:
                yield pull.model_copy(update={"reviews": tuple(self._news(pull.reviews))})

    def _news(self, reviews: Iterable[SeenReview]) -> Iterator[SeenReview]:
        known = frozenset(self._asked.known)
        for review in reviews:
            comments = tuple(each for each in review.comments if f"line:{each.id}" not in known)
            text = "" if f"review:{review.id}" in known else review.text
            if comments or text:
                yield review.model_copy(update={"comments": comments, "text": text})

    def _pull(self, number: int, has_comments: bool) -> SeenPull:
        """One that is gone was closed, if the login may see the repository, as its comments show."""
        try:
            return self._host.pull(number, frozenset(self._asked.known_checks))
        except PullGone:
            if not has_comments:
                raise
            return SeenPull(number=number, state="closed", head="")

    def _tried(self, part: Callable[[], T]) -> T | None:
        """The part's result; None if the host refused it, which is noted."""
        self._check()
        try:
            return part()
        except HostRefused as error:
            self._problems.append(str(error))
            return None


def _cut_pull(pull: SeenPull, room: int) -> SeenPull:
    """The pull request with shorter logs and as many of its newest reviews as fit, at least a part of one."""
    bare = cut_texts(pull.model_copy(update={"reviews": ()}), room // 2)
    newest = sorted(pull.reviews, key=lambda each: each.at, reverse=True)
    reviews = taken(newest, room - size_of(bare), _cut_review)[::-1]
    return bare.model_copy(update={"reviews": reviews, "more": size_of(*reviews) < size_of(*pull.reviews)})


def _cut_review(review: SeenReview, room: int) -> SeenReview:
    bare = cut_texts(review.model_copy(update={"comments": ()}), room // 2)
    comments = taken(review.comments[::-1], room - size_of(bare), cut_texts)[::-1]
    return bare.model_copy(update={"comments": comments})
