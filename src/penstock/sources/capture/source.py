"""Captured packets as a stream: `pcap:FILE`, `pcap:FOLDER` or `pcap:GLOB`; pcap and pcapng, also compressed.

| option | default | |
| --- | --- | --- |
| `unwrap` | `none` | tunnels that are looked into: `gre`, `ipip`, `vxlan`, with commas between, or `all` |
| `speed` | `max` | files are read as fast as possible |
| `cache` | a folder for temporary files | where compressed files are unpacked |

A packet is a record; its columns are those of `sources.capture.columns`. A file may be compressed whatever its name
(gzip, xz, zstd, bzip2), or be a zip archive of captures. One that is still being written is read as far as its packets
are whole; with `--until stopped` the rest is read when it is there, else what is left is one record that was cut short.

What a snap length cut off is NULL. With `unwrap`, so are the columns below the link of a packet that was cut before it
shows whether it is a tunnel: its addresses may be those of an outer packet.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pyarrow as pa

from penstock.errors import RunError, SourceError
from penstock.kernels.packets.capture import CUT, PacketRecords
from penstock.kernels.packets.layers import locate, room
from penstock.kernels.packets.tunnel import GRE, IPIP, VXLAN
from penstock.logical.query import Field
from penstock.sources.base import fields
from penstock.sources.capture.columns import PacketBatch, Packets, needs_layers, schema
from penstock.sources.capture.index import CaptureFile, count
from penstock.sources.capture.picked import Picked
from penstock.sources.capture.stored import capture_form, captures_in, stored_capture
from penstock.sources.capture.walk import PIECE, CaptureForm, Section, Walker
from penstock.sources.counted import Unfinished, file_digest, require_quiet, what_happened
from penstock.sources.files import Address, in_short, regular
from penstock.sources.fit import check_fields
from penstock.sources.live.picking import SkippingFiles, between
from penstock.sources.options import Options
from penstock.sources.unpack import with_packed
from penstock.state.arrivals import FileEntry

SUFFIXES = (*with_packed((".pcap", ".pcapng", ".cap", ".dmp")), ".zip")
TUNNELS = {"gre": GRE, "ipip": IPIP, "vxlan": VXLAN}
SOME = 4096  # packets looked at in one go
PASSED = 1 << 20  # bytes at a time, where packets are passed over: columns are taken of few of them
NOTHING = Section()
Array = np.ndarray


def open_pcap(path: str, options: Mapping[str, str], declared: tuple[Field, ...] | None = None) -> PcapSource:
    """Look at the files' first bytes; they are counted later."""
    address, given = Address.of("pcap", path, SUFFIXES), Options("pcap", options)
    unwrap = given.take("unwrap", _tunnels, 0)
    given.take("speed", _speed, "max")
    cache = given.take("cache", os.path.abspath, "")
    given.require_all_taken()
    paths = address.required(declared is not None)
    for one in paths:
        for part in captures_in(one):
            with suppress(Unfinished):  # it may be a capture when it is counted
                capture_form(part)
    known = declared or fields(schema())
    check_fields(known, schema(), f"'{path}'")
    return PcapSource(address, known, cache, tuple(paths), unwrap=unwrap)


def _tunnels(text: str) -> int:
    names = [name.strip().lower() for name in text.split(",")]
    if names == ["none"] or names == ["all"]:
        return 0 if names == ["none"] else sum(TUNNELS.values())
    if not set(names) <= set(TUNNELS):
        raise ValueError(f"none, all, or some of {', '.join(TUNNELS)}")
    return sum(TUNNELS[name] for name in set(names))


def _speed(text: str) -> str:
    if text.lower() != "max":
        raise ValueError("max")
    return "max"


@dataclass(frozen=True)
class PcapSource(SkippingFiles[CaptureFile]):
    """Captures one after the other. `following`: files may grow, and what is left at their ends is not yet a record."""

    least_step: ClassVar[int] = 4
    unwrap: int = field(kw_only=True, default=0)
    following: bool = field(kw_only=True, default=False)

    def schema(self) -> pa.Schema:
        return schema()

    def fingerprint(self) -> str:
        return hashlib.blake2b(f"pcap {self.fields!r} {self.unwrap}".encode(), digest_size=16).hexdigest()

    def live(self) -> PcapSource:
        return replace(self, following=True)

    def arrivals(self) -> list[FileEntry]:
        last = {file.path: file for file in self.files}
        grown = [part.entry() for file in last.values() for part in self._grown(file)]
        return grown + super().arrivals()

    def done(self, entries: Sequence[FileEntry]) -> list[FileEntry]:
        read = {entry.path: entry.reading["before"] + entry.rows for entry in entries}
        short = in_short(entries, {"index": [], "of_section": []})
        return [replace(one, reading={**one.reading, "before": read.get(one.path, 0)}) for one in short]

    def changed(self, entry: FileEntry) -> str | None:
        """A file that is not packed may have grown, unless its end was taken for a record that was cut short."""
        part = self._of(entry)
        if part.packed:
            return super().changed(entry)
        try:
            found = regular(part.path)
        except SourceError:
            return what_happened(entry)
        if found.st_size == part.stop and found.st_mtime_ns == part.mtime:
            return None
        if found.st_size < part.stop or (part.ended == CUT and found.st_size > part.stop):
            return "has changed"
        return None if file_digest(part.path, part.begin, part.stop) == part.digest else "has changed"

    def _of(self, entry: FileEntry) -> CaptureFile:
        return CaptureFile.of(entry)

    def _count(self, path: str) -> list[CaptureFile]:
        found = regular(path)
        identity = (found.st_size, found.st_mtime_ns)
        captures = []
        for part in captures_in(path):
            follow = self.following and part.opener is None
            try:
                form = capture_form(part)
            except Unfinished:
                if follow:
                    continue
                raise
            where = (part.path, part.member, identity)
            captures.append(_counted(*where, form, form.start, NOTHING, 0, not follow, self.cache))
            if not follow:
                require_quiet(path, found)
        return captures

    def _grown(self, file: CaptureFile) -> list[CaptureFile]:
        """What was added to a file since."""
        try:
            found = regular(file.path)
        except SourceError:
            return []
        if file.packed or file.ended or found.st_size <= file.stop:
            return []
        identity, section = (found.st_size, found.st_mtime_ns), file.sections[-1]
        before = file.before + file.rows
        part = _counted(file.path, "", identity, file.form, file.stop, section, before, not self.following, self.cache)
        return [part] if part.rows else []

    def _read(
        self, file: CaptureFile, start: int, stop: int, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        walker, skip = self._enter(file, start)
        records, layers, deep = PacketRecords(SOME), room(SOME), needs_layers(columns)
        left, batch = stop - start, PacketBatch(columns, min(batch_rows, stop - start))
        for rows in walker.pieces(records):
            first = min(skip, rows)
            skip -= first
            while rows > first and left:
                take = min(rows - first, batch.room - batch.rows)
                piece = Packets(walker.data, records.part(first, first + take), layers, take)
                batch.take(piece, deep and _locate(piece, self.unwrap) > 0)
                first, left = first + take, left - take
                if batch.rows == batch.room:
                    yield batch.arrow()
                    batch = PacketBatch(columns, min(batch_rows, left))
            if not left:
                return
        raise _fewer(file)

    def _read_rows(
        self, file: CaptureFile, rows: Array, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The file is walked over, as always; these packets are put aside, and looked at when they are many."""
        if not len(rows):
            return
        walker, skip = self._enter(file, int(rows[0]), PASSED)
        at, records, picked = int(rows[0]) - skip, PacketRecords(SOME), Picked(min(SOME, batch_rows))
        for passed in walker.pieces(records):
            wanted = between(rows, at, at + passed)
            at += passed
            while len(wanted):
                wanted = wanted[picked.take(walker.data, records, wanted) :]
                if len(wanted):
                    yield self._looked_at(picked, columns)
            if at > rows[-1]:
                break
        else:
            raise _fewer(file)
        yield self._looked_at(picked, columns)

    def _looked_at(self, picked: Picked, columns: Sequence[str]) -> pa.RecordBatch:
        """What was put aside, as a batch."""
        piece, batch = picked.packets(), PacketBatch(columns, picked.rows)
        batch.take(piece, needs_layers(columns) and _locate(piece, self.unwrap) > 0)
        picked.clear()
        return batch.arrow()

    def _enter(self, file: CaptureFile, row: int, piece: int = PIECE) -> tuple[Walker, int]:
        """A walker at the nearest packet of the index, and how many packets to skip."""
        text, points = file.path, file.points
        # Of a file that is followed only the size is looked at: its time changes with every packet that is written.
        if file.packed or not self.following:
            self._require_unchanged(file.entry())
        elif regular(text).st_size < file.stop:
            raise RunError(f"'{text}' has changed since the run began", "restore it, or start with a new checkpoint")
        if file.packed:
            text = stored_capture(file.path, file.member).text(self.cache)
        at = row // points.stride
        section = file.sections[points.sections[at]]
        place, tail = points.places[at], file.ended == CUT
        return Walker(text, file.form, place, file.stop, section, tail, piece=piece), row % points.stride

    def _place(self, file: CaptureFile, row: int) -> str:
        name = self.address.name(file.path) + (f"/{file.member}" if file.member else "")
        where = f"{name}, packet {file.before + row + 1}"
        try:
            walker, skip = self._enter(file, row)
            records = PacketRecords(SOME)
            for rows in walker.pieces(records):
                if skip < rows:
                    byte = walker.base + int(records.start[skip])
                    return f"{where}, byte {byte}{' unpacked' if file.packed else ''}"
                skip -= rows
        except (SourceError, RunError):  # a message about one packet must not fail for the file's sake
            pass
        return where


def _fewer(file: CaptureFile) -> RunError:
    return RunError(f"'{file.path}' has fewer packets than when it was first read", "start with a new checkpoint")


def _locate(piece: Packets, unwrap: int) -> int:
    records = piece.records
    known = (records.at, records.captured, records.length, records.link, records.reason)
    return int(locate(piece.data, *known, piece.rows, unwrap, piece.layers))


@lru_cache(maxsize=1024)
def _counted(
    path: str,
    member: str,
    identity: tuple[int, int],
    form: CaptureForm,
    begin: int,
    section: Section,
    before: int,
    tail: bool,
    cache: str,
) -> CaptureFile:
    """Read a part once; an app opens its sources several times, hence the cache."""
    part = stored_capture(path, member)
    text, packed = part.text(cache), part.opener is not None
    size = regular(text).st_size if packed else identity[0]
    found = count(text, form, begin, size, section, tail)
    digest = file_digest(path) if packed else found.digest
    kept = identity[0] if packed else found.stop
    known = (path, member, packed, begin, found.stop, kept, identity[1], digest, before, found.ended)
    return CaptureFile(*known, form, found.points, found.sections)
