"""The tables of the policy file with rules for orders, the disk and commands, and the lines of their settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ByteSize, ConfigDict, Field

from drone.installation.key_addresses import is_key_address
from drone.installation.owner_rules.rules import RUN_DAYS, KeepRules, OrderRules, SpendRules
from drone.installation.owner_rules.times import Hours, read_hours
from drone.installation.owner_rules.when import When
from drone.sandbox.resources import ResourceLimits
from shared.work_order import Mode

VERSION = 1
_HEADER = re.compile(r"\s*\[\s*([\w-]+)\s*\]")
_KEY = re.compile(r"""\s*["']?([\w-]+)["']?\s*(?:\.\s*["']?([\w-]+)["']?\s*)?=""")


def _address(text: str) -> str:
    if not is_key_address(text):
        raise ValueError(text)
    return text


def _spaced(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(" ".join(each.split()) for each in patterns)


Some = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
SomeHours = Annotated[tuple[Annotated[Hours, BeforeValidator(read_hours)], ...], Field(min_length=1)]
Amount = Annotated[float, Field(ge=0)]
Days = Annotated[int, Field(ge=1, strict=True)] | Literal["none"]
Minutes = Annotated[int, Field(ge=0, strict=True)] | Literal["none"]
Space = Annotated[ByteSize, Field(ge=1024 * 1024)] | Literal["none"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=False, arbitrary_types_allowed=True)


class OrderTable(_Table):
    organizations: Some | None = None
    modes: Annotated[tuple[Mode, ...], Field(min_length=1)] | None = None
    tools: Some | None = None


class CommandTable(_Table):
    refuse: Annotated[Some, AfterValidator(_spaced)] = ()


class SandboxTable(_Table):
    allow: Annotated[tuple[Literal["bwrap", "docker", "none"], ...], Field(min_length=1)] | None = None
    image: Annotated[str, Field(pattern=r"^[\w][\w./:@-]*$")] = ""


class WhenTable(_Table):
    hours: SomeHours = ()
    on_mains: Annotated[bool, Field(strict=True)] = False
    idle_minutes: Amount = 0
    free_cpus: Amount = 0
    free_memory: ByteSize = ByteSize(0)
    free_disk: ByteSize = ByteSize(0)

    def when(self) -> When:
        return When(**{name: getattr(self, name) for name in type(self).model_fields})


class SpendTable(_Table):
    usd_per_day: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    unpriced: tuple[Annotated[str, AfterValidator(_address)], ...] = ()

    def rules(self) -> SpendRules:
        return SpendRules(self.usd_per_day, self.unpriced)


class KeepTable(_Table):
    run_days: Annotated[int, Field(ge=RUN_DAYS, strict=True)] | Literal["none"] = RUN_DAYS
    workspace_days: Days = 30
    mirror_days: Days = 30
    workspace_space: Space = "none"
    mirror_space: Space = "none"
    model_library_minutes: Minutes = 15

    def rules(self) -> KeepRules:
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return KeepRules(**_lifted(given))


class LimitTable(_Table):
    """What is not named keeps its default, which depends on the machine."""

    memory: Space | None = None
    processes: Annotated[int, Field(ge=16, strict=True)] | Literal["none"] | None = None
    cpus: Annotated[float, Field(ge=0.05)] | None = None
    file_size: Space | None = None
    disk: Space | None = None

    def limits(self) -> ResourceLimits:
        return ResourceLimits(**_lifted(self.model_dump(exclude_unset=True)))


def _lifted(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a table, with None for what has no limit."""
    return {name: None if value == "none" else value for name, value in given.items()}


class Tables(_Table):
    """What these tables may contain; those of other modules are not among them."""

    orders: OrderTable = OrderTable()
    commands: CommandTable = CommandTable()
    sandbox: SandboxTable = SandboxTable()
    when: WhenTable = WhenTable()
    spend: SpendTable = SpendTable()
    keep: KeepTable = KeepTable()
    limits: LimitTable = LimitTable()

    def rules(self, repositories: tuple[str, ...] | None) -> OrderRules:
        return OrderRules(
            repositories=repositories,
            organizations=self.orders.organizations,
            modes=self.orders.modes,
            tools=self.orders.tools,
            commands=self.commands.refuse,
        )


_A_SIZE = 'a size of at least "1 MiB", such as "{}", or "none"'
EXPECTED: Mapping[str, str] = {
    "orders.organizations": "names of organizations, with * and ? as patterns",
    "orders.modes": "some of plan, build, test, ship, develop",
    "orders.tools": "names of tools, with * and ? as patterns",
    "commands.refuse": 'patterns of command lines, such as "git push*"',
    "sandbox.allow": "some of bwrap, docker, none",
    "sandbox.image": 'the name of a container image, such as "dronefleet-sandbox"',
    "when.hours": 'local times such as "Mon-Fri 20:00-07:00" or "Sat,Sun"',
    "when.on_mains": "true or false",
    "when.idle_minutes": "a number of minutes",
    "when.free_cpus": "a number of processors",
    "when.free_memory": 'a size such as "4 GiB"',
    "when.free_disk": 'a size such as "20 GB"',
    "keep.run_days": 'a number of days from 7 on, or "none" to keep them for ever',
    "keep.workspace_days": 'a number of days from 1 on, or "none" to keep them for ever',
    "keep.mirror_days": 'a number of days from 1 on, or "none" to keep them for ever',
    "keep.workspace_space": _A_SIZE.format("50 GB"),
    "keep.mirror_space": _A_SIZE.format("50 GB"),
    "spend.usd_per_day": "an amount in USD",
    "spend.unpriced": 'addresses of models, such as "http://127.0.0.1:8000"',
    "limits.memory": _A_SIZE.format("8 GiB"),
    "limits.processes": 'a number of at least 16, or "none"',
    "limits.cpus": "a number of cores of at least 0.05",
    "limits.file_size": _A_SIZE.format("8 GiB"),
    "limits.disk": _A_SIZE.format("8 GiB"),
}
"""Every setting of these tables, and what it takes."""


def lines_of(text: str) -> dict[str, int]:
    """The line of each `table.key` in a TOML text, and of each table; keys in inline tables are not among them."""
    table, found = "", dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = header[1]
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            name = ".".join(part for part in (table, key[1], key[2]) if part)
            found.setdefault(name, number)
    return found


def setting_of(place: tuple[Any, ...]) -> str:
    """The setting in which a validation error is: the first two names of its place."""
    return ".".join(str(part) for part in place[:2])
