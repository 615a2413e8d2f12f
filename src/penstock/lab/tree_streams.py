"""Streams of the experiments of the aggregate-tree paper: epochs of records with 13 attributes, all pairs of them asked.

The paper's NetFlow traces were published by an observatory that is gone. It tells of them: 13 attributes, four epochs of
about 400,000 records (Sec. VIII-A), Zipf exponents of 0.85 for the source, 0.67 for source and destination, 0.48 with
both ports (Sec. VI). `netflow` makes records with just these; `connections` has a real log of connections, a day an
epoch, where it lies beside the captures, and other generated records where it does not.

Attributes are the letters A to M. A group is told by its *first* row in the epoch: entries of a table are then row
numbers, from which the groups of all that the table feeds follow (`tree_tables`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from penstock.bench.traces import PLACE
from penstock.kernels import tables
from penstock.lab.report import Settings, Tell
from penstock.sources.base import Split
from penstock.sources.generate import FLOW_ATTRIBUTES, open_generate
from penstock.sources.synthetic import mix, unit, zipf_ranks

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

LETTERS = "ABCDEFGHIJKLM"
PAIRS = tuple(a + b for a, b in combinations(LETTERS, 2))  # the 78 queries
KEPT = 96  # groupings of an epoch that are kept

NETFLOW = (
    "src", "dst", "sport", "dport", "proto", "tos", "flags", "in_if", "out_if", "next_hop", "src_as", "dst_as",
    "dst_mask",
)  # fmt: skip
ALPHAS = {"A": 0.85, "AB": 0.67, "ABCD": 0.48}  # Sec. VI, Fig. 2: read off counts
LAWS = {"A": 0.86, "AB": 0.71, "ABCD": 0.505, "B": 0.85}  # to draw by, so that the counts have those
EPOCHS, EPOCH_ROWS, OTHER_ROWS = 4, 400_000, 350_000  # Sec. VIII-A, IPLSng and NYCMng
FLOWS, ADDRESSED, SOURCES, TARGETS, SYSTEMS = 450_000, 150_000, 16_000, 20_000, 1_500
SERVICES = np.array([80, 443, 25, 53, 22, 110, 119, 1433, 3389, 6881])

LOG = "zeek_conn_2022-03.parquet"
CONNECTION = (
    "orig_h", "orig_p", "resp_h", "resp_p", "proto", "service", "conn_state", "local_orig", "local_resp", "history",
    "orig_pkts", "resp_pkts", "missed_bytes",
)  # fmt: skip
DAY = 86_400_000_000  # microseconds


class Grouping(NamedTuple):
    """Of a relation in an epoch: the number of each row's group, from 0 in order of arrival, and each group's first
    row."""

    number: Ints
    first: Ints


class Epoch:
    """So many records; `columns` has a random word for each value of an attribute, by letter."""

    def __init__(self, columns: Mapping[str, Words]) -> None:
        self.columns = dict(columns)
        self.rows = len(next(iter(self.columns.values())))
        self._kept: OrderedDict[str, Grouping] = OrderedDict()
        self._groups: dict[str, int] = {}

    def grouping(self, letters: str) -> Grouping:
        """The last ones asked for are kept."""
        if letters in self._kept:
            self._kept.move_to_end(letters)
        else:
            self._kept[letters] = grouped(self.words(letters))
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return self._kept[letters]

    def groups(self, letters: str) -> int:
        if letters not in self._groups:
            self._groups[letters] = len(self.counts(letters))
        return self._groups[letters]

    def counts(self, letters: str, feeder: str = "", most: int | None = None) -> Ints:
        """How often each group comes, in no order: in the stream, or once for each group of a feeder.

        With `most`, only so many tuples are looked at, evenly spaced.
        """
        rows = self.grouping(feeder).first if feeder else None
        if most is not None:
            among = self.rows if rows is None else len(rows)
            places = np.arange(0, among, max(1, -(-among // most)))
            rows = places if rows is None else rows[places]
        ordered = self.words(letters, rows)
        ordered.sort()
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
        return np.diff(ends, prepend=-1)

    def words(self, letters: str, rows: Ints | None = None) -> Words:
        """A word for the group of each row: two groups have the same with a chance of 2^-64."""
        total = np.zeros(self.rows if rows is None else len(rows), np.uint64)
        for letter in letters:
            total += self.columns[letter] if rows is None else self.columns[letter][rows]
        return total


def grouped(words: Words) -> Grouping:
    """Number equal words equally, from 0 in order of arrival.

    >>> grouped(np.array([7, 9, 7, 8], np.uint64))
    Grouping(number=array([0, 1, 0, 2]), first=array([0, 1, 3]))
    """
    count = len(words)
    index = np.zeros(1 << (2 * count + 2).bit_length(), np.uint64)
    rows, number = np.empty((count, 2), np.uint64), np.empty(count, np.int64)
    none, fresh = np.empty(0, np.int64), np.zeros(1, np.uint64)
    tables.probe_exact_word(words, 0, count, none, 0, fresh, index, rows, number)
    first = np.flatnonzero(np.diff(np.maximum.accumulate(number), prepend=-1))
    return Grouping(number, first)


@dataclass(frozen=True)
class Records:
    """A stream, epoch by epoch; `attributes` are the names behind the letters, `hosts` the source and the
    destination."""

    name: str
    attributes: tuple[str, ...]
    hosts: str
    epochs: tuple[Epoch, ...]

    @property
    def rows(self) -> int:
        return sum(epoch.rows for epoch in self.epochs)

    @cached_property
    def usual(self) -> Epoch:
        """The epoch of median size: the one that plans are made for."""
        return sorted(self.epochs, key=lambda epoch: epoch.rows)[len(self.epochs) // 2]

    @property
    def scale(self) -> float:
        """Records of an epoch over the paper's: memory is taken in that proportion."""
        return self.usual.rows / EPOCH_ROWS

    def some(self, count: int) -> list[Epoch]:
        """So many epochs, evenly spaced, of those that are not cut short."""
        whole = [epoch for epoch in self.epochs if epoch.rows > self.usual.rows / 2]
        return whole[:: -(-len(whole) // count)]

    def named(self) -> dict[str, str]:
        """The relations of Fig. 2."""
        return {"source": self.hosts[0], "source, destination": self.hosts, "4-tuple": "ABCD"}

    def legend(self) -> str:
        return ", ".join(f"{letter} {name}" for letter, name in zip(LETTERS, self.attributes, strict=True))


def netflow(settings: Settings, rows: int = EPOCH_ROWS, epochs: int = EPOCHS, seed: int | None = None) -> Records:
    """Flow records whose source, pair and 4-tuple follow the paper's Zipf laws; all else follows from those.

    A record is of a flow, by the law of 4-tuples. Each flow has a fixed pair of hosts and each pair a fixed source, drawn
    by their own laws: popularities of many flows add up to that.
    """
    rows = min(rows, settings.rows)
    rng = np.random.default_rng(settings.seed if seed is None else seed)
    population = _Population(rows / EPOCH_ROWS)
    made = tuple(Epoch(_lettered(population.drawn(rng, rows))) for _ in range(epochs))
    return Records("generated records", NETFLOW, "AB", made)


class _Population:
    """The flows, pairs of hosts and hosts that there are; fewer in a shorter form, so that each comes as often."""

    def __init__(self, scale: float) -> None:
        self.flows, self.pairs, self.sources, self.targets = (
            max(50, int(count * scale)) for count in (FLOWS, ADDRESSED, SOURCES, TARGETS)
        )

    def drawn(self, rng: np.random.Generator, rows: int) -> dict[str, NDArray[Any]]:
        flow = zipf_ranks(rng.random(rows), self.flows, LAWS["ABCD"])
        pair = zipf_ranks(unit(mix(flow, 10)), self.pairs, LAWS["AB"])
        source = zipf_ranks(unit(mix(pair, 11)), self.sources, LAWS["A"])
        target = zipf_ranks(unit(mix(pair, 12)), self.targets, LAWS["B"])
        return {"src": source, "dst": target, **_ports(target, flow), **_routes(source, target), **_flags(rng, flow)}


def _ports(target: Ints, flow: Ints) -> dict[str, NDArray[Any]]:
    """A service at one end, mostly the target's own, a port of its own at the other; the protocol by the service."""
    chance = unit(mix(flow, 12))
    service = SERVICES[zipf_ranks(np.where(chance < 0.7, unit(mix(target, 13)), unit(mix(flow, 14))), len(SERVICES), 0.9)]
    own = 1024 + mix(flow, 15) % np.uint64(64_000)
    forth = unit(mix(flow, 16)) < 0.6
    proto = np.where(service == 53, 17, np.where(unit(mix(flow, 17)) < 0.05, 1, 6))
    return {"sport": np.where(forth, own, service), "dport": np.where(forth, service, own), "proto": proto}


def _routes(source: Ints, target: Ints) -> dict[str, NDArray[Any]]:
    """What depends on where a host is."""
    here = (SYSTEMS * unit(mix(source, 21)) ** 2).astype(np.int64)
    there = (SYSTEMS * unit(mix(target, 22)) ** 2).astype(np.int64)
    return {
        "tos": np.array([0, 0, 0, 0, 0, 0, 8, 32])[mix(source, 23) % np.uint64(8)],
        "in_if": mix(here, 24) % np.uint64(24),
        "out_if": mix(there, 24) % np.uint64(24),
        "next_hop": mix(there, 25) % np.uint64(40),
        "src_as": here,
        "dst_as": there,
        "dst_mask": np.uint64(8) + mix(target, 26) % np.uint64(17),
    }


def _flags(rng: np.random.Generator, flow: Ints) -> dict[str, NDArray[Any]]:
    """Of a record: usually its flow's."""
    own = mix(flow, 31) % np.uint64(6)
    return {"flags": np.where(rng.random(len(flow)) < 0.8, own, rng.integers(0, 24, len(flow)).astype(np.uint64))}


def _lettered(columns: Mapping[str, NDArray[Any]]) -> dict[str, Words]:
    """By letter, in the order of NETFLOW or as they come."""
    names = NETFLOW if set(columns) == set(NETFLOW) else tuple(columns)
    return {
        letter: mix(np.asarray(columns[name]).astype(np.uint64), 40 + number)
        for number, (letter, name) in enumerate(zip(LETTERS, names, strict=True))
    }


def connections(settings: Settings, tell: Tell) -> Records:
    """The log of connections, else generated flow records of the benchmark."""
    path = log_file(settings)
    if path is None:
        tell("generating flow records, in place of a log")
        return generated_log(settings)
    tell(f"reading {path.name}")
    return read_log(path)


def log_file(settings: Settings) -> Path | None:
    """The log in the folder of the captures, or in `flows` beside it; a short run does without."""
    folder = settings.captures or PLACE
    if settings.quick and settings.captures is None:
        return None
    return next((path for path in (folder / LOG, folder.parent / "flows" / LOG) if path.is_file()), None)


def read_log(path: Path) -> Records:
    """All connections, those of a day in the order of the log."""
    table = pq.read_table(path, columns=["ts", *CONNECTION]).combine_chunks()
    days = table["ts"].cast(pa.int64()).to_numpy() // DAY
    order = np.argsort(days, kind="stable")
    edges = np.flatnonzero(np.diff(days[order], prepend=days[order[0]] - 1, append=days[order[-1]] + 1))
    codes = [_codes(table[name])[order] for name in CONNECTION]
    epochs = tuple(
        Epoch(_lettered({name: code[start:stop] for name, code in zip(CONNECTION, codes, strict=True)}))
        for start, stop in zip(edges, edges[1:], strict=False)
    )
    return Records("connection log", CONNECTION, "AC", epochs)


def _codes(column: pa.ChunkedArray) -> Ints:
    """A number for each value; NULLs are one."""
    array = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    return np.asarray(array.indices.to_numpy(zero_copy_only=False), np.int64)


def generated_log(settings: Settings) -> Records:
    rows = min(settings.rows, 800_000)
    source = open_generate("clustered", {"rows": str(rows), "seed": str(settings.seed), "flow_length": "4"})
    names = list(FLOW_ATTRIBUTES)
    table = pa.Table.from_batches(list(source.read(Split(0, rows), names, 1 << 16))).combine_chunks()
    codes = [_codes(table[name]) for name in names]
    edges = [rows * i // EPOCHS for i in range(EPOCHS + 1)]
    epochs = tuple(
        Epoch(_lettered({name: code[start:stop] for name, code in zip(names, codes, strict=True)}))
        for start, stop in zip(edges, edges[1:], strict=False)
    )
    return Records("generated log", tuple(names), "AB", epochs)
