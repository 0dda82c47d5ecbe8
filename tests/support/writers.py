"""A process that writes to a database together with others: `python -m tests.support.writers URL ORDER ROUNDS`.

It prints the numbers that it took. It waits for a line on stdin before it starts, so that all start at once.
"""

from __future__ import annotations

import json
import subprocess
import sys

from control_plane.db.engine import Database
from control_plane.db.orders import Order
from control_plane.orders.numbers import next_number
from control_plane.orders.status_changes import move_order
from shared.errors import Conflict
from shared.states import OrderStatus
from tests.support import warm_processes

_OTHER = {OrderStatus.QUEUED: OrderStatus.ASSIGNED, OrderStatus.ASSIGNED: OrderStatus.QUEUED}


def run_together(url: str, order_id: str, *, processes: int, rounds: int) -> list[list[int]]:
    """Start this many of these processes at once, and return the numbers that each took."""
    command = [sys.executable, "-m", "tests.support.writers", url, order_id, str(rounds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    started = [warm_processes.popen(command, **pipes) for _ in range(processes)]
    ready = [process.stdout.readline() for process in started if process.stdout]
    assert ready == [b"ready\n"] * processes
    for process in started:
        assert process.stdin
        process.stdin.write(b"go\n")
        process.stdin.flush()
    return [json.loads(process.communicate(timeout=100)[0]) for process in started]


def write(url: str, order_id: str, rounds: int) -> list[int]:
    """Take a number and move the order to its other state, `rounds` times."""
    database = Database(url)
    taken = []
    for _ in range(rounds):
        with database.write() as db:
            taken.append(next_number(db))
        while not _move(database, order_id):
            pass
    database.dispose()
    return taken


def _move(database: Database, order_id: str) -> bool:
    """Read the order, then write a change that depends on it: the pattern that loses writes without protection."""
    try:
        with database.write() as db:
            order = db.get_one(Order, order_id)
            move_order(db, order, _OTHER[OrderStatus(order.status)], generation=order.generation + 1)
    except Conflict:
        return False
    return True


if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(json.dumps(write(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
