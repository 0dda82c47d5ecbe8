"""A model that writes terminal codes, hidden characters and markup wherever a person reads what it did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx

from tests.hostile.hostile_work import Try, line
from tests.support.hostile_server import EVIL
from tests.support.terminals import acting, running
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import WholeFleet

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)><a href=javascript:alert(1)>concealed</a>&#x202e;"
TEXT = f"{EVIL} {MARKUP}"
NAME = f"{EVIL} <img src=x onerror=alert(1)>"
"""As a file's name."""
BRANCH = "concealed<img/src=x/onerror=alert(1)>\u202e\u200b"
"""As git allows it."""
_LIVE = re.compile(r"<(script|img|a)[^>]*(alert|onerror|javascript)", re.IGNORECASE)
"""Markup that a browser would obey."""


def tries() -> Iterator[Try]:
    """Each puts the text into another place. What the model says and thinks with the last one holds it, too."""
    yield line("print it", f"printf '%s\\n' '{TEXT}'", "concealed")
    yield line("hide a command behind a line end", "true concealed\r: make test", ".")
    yield Try("write it into a file", "file_write", {"path": "evil.txt", "content": f"{TEXT}\n" * 3}, ".")
    yield Try("read it from a file", "file_read", {"mode": "lines", "path": "evil.txt", "start_line": 1}, "concealed")
    yield line("name a file so", f"echo x > '{NAME}'", ".")
    yield line("commit it, as an author of that name", _commit(), ".")
    yield line("name a branch so", f"git branch '{BRANCH}' && git branch --list", "concealed")
    yield Try("list it as a task", "todo", {"items": [{"text": TEXT, "status": "in_progress"}]}, "noted")
    yield Try("call a tool of that name", TEXT, {"command": "id"}, "no tool named|name")
    yield line("work on after it", "echo works", "works")
    yield Try("use it as an argument's name", "shell", {"command": "id", TEXT: TEXT}, "Error|argument")


def _commit() -> str:
    return f"git add -A && git -c user.name='{NAME}' -c user.email=x@y.test commit -qm '{TEXT}'"


def shown(fleet: WholeFleet, order: dict[str, Any], live: str) -> dict[str, str]:
    """What people see of an order, by where. `live`: what `fleet follow` printed while it ran."""
    printed = {f"fleet {word}": on_terminal(fleet, word, order["id"]) for word in ("show", "follow", "patch")}
    return {"fleet follow, live": live, **printed, **_pages(fleet, order["id"])}


def on_terminal(fleet: WholeFleet, *words: str) -> str:
    """All that a command writes to a terminal until it ends."""
    variables = {name: value for name, value in fleet.environment.items() if name != "NO_COLOR"}
    variables |= {"TERM": "xterm-256color", "PAGER": "cat"}
    with running([*FLEET, *words], variables, columns=200, rows=2000) as (screen, process):
        process.wait(120)
    return screen.raw.decode()


def _pages(fleet: WholeFleet, order_id: str) -> dict[str, str]:
    with httpx.Client(base_url=fleet.url, follow_redirects=True, timeout=60) as browser:
        browser.post("/login", data={"token": fleet.token})
        addresses = {"the order's page": f"/orders/{order_id}", "the inbox": "/"}
        return {place: browser.get(address).raise_for_status().text for place, address in addresses.items()}


def problems_in(places: dict[str, str]) -> Iterator[str]:
    """What acts or hides in a place, and places that show nothing of it."""
    for place, text in places.items():
        found = [*acting(text), *_LIVE.findall(text if place.startswith("the ") else "")]
        yield from (f"{place}: {each!r}" for each in found[:5])
        if "concealed" not in text and place != "the inbox":
            yield f"{place}: shows nothing of it"
