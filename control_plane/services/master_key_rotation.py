"""Rotates the master key while the control plane works: everything sealed under the old one is sealed again."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from sqlalchemy import Column, Table, select, update

from control_plane.core import Core
from control_plane.core.master_key import MasterKeyFile, new_master_key
from control_plane.core.vault import Purpose
from control_plane.db.audit_chain import AuditEntry, append
from control_plane.db.metadata import METADATA
from shared.errors import FleetError, NotFound, Precondition

Step = Literal["added", "resealed", "settled", "dropped"]
ACTION = "rotate_master_key"
SETTLE_SECONDS = 10.0
"""How long a process may take to store what it sealed under the old key just before the new one was added."""
_AT_ONCE = 100


@dataclass(frozen=True)
class Rotation:
    """What a rotation did."""

    secrets: int
    """Texts of the database that were sealed again."""
    checkpoints: int
    """Files that were sealed again."""
    unreadable: int
    """Secrets and files that no key opens; they were left as they are."""
    dropped: int
    """Old keys that were removed; 0 if they are in a variable, which only its owner can change."""


@dataclass(frozen=True)
class SealedCount:
    """How many stored things each master key seals."""

    secrets: Counter[bytes | None]
    """By key; None for those that no key opens."""
    checkpoints: Counter[bytes | None]

    @property
    def unreadable(self) -> int:
        return self.secrets[None] + self.checkpoints[None]


def rotate_master_key(core: Core, pause: Callable[[float], None], done: Callable[[Step], None]) -> Rotation:
    """Seal everything under a new master key and remove the old one, or continue a rotation that was interrupted.

    The file has the new key first and the old one after it meanwhile: processes read it at each use, so whatever is
    sealed under either of them opens, and a process that is killed at any point loses nothing. `done` is called after
    each step. Raises Precondition if the file cannot be written or its key is not that of this database, Conflict while
    another process rotates it.
    """
    if core.settings.master_key or core.settings.master_key_file is None:
        return _reseal_under_variable(core, pause, done)
    file = MasterKeyFile(core.settings.master_key_file)
    with file.alone():
        keys = file()
        _require_own_key(core)
        with _recorded(core):
            if len(keys) == 1:
                keys = (new_master_key(), *keys)
                file.replace(keys)
                done("added")
            secrets, checkpoints = _reseal(core, pause, done)
            file.replace(keys[:1])
            done("dropped")
    return Rotation(secrets, checkpoints, count_sealed(core).unreadable, len(keys) - 1)


def count_sealed(core: Core) -> SealedCount:
    """Count what is sealed under each key; this decrypts everything."""
    secrets: Counter[bytes | None] = Counter()
    for table, column in _sealed_columns():
        for _, sealed in _rows(core, table, column):
            secrets[core.vault.key_at_rest(sealed, purpose_of(column))] += 1
    return SealedCount(secrets, Counter(_checkpoint_keys(core)))


def _reseal_under_variable(core: Core, pause: Callable[[float], None], done: Callable[[Step], None]) -> Rotation:
    """The step of a rotation with a variable that is not its owner's: seal everything under the first of its keys."""
    if len(core.vault.keys()) == 1:
        raise Precondition(
            "the master key is in FLEET_MASTER_KEY, which this command cannot change",
            code="E-KEYS-VARIABLE",
            why="only the owner of the variable can add a key to it",
            next="add a new key after it (FLEET_MASTER_KEY=OLD,NEW) and restart every process; then exchange the two,"
            " restart again, and repeat this command",
        )
    _require_own_key(core)
    with _recorded(core):
        secrets, checkpoints = _reseal(core, pause, done)
    return Rotation(secrets, checkpoints, count_sealed(core).unreadable, 0)


def _require_own_key(core: Core) -> None:
    """Raise Precondition if the control plane's own keys cannot be opened: it is the key of another database."""
    with core.database.read() as db:
        core.vault.box_keys(db)


@contextlib.contextmanager
def _recorded(core: Core) -> Iterator[None]:
    """Record the beginning and the end: of a rotation that is cut off, which changed something, the first remains."""
    entry = AuditEntry(core.clock.now(), "control plane", "system", ACTION, door="control plane")
    _record(core, replace(entry, outcome="began"))
    try:
        yield
    except Exception as error:
        code = error.code if isinstance(error, FleetError) else "E-UNEXPECTED"
        with contextlib.suppress(FleetError):  # the error itself says more
            _record(core, replace(entry, at=core.clock.now(), outcome="failed", code=code))
        raise
    _record(core, replace(entry, at=core.clock.now()))


def _record(core: Core, entry: AuditEntry) -> None:
    with core.database.write() as db:
        append(db, entry)


def _reseal(core: Core, pause: Callable[[float], None], done: Callable[[Step], None]) -> tuple[int, int]:
    """Seal again until nothing is left, also of what other processes stored meanwhile; texts and files."""
    secrets, checkpoints = _reseal_all(core)
    done("resealed")
    pause(SETTLE_SECONDS)
    while any(late := _reseal_all(core)):
        secrets, checkpoints = secrets + late[0], checkpoints + late[1]
    done("settled")
    return secrets, checkpoints


def _reseal_all(core: Core) -> tuple[int, int]:
    secrets = sum(_reseal_column(core, table, column) for table, column in _sealed_columns())
    checkpoints = 0
    for name in core.blobs.sealed_names():
        with contextlib.suppress(Precondition):
            checkpoints += core.blobs.reseal(name, core.vault.reseal_content)
    return secrets, checkpoints


def _reseal_column(core: Core, table: Table, column: Column[Any]) -> int:
    """Seal the old texts of a column again; one that another process replaces meanwhile is left to the next round."""
    old = []
    for keys, sealed in _rows(core, table, column):
        with contextlib.suppress(Precondition):
            resealed = core.vault.reseal_at_rest(sealed, purpose_of(column))
            if resealed != sealed:
                old.append((keys, sealed, resealed))
    for begin in range(0, len(old), _AT_ONCE):
        with core.database.write() as db:
            for keys, sealed, resealed in old[begin : begin + _AT_ONCE]:
                same = [part == value for part, value in zip(table.primary_key.columns, keys, strict=True)]
                db.execute(update(table).where(*same, column == sealed).values({column: resealed}))
    return len(old)


def _rows(core: Core, table: Table, column: Column[Any]) -> list[tuple[tuple[Any, ...], str]]:
    """The primary key and the sealed text of each row that has one."""
    with core.database.read() as db:
        rows = db.execute(select(*table.primary_key.columns, column).where(column.is_not(None)))
        return [(tuple(row[:-1]), row[-1]) for row in rows]


def _sealed_columns() -> Iterator[tuple[Table, Column[Any]]]:
    """Every column whose name begins with `sealed_`: whatever is sealed under the master key has such a name."""
    for table in METADATA.sorted_tables:
        for column in table.columns:
            if column.name.startswith("sealed_"):
                yield table, column


def purpose_of(column: Column[Any]) -> Purpose:
    """What the texts of a column are sealed for."""
    return cast(Purpose, str(column))


def _checkpoint_keys(core: Core) -> Iterator[bytes | None]:
    for name in core.blobs.sealed_names():
        with contextlib.suppress(NotFound):  # deleted meanwhile
            yield core.blobs.read_sealed(name, core.vault.key_of)
