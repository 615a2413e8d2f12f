"""Walks over the records of a capture file, piece by piece.

    first bytes ──► form_of ──► CaptureForm
    Walker(path, form, where to begin) ──► PacketRecords, piece by piece ──► sources.capture.index (counts them)
                                                                       └──► sources.capture.columns (reads them)

It reads pcap in both byte orders, with micro- and nanoseconds, and pcapng. A packet of a pcapng file needs what stands
before it: a section and its interfaces. A `Section` says where these are, so that a walk can begin in the middle.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import FileIO
from typing import Any

import numpy as np

from penstock.errors import SourceError
from penstock.kernels.packets import capture as kernels
from penstock.kernels.packets.capture import PacketRecords
from penstock.sources.files import unreadable

Array = np.ndarray[Any, Any]
PIECE = 1 << 18  # bytes looked at in one go: they stay in a core's cache while columns are taken out of them
HEAD = 24
PCAPNG = b"\n\r\r\n"
# First four bytes: byte order, nanoseconds, bytes of a record's header.
MAGICS = {
    b"\xd4\xc3\xb2\xa1": (False, False, 16),
    b"\xa1\xb2\xc3\xd4": (True, False, 16),
    b"\x4d\x3c\xb2\xa1": (False, True, 16),
    b"\xa1\xb2\x3c\x4d": (True, True, 16),
    b"\x34\xcd\xb2\xa1": (False, False, 24),  # a patched libpcap: eight more bytes a record
    b"\xa1\xb2\xcd\x34": (True, False, 24),
}
LINK_TYPE = 0x03FFFFFF  # the bits above say other things
NEVER, DOUBTFUL, ALWAYS = range(3)


@dataclass(frozen=True)
class CaptureForm:
    """How a file is written; `numbers` is `form` of the pcap kernel, empty for pcapng."""

    numbers: tuple[int, ...]

    @property
    def start(self) -> int:
        """Where the first record is."""
        return HEAD if self.numbers else 0


@dataclass(frozen=True)
class Section:
    """Places and sizes of the blocks that describe a section and its interfaces so far."""

    blocks: tuple[tuple[int, int], ...] = ()


def form_of(head: bytes, name: str) -> CaptureForm:
    """From the first bytes of a file."""
    if head.startswith(PCAPNG):
        return CaptureForm(())
    known = MAGICS.get(head[:4])
    if known is None:
        seen = head[:4].hex(" ") or "nothing"
        raise SourceError(
            f"'{name}' is not a capture: it begins with {seen}", "pcap: reads pcap and pcapng, also compressed"
        )
    big, nano, header = known
    minor, link = struct.unpack_from(">H12xI" if big else "<H12xI", head, 6)
    # Before version 2.3 the lengths stood the other way round, in 2.3 sometimes.
    swap = ALWAYS if minor < 3 else DOUBTFUL if minor == 3 else NEVER
    return CaptureForm((int(big), int(nano), header, swap, link & LINK_TYPE))


class Walker:
    """Goes over the records of bytes [at, stop) of a file.

    `data` holds the bytes at hand, the first of which is byte `base` of the file. `tail` says whether what is left
    at the end, less than a record, is a record that cannot be read, or not yet one. `each` sees the bytes passed.
    """

    def __init__(
        self,
        path: str,
        form: CaptureForm,
        at: int,
        stop: int,
        section: Section,
        tail: bool = True,
        each: Callable[[memoryview], None] | None = None,
        piece: int = PIECE,
    ) -> None:
        self.data = np.empty(piece + kernels.ROOM, np.uint8)
        self._piece = piece
        self.base, self.end = at, 0
        self.state = np.zeros(kernels.STATE, np.int64)
        self._path, self._form, self._stop, self._tail = path, np.array(form.numbers, np.int64), stop, tail
        self._each, self.passed = each, at  # up to which byte `each` has seen
        self._links, self._units = np.zeros((2, kernels.MOST_INTERFACES), np.int32)
        self._seconds, self._snaps = np.zeros((2, kernels.MOST_INTERFACES), np.int64)
        try:
            self._file = FileIO(path)
            self._recall(section)
            self._file.seek(at)
        except OSError as error:
            raise unreadable(path, error) from error

    @property
    def at(self) -> int:
        """The byte of the file up to which records have been passed."""
        return self.base + min(int(self.state[kernels.AT]), self.end)

    @property
    def done(self) -> int:
        """DAMAGED or CUT, if the file ended so."""
        done = int(self.state[kernels.DONE])
        return done if done != kernels.WAITING else 0

    @property
    def met(self) -> tuple[int, int, int] | None:
        """(kind, place, size) of the describing block that was just passed."""
        if not self.state[kernels.MET]:
            return None
        kind, place, size = (int(self.state[index]) for index in (kernels.MET, kernels.PLACE, kernels.BYTES))
        return kind, self.base + place, size

    def pieces(self, records: PacketRecords) -> Iterator[int]:
        """Fill `records` again and again; yields how many rows there are, 0 where only a description was passed."""
        try:
            while True:
                count = self._next(records, self._stop - self.base)
                if count or self.state[kernels.MET]:
                    yield count
                elif self._ended or self.state[kernels.DONE]:
                    self._pass()
                    return
                else:
                    self._refill()
        finally:
            self._file.close()

    @property
    def _ended(self) -> bool:
        return self.base + self.end >= self._stop

    def _next(self, records: PacketRecords, limit: int) -> int:
        """Go on; the file's bytes end at `limit`, as those at hand are counted."""
        out = records.columns()
        if len(self._form):
            final = self._tail and self.end >= limit
            found = kernels.pcap_records(self.data, self.end, final, self.state, self._form, out)
        else:
            tables = (self._links, self._units, self._seconds, self._snaps)
            found = kernels.pcapng_records(self.data, self.end, limit, self._tail, self.state, *tables, out)
        return int(found)

    def _pass(self) -> int:
        """Let `each` see what was passed; returns how much of the bytes at hand that is."""
        passed = min(int(self.state[kernels.AT]), self.end)
        if self._each is not None and passed:
            self._each(self.data[:passed].data)
        self.passed += passed
        return passed

    def _refill(self) -> None:
        passed = self._pass()
        left = self.end - passed
        self.data[:left] = self.data[passed : self.end]
        self.base += passed
        self.state[kernels.AT] -= passed
        self.end = left
        room = min(self._piece, self._stop - self.base - left)
        try:
            count = self._file.readinto(self.data[left : left + room].data)
        except OSError as error:
            raise unreadable(self._path, error) from error
        self.end += count
        if not count:  # the file is shorter than it was
            self._stop = self.base + self.end

    def _recall(self, section: Section) -> None:
        """Read a section's descriptions again."""
        records = PacketRecords(1)
        for place, size in section.blocks:
            self._file.seek(place)
            self.state[kernels.AT] = 0
            self.end = self._file.readinto(self.data[:size].data)
            self._next(records, kernels.LONGEST_BLOCK)
        self.state[kernels.AT] = self.end = 0
