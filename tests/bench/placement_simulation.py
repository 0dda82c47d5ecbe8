"""Simulates placement: `python -m tests.bench.placement_simulation [ORDERS] [DRONES]` prints a table.

Orders arrive over time; a drone clones a repository that it does not have, then works. The scores are those of the
product (`control_plane.orders.scores`), against taking turns and against the least load. An order that waits behind a
full drone moves to a slot that becomes free, as in the product; with turns it does not.
"""

from __future__ import annotations

import heapq
import random
import statistics
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from control_plane.orders.scores import Candidate, average, score, usual_of

PROJECTS: dict[str, tuple[int, int]] = {
    "django": (850, 608),
    "sympy": (386, 341),
    "scikit-learn": (229, 752),
    "sphinx": (187, 147),
    "matplotlib": (184, 833),
    "pytest": (119, 59),
    "xarray": (110, 132),
    "astropy": (95, 227),
    "pylint": (57, 69),
    "requests": (44, 41),
    "seaborn": (22, 117),
    "flask": (11, 35),
}
"""Work of real repositories: how many of SWE-bench's 2,294 issues are theirs, and the MB that a clone has (2026-11)."""
MB_PER_S = 10.0
"""Of a clone: 132 MB took 12.4 s from a local disk, on two busy processors."""
RUN_S = (270.0, 0.8)
"""Seconds of the median run, and the sigma of a log-normal distribution; at most MOST_S. An assumption."""
MOST_S = 1800.0
SLOTS = (1, 1, 2, 4)


@dataclass(frozen=True)
class Job:
    number: int
    at: float
    project: str
    run_s: float


@dataclass
class Machine:
    number: int
    slots: int
    running: int = 0
    queue: deque[Job] = field(default_factory=deque)
    mirrors: set[str] = field(default_factory=set)

    @property
    def outstanding(self) -> int:
        return self.running + len(self.queue)


@dataclass
class Known:
    """What the control plane has learned of a project."""

    run_s: float | None = None
    clone_s: float | None = None


@dataclass(frozen=True)
class Figures:
    makespan_s: float
    """From the first order to the end of the last."""
    wait_mean_s: float
    """From the order to the moment at which its repository is there and its run begins to work."""
    wait_p95_s: float
    clones: int
    cloned_mb: int


Policy = Callable[[list[Machine], Job, dict[str, Known]], Machine]


def turns() -> Policy:
    """One drone after the other."""
    numbers = count()
    return lambda machines, _job, _known: machines[next(numbers) % len(machines)]


def least_load(machines: list[Machine], job: Job, known: dict[str, Known]) -> Machine:
    return min(machines, key=lambda each: (each.outstanding / each.slots, each.number))


def scores(machines: list[Machine], job: Job, known: dict[str, Known]) -> Machine:
    """As the product places."""
    usual = usual_of(known[job.project].run_s, known[job.project].clone_s)

    def of(each: Machine) -> tuple[bool, float]:
        candidate = Candidate("", each.slots, each.outstanding, job.project in each.mirrors, False, 0.0, None)
        return score(candidate, usual)[:2]

    return min(machines, key=of)


class Simulation:
    """One fleet, one policy, one list of jobs."""

    def __init__(self, machines: list[Machine], policy: Policy, *, moves: bool) -> None:
        self._machines = machines
        self._policy = policy
        self._moves = moves
        """Whether a waiting order moves to a free slot."""
        self._known = {project: Known() for project in PROJECTS}
        self._ends: list[tuple[float, int, Job, Machine]] = []
        self._waiting: deque[tuple[Job, Machine]] = deque()
        self._waits: list[float] = []
        self._clones: list[int] = []

    def run(self, jobs: list[Job]) -> Figures:
        now = 0.0
        for job in jobs:
            self._end_until(job.at)
            machine = self._policy(self._machines, job, self._known)
            if machine.running < machine.slots:
                self._begin(machine, job, job.at)
            else:
                machine.queue.append(job)
                self._waiting.append((job, machine))
        while self._ends:
            now = self._ends[0][0]
            self._end_until(now)
        self._waits.sort()
        p95 = self._waits[int(len(self._waits) * 0.95)]
        return Figures(now, statistics.fmean(self._waits), p95, len(self._clones), sum(self._clones))

    def _end_until(self, moment: float) -> None:
        while self._ends and self._ends[0][0] <= moment:
            at, _, job, machine = heapq.heappop(self._ends)
            machine.running -= 1
            known = self._known[job.project]
            known.run_s = average(known.run_s, job.run_s)
            if machine.queue:
                self._begin(machine, machine.queue.popleft(), at)
            elif self._moves and (found := self._longest_waiting()):
                self._begin(machine, found, at)

    def _longest_waiting(self) -> Job | None:
        while self._waiting:
            job, machine = self._waiting.popleft()
            if job in machine.queue:
                machine.queue.remove(job)
                return job
        return None

    def _begin(self, machine: Machine, job: Job, now: float) -> None:
        megabytes = 0 if job.project in machine.mirrors else PROJECTS[job.project][1]
        clone_s = megabytes / MB_PER_S
        if megabytes:
            machine.mirrors.add(job.project)
            self._clones.append(megabytes)
            known = self._known[job.project]
            known.clone_s = average(known.clone_s, clone_s)
        machine.running += 1
        self._waits.append(now + clone_s - job.at)
        heapq.heappush(self._ends, (now + clone_s + job.run_s, job.number, job, machine))


def fleet(drones: int, seed: int) -> list[Machine]:
    chosen = random.Random(seed)
    return [Machine(number, chosen.choice(SLOTS)) for number in range(drones)]


def work(orders: int, per_s: float, seed: int) -> list[Job]:
    """Orders of the recorded projects, in a Poisson process."""
    chance = random.Random(seed)
    names, weights = list(PROJECTS), [share for share, _ in PROJECTS.values()]
    jobs, at = [], 0.0
    for number in range(orders):
        at += chance.expovariate(per_s)
        run_s = min(MOST_S, RUN_S[0] * chance.lognormvariate(0.0, RUN_S[1]))
        jobs.append(Job(number, at, chance.choices(names, weights)[0], run_s))
    return jobs


def compared(orders: int, drones: int, used: float, seed: int = 1) -> dict[str, Figures]:
    """The figures of each policy; `used`: the part of all slots that the orders need, without clones."""
    slots = sum(each.slots for each in fleet(drones, seed))
    probe = work(2000, 1.0, seed)
    per_s = used * slots / statistics.fmean(each.run_s for each in probe)
    jobs = work(orders, per_s, seed)
    policies: dict[str, tuple[Policy, bool]] = {
        "turns": (turns(), False),
        "least load": (least_load, True),
        "scores": (scores, True),
    }
    return {
        name: Simulation(fleet(drones, seed), policy, moves=moves).run(jobs)
        for name, (policy, moves) in policies.items()
    }


def table(orders: int, drones: int) -> list[str]:
    """The figures of all policies, in lines of Markdown."""
    lines = [
        "| slots used | policy | makespan min | wait mean s | wait p95 s | clones | cloned GB |",
        "|---|---|---|---|---|---|---|",
    ]
    for used in (0.6, 0.9, 1.1):
        for name, each in compared(orders, drones, used).items():
            waits = f"{each.makespan_s / 60:.0f} | {each.wait_mean_s:.0f} | {each.wait_p95_s:.0f}"
            lines.append(f"| {used:.0%} | {name} | {waits} | {each.clones} | {each.cloned_mb / 1000:.0f} |")
    return lines


if __name__ == "__main__":
    sys.stdout.write("\n".join(table(*(int(each) for each in (*sys.argv[1:], "10000", "200")[:2]))) + "\n")
