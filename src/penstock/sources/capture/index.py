"""Counts the packets of a capture once, and remembers where every 4096th is, so that tasks can go there.

A file that is still being written has parts: what was whole at the first look, then what came since. Each part is a
`CaptureFile`, an entry of its own in the log of files.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import xxhash

from penstock.kernels.packets.capture import SECTION, PacketRecords
from penstock.sources.capture.walk import CaptureForm, Section, Walker
from penstock.sources.counted import file_digest
from penstock.state.arrivals import FileEntry

STRIDE, POINTS = 4096, 1024  # every 4096th packet is in the index; every 8192th where that would be too many, …


@dataclass(frozen=True)
class Points:
    """Number of packets, places of packets 0, stride, 2 · stride, …, and the number of the section of each."""

    rows: int
    stride: int
    places: tuple[int, ...]
    sections: tuple[int, ...]


@dataclass(frozen=True)
class CaptureFile:
    """Bytes [begin, stop) of a capture, after `before` packets of the same file.

    `size`, `mtime` (nanoseconds) and `digest` are of the file as it lies there, if it is packed, else of the part.
    The last of `sections` is the one in which the part ends. `member` is a file's name within an archive.
    """

    path: str
    member: str
    packed: bool
    begin: int
    stop: int
    size: int
    mtime: int
    digest: str
    before: int
    ended: int  # DAMAGED or CUT: the last row is where the file ended; 0: it may go on
    form: CaptureForm
    points: Points
    sections: tuple[Section, ...]

    @property
    def rows(self) -> int:
        return self.points.rows

    def entry(self) -> FileEntry:
        reading = {
            **{name: getattr(self, name) for name in PLAIN},
            "form": list(self.form.numbers),
            "stride": self.points.stride,
            "index": list(self.points.places),
            "of_section": list(self.points.sections),
            "sections": [list(map(list, section.blocks)) for section in self.sections],
        }
        return FileEntry(self.path, self.rows, self.size, self.digest, self.mtime, reading)

    @classmethod
    def of(cls, entry: FileEntry) -> CaptureFile:
        reading = entry.reading
        points = Points(entry.rows, reading["stride"], tuple(reading["index"]), tuple(reading["of_section"]))
        return cls(
            path=entry.path,
            size=entry.size,
            mtime=entry.mtime,
            digest=entry.digest,
            **{name: reading[name] for name in PLAIN},
            form=CaptureForm(tuple(reading["form"])),
            points=points,
            sections=tuple(Section(tuple((at, size) for at, size in blocks)) for blocks in reading["sections"]),
        )


PLAIN = ("member", "packed", "begin", "stop", "before", "ended")  # what an entry keeps as it is


@dataclass
class Counting:
    """What is found on the way."""

    section: Section
    rows: int = 0
    stride: int = field(default_factory=lambda: STRIDE)
    places: list[int] = field(default_factory=list)
    of_section: list[Section] = field(default_factory=list)

    def take(self, starts: np.ndarray, base: int) -> None:
        """Count rows that start at these places."""
        wanted = starts[-self.rows % self.stride :: self.stride]
        self.places += (wanted + base).tolist()
        self.of_section += [self.section] * len(wanted)
        self.rows += len(starts)
        while len(self.places) > POINTS:
            self.places, self.of_section, self.stride = self.places[::2], self.of_section[::2], self.stride * 2

    def meet(self, kind: int, place: int, size: int) -> None:
        before = () if kind == SECTION else self.section.blocks
        self.section = Section((*before, (place, size)))

    def points(self) -> tuple[Points, tuple[Section, ...]]:
        owners = self.of_section
        kept = list(dict.fromkeys([section for section in owners if section != self.section]))
        kept.append(self.section)
        number = {section: index for index, section in enumerate(kept)}
        points = Points(self.rows, self.stride, tuple(self.places), tuple(number[section] for section in owners))
        return points, tuple(kept)


@dataclass(frozen=True)
class CountedPart:
    """What counting found of a part, which goes up to byte `stop`."""

    points: Points
    sections: tuple[Section, ...]
    stop: int
    digest: str
    ended: int


def count(text: str, form: CaptureForm, begin: int, size: int, section: Section, tail: bool) -> CountedPart:
    """Walk over bytes [begin, size) of a capture; without `tail` only whole records are part of it."""
    digest, found, records = xxhash.xxh3_128(), Counting(section), PacketRecords(STRIDE * 2)
    walker = Walker(text, form, begin, size, section, tail, digest.update)
    for rows in walker.pieces(records):
        found.take(records.start[:rows], walker.base)
        if walker.met is not None:
            found.meet(*walker.met)
    points, sections = found.points()
    stop = size if tail or walker.done else walker.at
    # Damage ends the walk early, and a block that goes on beyond the end has been passed over in part.
    seen = digest.hexdigest() if walker.passed == stop else file_digest(text, begin, stop)
    return CountedPart(points, sections, stop, seen, walker.done)
