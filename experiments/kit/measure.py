"""Real collisions: a stream run through the tables of a configuration, and what that cost (smap, Section 8.5).

A table's input is all its parent passes on, in order, so tables run one after the other, a whole epoch at a time, and
pass on exactly what record-at-a-time execution would (`support.phantoms`). Tables hold no counts: costs depend
on keys alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from experiments.kit import probing
from experiments.kit.streams import Codes, PaperStream
from penstock.sources.generate.synthetic import mix


@dataclass(frozen=True)
class TableSpec:
    """One relation: the attributes of its key, which table feeds it (-1: the stream), buckets, and who stays."""

    letters: str
    parent: int
    buckets: int
    query: bool
    policy: int = probing.NEWEST


@dataclass
class Counts:
    """Of one table. Evictions are entries passed on by collisions, `flushed` those that an epoch's end passes on."""

    probes: int = 0
    evictions: int = 0
    flush_probes: int = 0
    flush_evictions: int = 0
    flushed: int = 0

    @property
    def rate(self) -> float:
        """The collision rate x, within epochs."""
        return self.evictions / self.probes if self.probes else 0.0


@dataclass
class RunningTable:
    """A table at work."""

    table: TableSpec
    code: Codes
    place: Codes
    resident: Codes
    credit: Codes
    counts: Counts = field(default_factory=Counts)

    def probe(self, rows: Codes, flushing: bool) -> Codes:
        """Take these rows in; returns what is passed on."""
        if self.table.buckets == 0:
            return rows
        out = np.empty(len(rows), np.int32)
        passed = probing.probe(rows, self.code, self.place, self.table.policy, self.resident, self.credit, out)
        if flushing:
            self.counts.flush_probes += len(rows)
            self.counts.flush_evictions += passed
        else:
            self.counts.probes += len(rows)
            self.counts.evictions += passed
        left: Codes = out[:passed]
        return left

    def empty(self) -> Codes:
        """Give away all residents, by bucket."""
        held: Codes = self.resident[self.resident != probing.EMPTY].copy()
        self.resident[:] = probing.EMPTY
        self.counts.flushed += len(held)
        return held


@dataclass(frozen=True)
class MeasuredRun:
    """Counts of all tables over `rows` rows and `epochs` ends of epochs, and the paper's costs of them."""

    tables: tuple[TableSpec, ...]
    counts: tuple[Counts, ...]
    rows: int
    epochs: int

    def per_tuple(self, c1: float, c2: float) -> float:
        """Eq. 7 with real collisions: probes, and what queries evict, a row of the stream."""
        probes = sum(count.probes for count in self.counts)
        out = sum(count.evictions for table, count in zip(self.tables, self.counts, strict=True) if table.query)
        return (probes * c1 + out * c2) / self.rows

    def per_flush(self, c1: float, c2: float) -> float:
        """Eq. 8 with real collisions: cost of an end of epoch."""
        probes = sum(count.flush_probes for count in self.counts)
        pairs = zip(self.tables, self.counts, strict=True)
        out = sum(count.flush_evictions + count.flushed for table, count in pairs if table.query)
        return (probes * c1 + out * c2) / max(1, self.epochs)

    def whole(self, c1: float, c2: float) -> float:
        """Both together, a row of the stream."""
        return self.per_tuple(c1, c2) + self.per_flush(c1, c2) * self.epochs / self.rows


def places(codes: int, buckets: int, salt: int) -> Codes:
    """A bucket for each code: a random function, another for each salt."""
    words = mix(mix(np.arange(codes), salt), 1)
    return np.asarray(words % np.uint64(max(1, buckets)), np.int32)


class Tables:
    """A configuration at work on a stream; `salt` chooses the hash functions."""

    def __init__(self, stream: PaperStream, tables: Sequence[TableSpec], salt: int = 0) -> None:
        self.running = [
            RunningTable(
                table,
                stream.codes(table.letters),
                places(stream.groups(table.letters), table.buckets, salt * 1000 + number),
                np.full(table.buckets, probing.EMPTY, np.int32),
                np.zeros(table.buckets, np.int32),
            )
            for number, table in enumerate(tables)
        ]
        self.rows = 0
        self.epochs = 0

    def run(self, rows: Codes) -> None:
        self.rows += len(rows)
        self._down(rows, (), flushing=False)

    def flush(self, due: Sequence[str] | None = None) -> None:
        """The end of an epoch of these queries (all if none are named): they and all above are emptied, top-down."""
        self.epochs += 1
        tables = [one.table for one in self.running]
        emptied = {i for i, table in enumerate(tables) if table.query and (due is None or table.letters in due)}
        for number in reversed(range(len(tables))):
            if number in emptied and tables[number].parent >= 0:
                emptied.add(tables[number].parent)
        self._down(np.empty(0, np.int32), emptied, flushing=True)

    def measured(self) -> MeasuredRun:
        return MeasuredRun(
            tuple(one.table for one in self.running), tuple(one.counts for one in self.running), self.rows, self.epochs
        )

    def _down(self, rows: Codes, emptied: Sequence[int] | set[int], flushing: bool) -> None:
        passed: list[Codes] = []
        for number, one in enumerate(self.running):
            fed = rows if one.table.parent < 0 else passed[one.table.parent]
            out = one.probe(fed, flushing)
            passed.append(np.concatenate([out, one.empty()]) if number in emptied else out)


def run_epochs(stream: PaperStream, tables: Sequence[TableSpec], epochs: int = 1, salt: int = 0) -> MeasuredRun:
    """The stream in `epochs` epochs of equal length, tables emptied after each."""
    work = Tables(stream, tables, salt)
    edges = [len(stream.rows) * i // epochs for i in range(epochs + 1)]
    for start, stop in pairwise(edges):
        work.run(stream.rows[start:stop])
        work.flush()
    return work.measured()
