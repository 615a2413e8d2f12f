"""A trace of flow records with bursts at known rates, as an Arrow file; and what is true of its windows.

Records are those of `generate:flows`; their times follow a *profile*: so many seconds at such a rate, then the next.
The file is uncompressed, so that a task takes a few records out of it without reading the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.sources.base import whole
from penstock.sources.generate.source import open_generate

START = 1_767_225_600_000_000  # 2026-01-01, where windows of whole seconds begin
SECOND = 1_000_000
BLOCK = 65_536
COLUMNS = ("ts", "src", "dst", "sport", "dport", "proto", "flags", "in_if", "out_if", "bytes", "packets")

Array = np.ndarray


@dataclass(frozen=True)
class Phase:
    """Seconds of stream time at one rate, in records a second."""

    seconds: float
    rate: float

    @property
    def records(self) -> int:
        return round(self.seconds * self.rate)


Profile = tuple[Phase, ...]


def burst_profile(calm: float, peak: float, before: float, during: float, after: float) -> Profile:
    """One burst."""
    return Phase(before, calm), Phase(during, peak), Phase(after, calm)


def seconds_of(profile: Profile) -> float:
    return sum(phase.seconds for phase in profile)


def records_of(profile: Profile) -> int:
    return sum(phase.records for phase in profile)


def times_of(profile: Profile, seed: int) -> Array:
    """Microseconds of all records, ascending: each phase is a Poisson arrival with a known number of records."""
    rng, start = np.random.default_rng(seed), 0.0
    parts = []
    for phase in profile:
        parts.append(START + np.sort(rng.random(phase.records)) * phase.seconds * SECOND + start * SECOND)
        start += phase.seconds
    return np.concatenate(parts).astype(np.int64)


def write_burst(path: Path, profile: Profile, seed: int) -> None:
    """The trace as an Arrow file; it is there whole or not at all."""
    rows = records_of(profile)
    source = open_generate("flows", {"rows": str(rows), "seed": str(seed), "clients": "60000", "servers": "20000"})
    schema = pa.schema([source.schema().field(name) for name in COLUMNS])
    times, at = times_of(profile, seed), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".part")
    with pa.OSFile(str(aside), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in source.read(whole(source), list(COLUMNS), BLOCK):
            own = pa.array(times[at : at + batch.num_rows]).cast(schema.field("ts").type)
            writer.write_batch(batch.set_column(0, schema.field("ts"), own))
            at += batch.num_rows
    aside.rename(path)


def read_burst(path: Path) -> pa.Table:
    """All records, as they lie in the file."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def windows_of(trace: pa.Table, seconds: int) -> Array:
    """Of each record the number of its window, from the first second of the trace on."""
    found: Array = (trace["ts"].cast(pa.int64()).to_numpy() - START) // (seconds * SECOND)
    return found


def sums(trace: pa.Table, seconds: int, keys: tuple[str, ...] = ()) -> pa.Table:
    """What is true: `window`, the keys, `records` and `bytes`, in the order of windows and keys."""
    columns = {"window": pa.array(windows_of(trace, seconds)), **{key: trace[key] for key in keys}}
    grouped = pa.table({**columns, "bytes": trace["bytes"]}).group_by(list(columns))
    found = grouped.aggregate([("bytes", "count"), ("bytes", "sum")]).rename_columns([*columns, "records", "bytes"])
    return found.sort_by([(name, "ascending") for name in columns])


def arrivals(trace: pa.Table, every: float) -> Array:
    """Records that arrive in each piece of so many seconds."""
    found: Array = np.bincount((trace["ts"].cast(pa.int64()).to_numpy() - START) // round(every * SECOND))
    return found


def waiting(arrived: Array, every: float, capacity: float) -> Array:
    """Seconds that the newest record would wait at the end of each piece, if all were read, so many a second."""
    backlog = np.cumsum(arrived - capacity * every)
    found: Array = (backlog - np.minimum(np.minimum.accumulate(backlog), 0)) / capacity
    return found
