"""Measure what probes, inserts and evictions cost on this machine (`sharing.model.unit_costs`): once, in a second.

Runs the engine's own tables over random keys; `partials` has what comes behind the leaves. The result is kept in the
user's cache folder for this processor and these kernels, and measured again by `calibrated(fresh=True)`.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from math import isfinite
from pathlib import Path
from time import thread_time_ns
from typing import Any

import numpy as np
import xxhash

import penstock
from penstock.kernels.tables import fold, lru
from penstock.kernels.tables import probe as tables
from penstock.sharing.model.collision import rate
from penstock.sharing.model.engine_problem import INDEX
from penstock.sharing.model.kinds.lru import LRU
from penstock.sharing.model.unit_costs import CostBySize, Costs, PerRow

Array = np.ndarray
TUPLES = 32_768
TIMES = 5  # that something is measured
PROBED = (1 << 14, 1 << 18, 1 << 20, 1 << 23, 1 << 25)  # bytes of tables before leaves
INSERTED = (1 << 14, 1 << 18, 1 << 20, 1 << 23, 1 << 27)  # of all exact ones together
TURNS = 16  # exact tables that take turns
WIDTH = 5  # words of an entry: a key of two, count(*) and two states
ENTRY = 8 * WIDTH
ROWS = ("segment", "merge", "rolled")  # of the costs, those of rows and their columns
# And those that are one number.
NUMBERS = ("fold", "word", "passing", "appended", "fresh", "block", "grouped", "read", "finish", "shown", "close")
# What is measured here and by `partials` and `rollups`: others cost something else. These are names, since a run that
# finds costs measured has no use for the modules.
MEASURED = (
    *(f"kernels.{name}" for name in ("hashing", "tables.probe", "tables.lru", "tables.fold", "tables.columns")),
    *(f"kernels.tables.{name}" for name in ("merge", "order", "rolling")),
    *(f"runtime.merge.{name}" for name in ("merge", "shares", "windows", "item", "results.finish", "results.finisher")),
    *(f"runtime.merge.rolling.{name}" for name in ("rolling", "coding", "attributes", "rollup")),
    *(f"runtime.profile.{name}" for name in ("partials", "rollups", "trials")),
    *("runtime.tables.leaf", "runtime.tables.append", "state.segments.write"),
)


@lru_cache(maxsize=1)
def calibrated(fresh: bool = False) -> Costs:
    """The unit costs of this machine."""
    path = kept_at()
    known = None if fresh or path is None else _load(path)
    if known is None:
        known = measure()
        if path is not None:
            store(path, asdict(known))
    return known


def measure() -> Costs:
    from penstock.runtime.profile import partials, rollups

    rng = np.random.default_rng(1)
    passing = _passing(rng)
    probe = tuple((float(size), _probing(size, rng, passing)) for size in PROBED)
    recent = tuple((float(size), _recent(size, rng)) for size in PROBED)
    insert = tuple((float(size), _inserting(size, rng)) for size in INSERTED)
    one, two = _probing(1 << 18, rng, passing, 1), probe[1][1]
    with tempfile.TemporaryDirectory(prefix="penstock-costs-") as folder:
        behind = partials.measured_partials(Path(folder))
        made = rollups.measured_roll_ups(Path(folder))
    return Costs(
        _rising(probe), _rising(recent), _rising(insert), _folding(rng), max(0.2, two - one), passing,
        **vars(behind), **vars(made),
    )  # fmt: skip


def _best(run: Callable[[Array], None], keys: Sequence[Array]) -> float:
    """ns a record, the least of several: what disturbs only adds. Each time with other keys: the entries of those just
    met are still in the cache."""
    found = []
    for each in keys:
        began = thread_time_ns()
        run(each)
        found.append(thread_time_ns() - began)
    return min(found) / TUPLES


def _keys(groups: int, words: int, rng: np.random.Generator, tuples: int = TUPLES) -> Array:
    """Random keys of `groups` groups."""
    number = rng.integers(0, groups, tuples, dtype=np.uint64)
    return np.ascontiguousarray([number * np.uint64(2 * word + 1) for word in range(words)], np.uint64)


def _several(groups: int, words: int, rng: np.random.Generator) -> list[Array]:
    return [_keys(groups, words, rng) for _ in range(TIMES)]


class _Direct:
    """A direct-mapped table without states."""

    def __init__(self, buckets: int, words: int) -> None:
        self.fresh = np.zeros(WIDTH - words, np.uint64)
        self.entries = np.zeros((buckets + TUPLES, WIDTH), np.uint64)
        self.resident, self.credit = np.arange(buckets, dtype=np.int32), np.zeros(buckets, np.int32)
        self.at, self.evicted = np.empty(TUPLES, np.int64), np.empty(TUPLES, np.int64)
        self.hashes, self.moved = np.empty(TUPLES, np.uint64), np.empty(TUPLES, np.int32)

    def take(self, keys: Array) -> None:
        tables.hash_keys(keys, self.hashes)
        out = tables.probe_direct(
            keys, self.hashes, np.empty(0, np.int64), self.fresh, 0,
            self.entries, self.resident, self.credit, self.at, self.evicted, self.moved,
        )  # fmt: skip
        evictions = np.empty((out, WIDTH), np.uint64)
        tables.settle_direct(self.entries, self.evicted, self.moved, out, evictions, self.resident)


def _probing(size: int, rng: np.random.Generator, passing: float, words: int = 2) -> float:
    """ns of a probe that finds its group, in a table of this size that is a fifth full."""
    buckets = size // ENTRY
    groups = max(1, buckets // 4)
    table = _Direct(buckets, words)
    for _ in range(max(1, groups // TUPLES)):
        table.take(_keys(groups, words, rng))
    return max(1.0, _best(table.take, _several(groups, words, rng)) - passing * rate(groups, buckets))


def _recent(size: int, rng: np.random.Generator) -> float:
    """ns of a probe that finds its group in a full LRU table of this size."""
    capacity = max(1, size // (ENTRY + LRU.links))
    links, fresh = lru.links(capacity), np.zeros(WIDTH - 2, np.uint64)
    entries = np.zeros((capacity + TUPLES, WIDTH), np.uint64)
    at, evicted, places = (np.empty(TUPLES, np.int64) for _ in range(3))
    hashes, none = np.empty(TUPLES, np.uint64), np.empty(0, np.int64)

    def take(keys: Array) -> None:
        tables.hash_keys(keys, hashes)
        out = lru.probe_lru(keys, hashes, none, fresh, entries, *links, at, evicted, places)
        evictions = np.empty((out, WIDTH), np.uint64)
        lru.settle_lru(entries, links.nodes, evicted, places, out, evictions)

    for _ in range(1 + 3 * capacity // TUPLES):
        take(_keys(capacity, 2, rng))
    return max(1.0, _best(take, _several(capacity, 2, rng)))


def _passing(rng: np.random.Generator) -> float:
    """ns more of an entry that is evicted, to be copied out of its table and made ready for others."""
    buckets = (1 << 18) // ENTRY
    table = _Direct(buckets, 2)
    table.take(_keys(1 << 40, 2, rng))
    hits = _several(max(1, buckets // 64), 2, rng)
    every = _best(table.take, _several(1 << 40, 2, rng))
    rows = np.zeros((TUPLES, WIDTH), np.uint64)

    def ready(keys: Array) -> None:
        np.ascontiguousarray(rows[:, :2].T)
        for word in range(2, WIDTH):
            np.ascontiguousarray(rows[:, word])

    table = _Direct(buckets, 2)
    table.take(hits[0])
    return max(1.0, every - _best(table.take, hits)) + _best(ready, hits)


class _Exact:
    """An exact table without states, with room for `groups` groups."""

    def __init__(self, groups: int) -> None:
        self.rows, self.index, self.count = np.empty((groups, WIDTH), np.uint64), tables.empty_index(groups), 0

    def take(self, keys: Array) -> None:
        at, none, fresh = np.empty(keys.shape[1], np.int64), np.empty(0, np.int64), np.zeros(WIDTH - 2, np.uint64)
        hashes = tables.hashed(keys)
        _, self.count = tables.probe_exact(
            keys, hashes, 0, len(hashes), none, self.count, fresh, self.index, self.rows, at
        )


def _inserting(size: int, rng: np.random.Generator) -> float:
    """ns of an insert into one of several exact tables that have this size together and take turns, as leaves do."""
    groups = size // (ENTRY + INDEX) // TURNS
    leaves = [_Exact(groups) for _ in range(TURNS)]
    for leaf in leaves:
        leaf.take(_keys(groups, 2, rng, max(TUPLES, groups)))

    def again(keys: Array) -> None:
        for leaf in leaves:
            leaf.take(keys)

    return _best(again, _several(groups, 2, rng)) / TURNS


def _folding(rng: np.random.Generator) -> float:
    """ns of folding one value into one state of a table that fills a part of the cache, as those of a plan do."""
    rows_of_table = (1 << 19) // ENTRY
    states = np.zeros((rows_of_table, WIDTH), np.int64)
    rows = np.arange(TUPLES, dtype=np.int32)
    value, valid = rng.integers(0, 1000, TUPLES), np.empty(0, np.uint8)
    places = [rng.integers(0, rows_of_table, TUPLES) for _ in range(TIMES)]
    return _best(lambda at: fold.add_sum(states, 3, at, 0, TUPLES, rows, value, valid), places)


def _rising(curve: CostBySize) -> CostBySize:
    """A larger table is never cheaper: where it looks so, the machine was disturbed."""
    most, kept = 0.0, []
    for size, cost in curve:
        most = max(most, cost)
        kept.append((size, most))
    return tuple(kept)


def kept_at() -> Path | None:
    """Where the costs of tables are kept."""
    return place_of("costs", MEASURED)


def place_of(name: str, measured: Iterable[str]) -> Path | None:
    """Where costs of this machine are kept; None for a user without a home."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return home / "penstock" / f"{name}-{_content(measured)}-{platform.machine()}-{_processor()}.json"


def _content(modules: Iterable[str]) -> str:
    """What is measured, in short."""
    digest, package = xxhash.xxh3_64(), Path(penstock.__file__).parent
    for name in modules:
        with suppress(OSError):
            digest.update(package.joinpath(*name.split(".")).with_suffix(".py").read_bytes())
    return digest.hexdigest()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    name = next((line.partition(":")[2] for line in lines if line.startswith("model name")), platform.processor())
    return "".join(letter if letter.isalnum() else "_" for letter in name.strip()) or "unknown"


def _load(path: Path) -> Costs | None:
    try:
        found = json.loads(path.read_text())
        probe, recent, insert = (_curve(found[name]) for name in ("probe", "recent", "insert"))
        rest: dict[str, Any] = {name: float(found[name]) for name in NUMBERS}
        rest |= {name: _per_row(found[name]) for name in ROWS}
        kept = Costs(probe, recent, insert, **rest)
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return kept if _sound(kept) else None


def _curve(points: Iterable[Iterable[float]]) -> CostBySize:
    return tuple((float(size), float(cost)) for size, cost in points)


def _per_row(found: Mapping[str, float]) -> PerRow:
    return PerRow(float(found["row"]), float(found["column"]))


def _sound(costs: Costs) -> bool:
    """Whether this can have been measured."""
    curves = costs.probe, costs.recent, costs.insert
    points = [point for curve in curves for point in curve]
    rows = (number for name in ROWS for number in vars(getattr(costs, name)).values())
    numbers = [*(number for point in points for number in point), *rows, *(getattr(costs, name) for name in NUMBERS)]
    rising = all(list(curve) == sorted(set(curve)) for curve in curves)
    return all(curves) and rising and all(isfinite(n) and n > 0 for n in numbers)


def store(path: Path, costs: Mapping[str, object]) -> None:
    """Best effort: a machine without such a folder measures again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(costs))
        os.replace(aside, path)
    except OSError:
        return
