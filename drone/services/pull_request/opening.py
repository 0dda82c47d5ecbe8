"""Opens a pull request, or updates the open one; if there is no way to the host, prepares it for a user."""

from __future__ import annotations

from drone.services.context import ServiceContext
from drone.services.pull_request.address import Address, address_of
from drone.services.pull_request.api import HostRefused, NotLetIn
from drone.services.pull_request.hosts import Host, PullRequest, PullRequestDraft, host_for
from drone.services.pull_request.routes import KNOWN, Access, Surroundings, surroundings, ways_to
from drone.services.pull_request.template import ANY, filled, template_of
from drone.workspace import DefaultBranch
from drone.workspace.git import GitFailed
from drone.workspace.remote import Remote
from shared.errors import OrderError
from shared.events import PullRequestStep
from shared.outcome import ExitStatus, Outcome
from shared.redaction import Redactor
from shared.work_order import OpenPullRequest, WorkOrder

MAX_TITLE = 250
"""Characters; hosts accept 255."""


def open_pull_request(order: WorkOrder, context: ServiceContext) -> Outcome:
    """Do what the order's `pull_request` asks for, and record the result.

    An open pull request from the branch is changed and never duplicated. If the workstation has no login for the host,
    or its owner allows none, title and text are prepared, and that is a success.

    Raises OrderError (`E-PULL-REQUEST`) if the host refuses, and like `prepare` if the repository is at fault.
    """
    asked = order.pull_request
    if asked is None:
        raise OrderError("the order does not specify a pull request", code="E-SERVICE-UNKNOWN")
    return _Opening(order, asked, context).done()


class _Opening:
    """One pull request that is being opened."""

    def __init__(self, order: WorkOrder, asked: OpenPullRequest, context: ServiceContext) -> None:
        self._asked = asked
        self._order = order
        self._context = context
        self._redactor = Redactor()

    def done(self) -> Outcome:
        context, order = self._context, self._order
        context.check_url(order.project.git_url)
        branch = context.workspaces().default_branch(order, context.controls.check_end)
        remote = Remote(order.project.git_url)
        address = address_of(rewritten(branch, remote))
        wanted = self._wanted(branch, KNOWN.get(address.host, ANY) if address else ANY)
        if address is None:
            return self._ready(wanted, f"{remote.shown} is not the address of a code host")
        if not context.policy.pull_requests:
            return self._ready(wanted, "the drone's policy does not allow pull requests")
        git = branch.git.adding(remote.login)
        around = surroundings(address, self._context.environ, context.policy, git, context.controls.check_end)
        self._redactor = Redactor(around.secrets)
        return self._by_any_way(around, branch, wanted)

    def _by_any_way(self, around: Surroundings, branch: DefaultBranch, wanted: PullRequestDraft) -> Outcome:
        """The first way that the host accepts decides."""
        for way in ways_to(around):
            # A password that was found meanwhile is as secret as one that was known before.
            self._redactor = Redactor(around.secrets)
            wanted = self._wanted(branch, way.kind)
            try:
                return self._opened(way, around.address, wanted)
            except NotLetIn as error:
                around.missing.append(str(error))
            except HostRefused as error:
                raise self._failed(wanted, way, str(error)) from error
        host = around.address.host
        why = "; ".join(around.missing) or f"the drone's machine has no login for {host}"
        return self._ready(wanted, f"{why} (next: log in there with gh, glab or tea, or open it manually)")

    def _opened(self, way: Access, address: Address, wanted: PullRequestDraft) -> Outcome:
        self._context.recorder.doing(f"pull request on {address.host} with {way.api.via}")
        host = host_for(way.kind, way.api, address.path)
        there = host.find(wanted.head)
        made = host.change(there.number, wanted) if there else self._new(host, wanted)
        word = "updated" if there else "opened"
        why = "" if there else self._replaced(host, made)
        step = self._step(wanted).model_copy(
            update={"state": word, "url": made.url, "number": made.number, "via": way.api.via, "why": self._clean(why)}
        )
        self._context.recorder.record(step)
        named = made.url or f"number {made.number} on {address.host}"
        return Outcome(ExitStatus.SUBMITTED, f"Pull request {named} was {word}.", made.url or "")

    def _new(self, host: Host, wanted: PullRequestDraft) -> PullRequest:
        try:
            return host.open(wanted)
        except HostRefused:
            # It may have been opened since we looked, and must not be duplicated.
            there = host.find(wanted.head)
            if there is None:
                raise
            return host.change(there.number, wanted)

    def _replaced(self, host: Host, made: PullRequest) -> str:
        """Close the previous pull request of the same work; return the reason if that failed, else ''."""
        before = self._asked.replaces
        if before is None or before == made.number:
            return ""
        try:
            host.close(before, f"The work continues in {made.url or f'#{made.number}'}.")
        except (HostRefused, NotLetIn) as error:
            return f"#{before}, which it replaces, could not be closed: {error}"
        return ""

    def _wanted(self, branch: DefaultBranch, kind: str) -> PullRequestDraft:
        """The content for a host of this kind. Raises OrderError if there is no branch to merge it into."""
        asked = self._asked
        base = asked.base or branch.name
        if base is None:
            raise OrderError(
                "the repository has no branch to open a pull request against",
                code="E-PULL-REQUEST",
                next=f"push a first branch, then: fleet retry {self._order.order_id}",
            )
        title = " ".join(asked.title.split())[:MAX_TITLE].strip() or f"Work on {asked.head}"
        body = filled(template_of(branch, kind), asked.body)
        return PullRequestDraft(asked.head, base, title, body, asked.draft)

    def _ready(self, wanted: PullRequestDraft, why: str) -> Outcome:
        sentence = self._clean(why)
        self._context.recorder.record(self._step(wanted).model_copy(update={"why": sentence}))
        return Outcome(
            ExitStatus.SUBMITTED, f"The pull request is ready to be opened manually: {sentence}.", wanted.body
        )

    def _failed(self, wanted: PullRequestDraft, way: Access, why: str) -> OrderError:
        sentence = self._clean(why)
        failed = {"state": "failed", "via": way.api.via, "why": sentence}
        self._context.recorder.record(self._step(wanted).model_copy(update=failed))
        return OrderError(
            f"the pull request for {wanted.head} could not be opened",
            code="E-PULL-REQUEST",
            why=sentence,
            next=f"fix that, then: fleet retry {self._order.order_id}",
        )

    def _step(self, wanted: PullRequestDraft) -> PullRequestStep:
        return PullRequestStep(state="ready", head=wanted.head, base=wanted.base, title=wanted.title, body=wanted.body)

    def _clean(self, text: str) -> str:
        return self._redactor.text(text)


def rewritten(branch: DefaultBranch, remote: Remote) -> str:
    """The address that git actually uses: the owner's `insteadOf` rules apply here too."""
    try:
        return branch.git.text("ls-remote", "--get-url", "--", remote.address) or remote.address
    except GitFailed:
        return remote.address
