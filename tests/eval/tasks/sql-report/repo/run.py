"""Runs report.sql on sample data."""

import sqlite3
from pathlib import Path


def run(customers, orders, items):
    with sqlite3.connect(":memory:") as database:
        database.executescript(Path("schema.sql").read_text())
        database.executemany("INSERT INTO customer VALUES (?, ?)", customers)
        database.executemany('INSERT INTO "order" VALUES (?, ?, ?)', orders)
        database.executemany("INSERT INTO item VALUES (?, ?)", items)
        return database.execute(Path("report.sql").read_text()).fetchall()


if __name__ == "__main__":
    for row in run([(1, "Ada"), (2, "Bob")], [(1, 1, 1)], [(1, 100), (1, 50)]):
        print(*row)
