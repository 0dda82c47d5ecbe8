"""Why there is no money for a call, in sentences for people."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from control_plane.spending.accounts import Account
from control_plane.spending.figures import in_dollars
from control_plane.spending.periods import end_of

_PER = {"day": "per day", "month": "per month", "total": "in total"}


def said_short(name: str, account: Account, now: datetime) -> str:
    """Which budget has too little left, how much it has, and what would change that."""
    budget = account.budget
    limit = f"{in_dollars(budget.limit_nusd)} {_PER[budget.per]}"
    used = f"{in_dollars(account.spent)} spent, {in_dollars(account.reserved)} reserved for running calls"
    renewed = end_of(budget.per, budget.zone, now)
    again = "" if renewed is None else f" It begins again at {_time(renewed, budget.zone)}."
    command = f"fleet budget set {budget.kind} {name} USD --per {budget.per}"
    return f"The budget of {budget.kind} {name} has too little left: {limit}, {used}.{again} To raise it: {command}"


def said_waiting(name: str, account: Account, *, others_first: bool) -> str:
    """What a run waits for. Without figures that change: how long it waits is counted while the text is the same."""
    budget = account.budget
    limit = f"{in_dollars(budget.limit_nusd)} {_PER[budget.per]}"
    order = ", and some of them have waited longer" if others_first else ""
    return f"other orders hold what is left of the budget of {budget.kind} {name} ({limit}){order}"


def said_unpriced(model: str) -> str:
    """Why a model cannot be used where a budget applies."""
    return (
        f"A budget applies, and the price of {model} is unknown. "
        f"To set it: fleet price set {model} --input USD --output USD (per million tokens)"
    )


def _time(moment: datetime, zone: str) -> str:
    return f"{moment.astimezone(ZoneInfo(zone) if zone != 'UTC' else UTC):%Y-%m-%d %H:%M} {zone}"
