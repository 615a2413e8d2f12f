"""Records for the experiments of the aggregate-tree paper: 13 attributes, all pairs of them asked.

The paper's NetFlow traces were published by an observatory that is gone. It tells of them: 13 attributes, four epochs
of about 400,000 records (Sec. VIII-A), Zipf exponents of 0.85 for the source, 0.67 for source and destination, 0.48
with both ports (Sec. VI). `netflow` makes records with just these; `connections` has a real log of connections, a day
an epoch, where it lies beside the captures, and other generated records where it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.data.traces import PLACE
from experiments.kit.report import ExperimentSettings, Tell
from experiments.tree.streams import EPOCH_ROWS, LETTERS, Ints, RecordEpoch, RecordStream, Words
from penstock.sources.base import whole
from penstock.sources.generate.source import FLOW_ATTRIBUTES, open_generate
from penstock.sources.generate.synthetic import mix, unit, zipf_ranks

NETFLOW = (
    "src", "dst", "sport", "dport", "proto", "tos", "flags", "in_if", "out_if", "next_hop", "src_as", "dst_as",
    "dst_mask",
)  # fmt: skip
ALPHAS = {"A": 0.85, "AB": 0.67, "ABCD": 0.48}  # Sec. VI, Fig. 2: read off counts
LAWS = {"A": 0.86, "AB": 0.71, "ABCD": 0.505, "B": 0.85}  # to draw by, so that the counts have those
EPOCHS, OTHER_ROWS = 4, 350_000  # Sec. VIII-A; the records of an epoch at the other router
FLOWS, ADDRESSED, SOURCES, TARGETS, SYSTEMS = 450_000, 150_000, 16_000, 20_000, 1_500
SERVICES = np.array([80, 443, 25, 53, 22, 110, 119, 1433, 3389, 6881])

LOG = "zeek_conn_2022-03.parquet"
CONNECTION = (
    "orig_h", "orig_p", "resp_h", "resp_p", "proto", "service", "conn_state", "local_orig", "local_resp", "history",
    "orig_pkts", "resp_pkts", "missed_bytes",
)  # fmt: skip
DAY = 86_400_000_000  # microseconds


def netflow(
    settings: ExperimentSettings, rows: int = EPOCH_ROWS, epochs: int = EPOCHS, seed: int | None = None
) -> RecordStream:
    """Flow records whose source, pair and 4-tuple follow the paper's Zipf laws; all else follows from those.

    A record is of a flow, by the law of 4-tuples. Each flow has a fixed pair of hosts and each pair a fixed source,
    drawn by their own laws: popularities of many flows add up to that.
    """
    rows = min(rows, settings.rows)
    rng = np.random.default_rng(settings.seed if seed is None else seed)
    population = _Population(rows / EPOCH_ROWS)
    made = tuple(RecordEpoch(_lettered(population.drawn(rng, rows))) for _ in range(epochs))
    return RecordStream("generated records", NETFLOW, "AB", made)


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
    service = SERVICES[
        zipf_ranks(np.where(chance < 0.7, unit(mix(target, 13)), unit(mix(flow, 14))), len(SERVICES), 0.9)
    ]
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


def connections(settings: ExperimentSettings, tell: Tell) -> RecordStream:
    """The log of connections, else generated flow records of the benchmark."""
    path = log_file(settings)
    if path is None:
        tell("generating flow records, in place of a log")
        return generated_log(settings)
    tell(f"reading {path.name}")
    return read_log(path)


def log_file(settings: ExperimentSettings) -> Path | None:
    """The log in the folder of the captures, or in `flows` beside it; a short run does without."""
    folder = settings.captures or PLACE
    if settings.quick and settings.captures is None:
        return None
    return next((path for path in (folder / LOG, folder.parent / "flows" / LOG) if path.is_file()), None)


def read_log(path: Path) -> RecordStream:
    """All connections, those of a day in the order of the log."""
    table = pq.read_table(path, columns=["ts", *CONNECTION]).combine_chunks()
    days = table["ts"].cast(pa.int64()).to_numpy() // DAY
    order = np.argsort(days, kind="stable")
    edges = np.flatnonzero(np.diff(days[order], prepend=days[order[0]] - 1, append=days[order[-1]] + 1))
    codes = [_codes(table[name])[order] for name in CONNECTION]
    epochs = tuple(
        RecordEpoch(_lettered({name: code[start:stop] for name, code in zip(CONNECTION, codes, strict=True)}))
        for start, stop in pairwise(edges)
    )
    return RecordStream("connection log", CONNECTION, "AC", epochs)


def _codes(column: pa.ChunkedArray) -> Ints:
    """A number for each value; NULLs are one."""
    array = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    return np.asarray(array.indices.to_numpy(zero_copy_only=False), np.int64)


def generated_log(settings: ExperimentSettings) -> RecordStream:
    rows = min(settings.rows, 800_000)
    source = open_generate("clustered", {"rows": str(rows), "seed": str(settings.seed), "flow_length": "4"})
    names = list(FLOW_ATTRIBUTES)
    table = pa.Table.from_batches(list(source.read(whole(source), names, 1 << 16))).combine_chunks()
    codes = [_codes(table[name]) for name in names]
    edges = [rows * i // EPOCHS for i in range(EPOCHS + 1)]
    epochs = tuple(
        RecordEpoch(_lettered({name: code[start:stop] for name, code in zip(names, codes, strict=True)}))
        for start, stop in pairwise(edges)
    )
    return RecordStream("generated log", tuple(names), "AB", epochs)
