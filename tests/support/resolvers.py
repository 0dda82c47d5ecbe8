"""A name server on loopback whose answers a test decides, with other ones from look-up to look-up."""

from __future__ import annotations

import ipaddress
import secrets
import socketserver
import struct
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

Answers = Sequence[Sequence[str]]
"""The addresses of the first look-up, of the second and so on; the last ones stay."""
_HEAD = struct.Struct("!6H")
_A, _AAAA, _CNAME = 1, 28, 5
_NO_SUCH_NAME = 3


class NameServer(socketserver.UDPServer):
    """Answers for `names`, and for `aliases` with the name that they stand for; other names do not exist."""

    def __init__(self, names: Mapping[str, Answers], aliases: Mapping[str, str]) -> None:
        # Port 53, at an address of loopback that no other server has.
        self.address = f"127.{53 + secrets.randbelow(200)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
        self.names, self.aliases = names, aliases
        self.looked_up: Counter[tuple[str, int]] = Counter()
        super().__init__((self.address, 53), _Question)

    def records(self, name: str, kind: int) -> list[bytes] | None:
        """The records of an answer; None for a name that does not exist."""
        target = self.aliases.get(name)
        if target is not None:
            return [_record(_CNAME, _spelled(target)), *self._addresses(target, kind, _spelled(target))]
        return self._addresses(name, kind, b"\xc0\x0c") if name in self.names else None

    def _addresses(self, name: str, kind: int, owner: bytes) -> list[bytes]:
        each_time = self.names[name]
        found = each_time[min(self.looked_up[name, kind], len(each_time) - 1)]
        self.looked_up[name, kind] += 1
        version = {_A: 4, _AAAA: 6}.get(kind)
        addresses = [address for address in map(ipaddress.ip_address, found) if address.version == version]
        return [_record(kind, address.packed, owner) for address in addresses]


class _Question(socketserver.BaseRequestHandler):
    server: NameServer

    def handle(self) -> None:
        packet, answering = self.request
        number = _HEAD.unpack_from(packet)[0]
        end = packet.index(b"\0", _HEAD.size)
        question = packet[_HEAD.size : end + 5]
        (kind,) = struct.unpack_from("!H", packet, end + 1)
        records = self.server.records(_read_name(packet[_HEAD.size : end]), kind)
        code = _NO_SUCH_NAME if records is None else 0
        head = _HEAD.pack(number, 0x8580 | code, 1, len(records or ()), 0, 0)
        answering.sendto(head + question + b"".join(records or ()), self.client_address)


@contextmanager
def name_server(names: Mapping[str, Answers], aliases: Mapping[str, str]) -> Iterator[NameServer]:
    """Such a server for the duration of the block."""
    with NameServer(names, aliases) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _record(kind: int, content: bytes, owner: bytes = b"\xc0\x0c") -> bytes:
    """Valid for no time, so that each use of the name looks it up. `owner`: as asked, unless it says otherwise."""
    return owner + struct.pack("!HHIH", kind, 1, 0, len(content)) + content


def _spelled(name: str) -> bytes:
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def _read_name(labels: bytes) -> str:
    parts = []
    while labels:
        size = labels[0]
        parts.append(labels[1 : 1 + size].decode())
        labels = labels[1 + size :]
    return ".".join(parts).lower()
