"""What really travels over a link: the TCP segments of a network interface, read as they pass."""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_ALL_PROTOCOLS = 3
_IPV4 = 0x0800
_BUFFER = 32 * 1024 * 1024
_SYN, _SYN_AND_ACK = 0x02, 0x12

Flow = tuple[bytes, int, bytes, int]
"""Source address and port, destination address and port."""


@dataclass
class Capture:
    """What was seen, in both directions."""

    words: re.Pattern[bytes]
    """What must not be seen."""
    first: dict[Flow, bytes] = field(default_factory=dict)
    """The first bytes of each direction of each connection."""
    ports: set[int] = field(default_factory=set)
    """To which something connected."""
    found: set[bytes] = field(default_factory=set)
    bytes_seen: int = 0

    def not_tls(self) -> list[Flow]:
        """The directions of connections that did not begin with the record of a TLS handshake, of any version."""
        return [flow for flow, data in self.first.items() if data and not data.startswith(b"\x16\x03")]

    def add(self, frame: bytes) -> None:
        """Take note of one frame."""
        if len(frame) < 34 or struct.unpack_from("!H", frame, 12)[0] != _IPV4 or frame[23] != socket.IPPROTO_TCP:
            return
        begin = 14 + (frame[14] & 15) * 4
        end = 14 + struct.unpack_from("!H", frame, 16)[0]
        source, target = struct.unpack_from("!HH", frame, begin)
        data = frame[begin + (frame[begin + 12] >> 4) * 4 : end]
        flow = frame[26:30], source, frame[30:34], target
        if frame[begin + 13] & _SYN_AND_ACK == _SYN:
            self.ports.add(target)
        if frame[begin + 13] & _SYN:
            # A port that is used again.
            self.first[flow] = b""
        if data:
            self.first[flow] = self.first.get(flow) or data[:8]
            self.found.update(self.words.findall(data))
            self.bytes_seen += len(data)


@contextmanager
def capturing(interface: str, words: Sequence[bytes]) -> Iterator[Capture]:
    """Read what passes an interface within the block; `words` must be absent. Only root may."""
    capture = Capture(re.compile(b"|".join(map(re.escape, words))))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS)) as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        link.bind((interface, 0))
        link.settimeout(0.5)
        over = threading.Event()

        def read() -> None:
            while not over.is_set():
                # ENETDOWN while the link is cut: it is up again later.
                with suppress(OSError):
                    capture.add(link.recv(262_144))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield capture
        finally:
            over.set()
            reader.join()
