"""One drone's stream in Redis, read once and in order. Acknowledged entries are deleted: the rest is pending work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import redis

from control_plane.broker.broker import Broker
from shared import names

_CONSUMER = "collector"
"""One name for all collectors: a new owner of the stream finds entries that the previous one did not acknowledge."""
_CHUNK = 500
_READ_BYTES = 16 * 1024 * 1024
"""The most that one read brings into this process."""
_ENTRY_BYTES = 1024 * 1024
"""A larger entry is no drone's event, and is never read: sealed events have at most 256 kB."""

# A drone may write anything into its stream. While the stream is small, one read of all of it is too. Otherwise the
# server measures the entries that the read would return, one at a time, and only their number leaves it, or the size
# and digest of a first entry that is too large.
_MEASURE = """
local used = redis.call('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', 0)
if not used or used <= tonumber(ARGV[4]) then return {tonumber(ARGV[3])} end
local from = ARGV[2]
if from == '>' then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    if group[2] == ARGV[1] then
      for i = 1, #group, 2 do if group[i] == 'last-delivered-id' then from = group[i + 1] end end
    end
  end
  if from == '>' then return {1} end
end
local total, number = 0, 0
while number < tonumber(ARGV[3]) do
  local entry = redis.call('XRANGE', KEYS[1], '(' .. from, '+', 'COUNT', 1)[1]
  if not entry then break end
  local size = 0
  for _, text in ipairs(entry[2]) do size = size + #text end
  if size > tonumber(ARGV[5]) then
    if number > 0 then break end
    return {0, entry[1], size, redis.sha1hex(table.concat(entry[2]))}
  end
  total = total + size
  if number > 0 and total > tonumber(ARGV[4]) then break end
  number, from = number + 1, entry[1]
end
return {math.max(number, 1)}
"""
_FIND_HELLO = """
local found = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])
for _, entry in ipairs(found) do
  for i = 1, #entry[2], 2 do if entry[2][i] == 't' and entry[2][i + 1] == 'hello' then return {1, ''} end end
end
if #found < tonumber(ARGV[2]) then return {0, ''} end
return {0, found[#found][1]}
"""


@dataclass(frozen=True)
class StreamEntry:
    """One entry of the stream, unparsed."""

    id: str
    fields: dict[str, str]
    too_large: str = ""
    """The size and digest of an entry that was not read; its fields are empty."""


class DroneStream:
    """The stream of one drone, read by its owner."""

    def __init__(self, broker: Broker, drone_id: str) -> None:
        self._broker = broker
        self._stream = names.events_stream(drone_id)
        self._pending_from: str | None = "0"
        self._measure = broker.redis.register_script(_MEASURE)

    def read(self, count: int) -> list[StreamEntry]:
        """Up to `count` entries and 16 MiB: first those that were read before and not acknowledged, then new ones.

        A missing group (a new stream, or Redis was emptied) is created and reads from the beginning.
        """
        with self._broker.reaching():
            try:
                return self._read(count)
            except redis.ResponseError as error:
                if "NOGROUP" not in str(error):
                    raise
                self._make_group()
                return self._read(count)

    def reread(self) -> None:
        """Let the next reads begin with unacknowledged entries."""
        self._pending_from = "0"

    def acknowledge(self, ids: Sequence[str]) -> None:
        """Remove entries that are in the database from the group's pending list and the stream."""
        if not ids:
            return
        with self._broker.reaching(), self._broker.redis.pipeline(transaction=True) as pipe:
            pipe.xack(self._stream, names.EVENTS_GROUP, *ids)
            pipe.xdel(self._stream, *ids)
            pipe.execute()

    def _read(self, count: int) -> list[StreamEntry]:
        if self._pending_from is not None:
            found = self._read_from(self._pending_from, count)
            self._pending_from = found[-1].id if found else None
            if found:
                return found
        return self._read_from(">", count)

    def _read_from(self, position: str, count: int) -> list[StreamEntry]:
        args: list[Any] = [names.EVENTS_GROUP, position, count, _READ_BYTES, _ENTRY_BYTES]
        safe, *large = cast("list[Any]", self._measure(keys=[self._stream], args=args))
        if large:
            entry_id, size, digest = large
            return [StreamEntry(str(entry_id), {}, f"{size} bytes, SHA-1 {digest}")]
        count = int(safe)
        streams: dict[Any, Any] = {self._stream: position}
        answer = cast("Any", self._broker.redis.xreadgroup(names.EVENTS_GROUP, _CONSUMER, streams, count=count))
        # The client answers with a list of pairs or a mapping, depending on the protocol version.
        pairs = list(answer.items()) if isinstance(answer, dict) else answer or []
        found = [entry for _, entries in pairs for entry in _flat(entries)]
        # An entry that was deleted while it was pending has no fields.
        return [StreamEntry(str(entry_id), dict(fields or {})) for entry_id, fields in found]

    def _make_group(self) -> None:
        try:
            self._broker.redis.xgroup_create(self._stream, names.EVENTS_GROUP, id="0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        self.reread()


def _flat(entries: Any) -> Iterable[tuple[str, dict[str, str]]]:
    nested = bool(entries) and isinstance(entries[0], list)
    return [entry for part in entries for entry in part] if nested else entries


def has_later_hello(broker: Broker, drone_id: str, entry_id: str) -> bool:
    """Whether the drone said hello again after this entry. Called for hellos only, which are rare."""
    position = entry_id
    find = cast("Any", broker.redis.register_script(_FIND_HELLO))
    while True:
        with broker.reaching():
            found, position = find(keys=[names.events_stream(drone_id)], args=[position, _CHUNK])
        if found or not position:
            return bool(found)


def with_work(broker: Broker, drone_ids: Iterable[str]) -> set[str]:
    """The drones whose streams are not empty. Checks the length, which costs Redis almost nothing."""
    wanted, found = list(drone_ids), set[str]()
    for start in range(0, len(wanted), _CHUNK):
        part = wanted[start : start + _CHUNK]
        with broker.reaching(), broker.redis.pipeline(transaction=False) as pipe:
            for drone_id in part:
                pipe.xlen(names.events_stream(drone_id))
            lengths = pipe.execute()
        found |= {drone_id for drone_id, length in zip(part, lengths, strict=True) if length}
    return found
