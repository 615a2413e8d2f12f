"""What a soak has written is right: every window once, none missing, sums that close, sampled windows as DuckDB says.

The generator can be read again at any row, so the records of a window are made anew and given to DuckDB; nothing of
the engine has a part in that. Queries that are sums of others are checked over all their windows.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sources.base import Split
from penstock.sources.generate.source import GeneratedSource, open_generate
from penstock.sources.generate.synthetic import BLOCK
from penstock.state.protocol import StreamState
from penstock.testing.faults import Output
from penstock.testing.oracle.answers import FLOAT_TOLERANCE
from support.soak.queries import COUNTED, COUNTED_SLIDE, CYCLE, KEYS, QUERIES, RATE, UNSURE, SoakQuery, options

SECOND = 1_000_000
READ_ROWS = 1 << 20
COLUMNS = ("ts", "src", "dst", "dport", "proto", "flags", "src_as", "bytes", "packets")
ALIGNED = 360  # seconds: windows of all slides begin there

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Finding:
    """One check: what, whether it holds, and the figures."""

    name: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class Written:
    """What there is to check: rows by query, and the stream's state at the end."""

    output: Output
    row: int
    watermark: int
    summary: dict[str, Any]
    source: GeneratedSource

    def starts(self, query: str) -> list[int]:
        """Starts of windows that have rows, in order, in microseconds."""
        times = self.output.rows[query].column("window_start").cast(pa.int64())
        return sorted(times.unique().to_pylist())

    def ends(self, query: str) -> list[int]:
        return sorted(self.output.rows[query].column("window_end").cast(pa.int64()).unique().to_pylist())

    def records(self, start: int, end: int) -> pa.Table:
        """The stream's records of [start, end), which begin near where its mean rate says."""
        first = (start - self.source.clock.start) // SECOND * RATE - 2 * BLOCK
        last = (end - self.source.clock.start) // SECOND * RATE + RATE * CYCLE + 2 * BLOCK
        split = Split(max(0, first - RATE * CYCLE), max(0, last))
        made = pa.Table.from_batches(self.source.read(split, COLUMNS, READ_ROWS))
        times = made.column("ts").cast(pa.int64())
        inside = pc.and_(pc.greater_equal(times, start), pc.less(times, end))
        assert split.start == 0 or times[0].as_py() < start
        assert times[-1].as_py() >= end
        return made.filter(inside)

    def row_at(self, time: int) -> int:
        """Number of records before a time."""
        near = (time - self.source.clock.start) // SECOND * RATE
        low, high = max(0, near - RATE * CYCLE), near + RATE * CYCLE
        batches = self.source.read(Split(low, high), ["ts"], READ_ROWS)
        times = pa.Table.from_batches(batches).column("ts").cast(pa.int64()).to_numpy()
        assert times[-1] >= time
        return low + int(np.searchsorted(times, time))


def written(output: Output, state: StreamState, summary: dict[str, Any], seed: int) -> Written:
    assert state.watermark is not None
    return Written(output, state.row, state.watermark, summary, open_generate("bursty", options(seed)))


def check_all(result: Written, samples: int, seed: int, restarts: Iterable[int]) -> Iterator[Finding]:
    """All checks; `restarts` are watermarks at which runs were started again: windows around them are looked at."""
    for query in QUERIES:
        yield _guarded(f"windows of {query.name}", _check_windows, result, query)
    for name, check in CHECKS.items():
        yield _guarded(name, check, result)
    for start in _sampled(result, samples, seed, restarts):
        yield _guarded(f"window at second {_second(result, start)} by DuckDB", _check_sample, result, start)


def _guarded(name: str, check: Callable[..., str], *arguments: Any) -> Finding:
    """A check returns its figures or raises AssertionError."""
    try:
        return Finding(name, True, check(*arguments))
    except AssertionError as error:
        return Finding(name, False, str(error) or "does not hold")


def _second(result: Written, time: int) -> int:
    return (time - result.source.clock.start) // SECOND


def _check_windows(result: Written, query: SoakQuery) -> str:
    """Each group of each window once; windows without a gap, up to the watermark."""
    rows = result.output.rows[query.name]
    keys = ["window_start", "window_end", *KEYS.get(query.name, [])]
    _require(rows.group_by(keys).aggregate([]).num_rows == rows.num_rows, "a group comes twice")
    shown = result.summary["queries"][query.name]
    _require(shown["rows"] == rows.num_rows, f"{rows.num_rows} rows, {shown['rows']} in the account")
    ends = result.ends(query.name)
    if query.name in UNSURE:
        return f"{len(ends)} windows, {rows.num_rows} rows"
    _require(shown["windows"] == len(ends), f"{len(ends)} windows, {shown['windows']} in the account")
    if query.slide:
        gaps = Counter(np.diff(ends).tolist())
        _require(set(gaps) <= {query.slide * SECOND}, f"distances of windows: {dict(gaps)}")
        _require(
            ends[-1] <= result.watermark < ends[-1] + query.slide * SECOND, "not the last window before the watermark"
        )
    return f"{len(ends)} windows, {rows.num_rows} rows"


def _check_account(result: Written) -> str:
    account = result.summary["accounting"]
    _require(account["input"] == result.row == account["exact"], f"{account}, position {result.row}")
    for name, query in result.summary["queries"].items():
        parts = query["accounting"]
        total = sum(parts[part] for part in ("exact", "triaged", "late", "filtered", "malformed"))
        _require(parts["input"] == total, f"{name}: {parts}")
    return f"{account['input']:,} records, all exact"


def _check_sum(result: Written) -> str:
    """Records in closed windows and records after them are all there are."""
    last = result.ends("protos")[-1]
    counted = sum(result.output.rows["protos"].column("n").to_pylist())
    before = result.row_at(last)
    _require(counted == before, f"windows count {counted:,} records, the stream has {before:,} before their end")
    _require(result.row - before >= 0, f"{result.row - before} records in open windows")
    return f"{counted:,} records in closed windows, {result.row - before:,} in open ones"


def _by_window(result: Written, query: str) -> dict[int, Counter[tuple[int, str]]]:
    """Of a query by protocol: count and bytes, per end of window."""
    found: dict[int, Counter[tuple[int, str]]] = {}
    for row in result.output.rows[query].to_pylist():
        counts = found.setdefault(round(row["window_end"].timestamp()) * SECOND, Counter())
        counts[row["proto"], "n"] += row["n"]
        counts[row["proto"], "total"] += row["total"]
    return found


def _check_since(result: Written) -> str:
    parts, total = _by_window(result, "protos"), Counter[tuple[int, str]]()
    landmarks = _by_window(result, "since")
    for end in sorted(parts):
        total += parts[end]
        _require(landmarks[end] == total, f"landmark window until {end} is no sum")
    return f"{len(parts)} landmark windows are sums"


def _check_sliding(result: Written) -> str:
    parts, slides = _by_window(result, "protos"), _by_window(result, "sliding")
    for end, found in slides.items():
        ends = [end - n * 120 * SECOND for n in range(5)]
        total = sum((parts.get(one, Counter()) for one in ends), Counter[tuple[int, str]]())
        _require(found == total, f"sliding window until {end} is no sum")
    return f"{len(slides)} sliding windows are sums"


def _check_busiest(result: Written) -> str:
    """A result of `rate` counts at the end of its window."""
    rates = [(row["window_end"], row["n"]) for row in result.output.rows["rate"].to_pylist()]
    shown = result.output.rows["busiest"].to_pylist()
    for row in shown:
        inside = [n for at, n in rates if row["window_start"] <= at < row["window_end"]]
        expected = (max(inside), len(inside), sum(inside))
        _require((row["most"], row["windows"], row["n"]) == expected, f"{row} should be {expected}")
    return f"{len(shown)} windows over results"


def _check_counted(result: Written) -> str:
    counts = Counter(result.output.rows["counted"].column("n").to_pylist())
    expected = max(0, (result.row - COUNTED) // COUNTED_SLIDE + 1)
    # The first windows began before the stream did.
    short = COUNTED // COUNTED_SLIDE - 1
    _require(counts[COUNTED] == expected and counts.total() - expected == short, f"{dict(counts)}, expected {expected}")
    return f"{expected} windows of {COUNTED:,} rows"


CHECKS: dict[str, Callable[[Written], str]] = {
    "account": _check_account,
    "records in windows": _check_sum,
    "landmark windows": _check_since,
    "sliding windows": _check_sliding,
    "derived query": _check_busiest,
    "windows of rows": _check_counted,
}


def _sampled(result: Written, samples: int, seed: int, restarts: Iterable[int]) -> list[int]:
    """Starts to look at: some at random, and those before restarts."""
    step = ALIGNED * SECOND
    begin = -(-result.source.clock.start // step) * step
    last = min(result.ends(query.name)[-1] for query in QUERIES if query.sampled and query.name not in UNSURE)
    known = range(begin, last - step + 1, step)
    chosen = set(random.Random(seed).sample(known, min(samples, len(known))))
    near = [min(known, key=lambda start: abs(start - time)) for time in restarts] if known else []
    return sorted(chosen | set(random.Random(seed).sample(near, min(samples, len(near)))))


def _check_sample(result: Written, start: int) -> str:
    sampled = [query for query in QUERIES if query.sampled]
    records = result.records(start, start + max(query.range for query in sampled) * SECOND)
    times = records.column("ts").cast(pa.int64())
    for query in sampled:
        w = records.filter(pc.less(times, start + query.range * SECOND))
        with duckdb.connect() as database:
            database.register("w", w)
            expected = database.execute(query.duck_sql()).fetchall()
        rows = result.output.rows[query.name]
        mine = rows.filter(pc.equal(rows.column("window_start").cast(pa.int64()), start))
        found = [tuple(row.values()) for row in mine.drop(["window_start", "window_end"]).to_pylist()]
        _require(_same(found, expected), f"{query.name}: {sorted(found)[:5]}, expected {sorted(expected)[:5]}")
    return f"{records.num_rows:,} records, {len(sampled)} queries"


def _same(found: Rows, expected: Rows) -> bool:
    if len(found) != len(expected):
        return False
    pairs = zip(sorted(found, key=repr), sorted(expected, key=repr), strict=True)
    return all(_close(a, b) for left, right in pairs for a, b in zip(left, right, strict=True))


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=FLOAT_TOLERANCE)
    return bool(a == b)


def _require(holds: bool, detail: str) -> None:
    if not holds:
        raise AssertionError(detail)
