"""The owner's policy while the drone runs: read again when its file changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from drone.installation import policy
from drone.installation.policy import Policy
from drone.installation.spending import DaySpending
from shared.clock import Clock
from shared.errors import Precondition

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""Looking at the machine takes longer than its answer is worth when every heartbeat and every free slot asks."""


@dataclass(frozen=True)
class _Seen:
    mtime_ns: int
    size: int
    inode: int


class LivePolicy:
    """The policy that applies now, and why it allows no new order. Threads may share an instance."""

    def __init__(
        self,
        first: Policy,
        check: Callable[[Policy], None],
        clock: Clock,
        disks: tuple[Path, ...],
        spending: DaySpending,
    ) -> None:
        """`check` raises Precondition for a policy that cannot be enforced here."""
        self._check = check
        self._spending = spending
        self._clock = clock
        self._disks = disks
        self._lock = threading.Lock()
        self._policy = first
        self._broken = ""
        # Loaded again after the look: the file may have changed while the drone started.
        self._seen = self._look()
        self._reload()
        self._since = clock.monotonic()
        self._is_spent = False
        self._answer = ""
        self._asked_at = float("-inf")

    @property
    def current(self) -> Policy:
        """The last policy that could be read; the file is looked at first."""
        with self._lock:
            self._read_again()
            return self._policy

    @property
    def age_s(self) -> float:
        """Seconds since the policy changed; the drone's start counts as a change, and so does a new day's money."""
        return self._clock.monotonic() - self._since

    def withheld(self) -> str:
        """Why the drone takes no new orders now, with the line that says so; '' if it takes them."""
        with self._lock:
            self._read_again()
            if self._clock.monotonic() - self._asked_at >= LOOK_SECONDS:
                self._answer = self._broken or self._lacking()
                self._asked_at = self._clock.monotonic()
            return self._answer

    @property
    def is_broken(self) -> bool:
        """Whether no orders are taken because the policy cannot be read, or cannot be enforced here."""
        return bool(self._broken)

    def _read_again(self) -> None:
        """Read the file if it changed; what was found out under the old one no longer counts."""
        file, seen = self._policy.file, self._look()
        if file is None or seen == self._seen:
            return
        self._seen, self._since, self._asked_at = seen, self._clock.monotonic(), float("-inf")
        if self._reload():
            log.info("the policy file %s changed and was read again", file)

    def _reload(self) -> bool:
        """Load the file; False if there is none, or if it cannot be used, which is then why no orders are taken."""
        file = self._policy.file
        if file is None:
            return False
        try:
            fresh = policy.load(file)
            self._check(fresh)
        except Precondition as error:
            self._broken = f"{error.what}: {error.why}"
            log.error("no orders are taken: %s (next: %s)", self._broken, error.next)
            return False
        self._policy, self._broken = fresh, ""
        return True

    def _lacking(self) -> str:
        applies = self._policy
        today, was_spent = self._spending.today(), self._is_spent
        self._is_spent = applies.spend.is_used_up(today)
        if was_spent and not self._is_spent:
            # Orders that were refused for it may come again.
            self._since = self._clock.monotonic()
        if self._is_spent:
            return f"{applies.spent(today)} spent today (spend.usd_per_day in {applies.where('spend.usd_per_day')})"
        setting, found = applies.when.lacking(self._disks)
        return f"{found} (when.{setting} in {applies.where(f'when.{setting}')})" if setting else ""

    def _look(self) -> _Seen | None:
        if self._policy.file is None:
            return None
        try:
            status = self._policy.file.stat()
        except OSError:
            return None
        return _Seen(status.st_mtime_ns, status.st_size, status.st_ino)
