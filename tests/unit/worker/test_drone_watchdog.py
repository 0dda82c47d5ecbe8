"""When a consumer counts as deaf, and what is done about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from redis.exceptions import ConnectionError as RedisConnectionError

from drone.worker.watchdog import Watchdog
from tests.support.clocks import HandClock


@dataclass
class Watched:
    """A watchdog over a queue that the test fills."""

    slots: int = 1
    waiting: int = 1
    reachable: bool = True
    clock: HandClock = field(default_factory=HandClock)
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dog = Watchdog(self.slots, self._messages, self.clock)

    def pass_time(self, seconds: float) -> list[str]:
        """Let it look every five seconds; what it did by then."""
        for _ in range(int(seconds / 5)):
            self.clock.sleep(5)
            self.dog.check(lambda: self.done.append("rebuild"), lambda: self.done.append("give up"))
        return self.done

    def _messages(self) -> int:
        if not self.reachable:
            raise RedisConnectionError("gone")
        return self.waiting


def test_a_worker_that_leaves_a_message_beside_a_free_slot_is_rebuilt_and_in_the_end_given_up() -> None:
    watched = Watched()
    assert watched.pass_time(20) == []
    assert watched.pass_time(5) == ["rebuild"]
    assert watched.pass_time(40) == ["rebuild", "rebuild", "give up"]


def test_a_full_drone_an_empty_queue_and_a_broker_that_is_away_say_nothing_and_a_run_in_hand_is_not_given_up() -> None:
    full, busy = Watched(), Watched(slots=2)
    with full.dog.message_taken(), busy.dog.message_taken():
        assert full.pass_time(100) == []
        assert busy.pass_time(100) == ["rebuild"] * 4
    assert Watched(waiting=0).pass_time(100) == Watched(reachable=False).pass_time(100) == []


def test_a_message_that_is_taken_begins_the_wait_anew() -> None:
    watched = Watched()
    watched.pass_time(20)
    with watched.dog.message_taken():
        pass
    assert watched.pass_time(20) == []
