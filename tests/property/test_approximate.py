"""Approximate aggregates through the whole engine but Spark: random streams, windows, plans, partitions, compactions.

`approx_frequent` must stay within its bounds whatever is forgotten when; distinct counts and percentiles must be near
the truth, and the same to the last bit however the stream was cut.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from in_process import Engine

from penstock.logical.resolve.app import resolve_app
from penstock.runtime.batch import compaction
from penstock.sources.base import fields
from penstock.sources.registry import open_source
from penstock.testing.apps.generators import Settings
from support.amounts import quick_and

SEED = int(os.environ.get("PENSTOCK_SEED", "20261118"))
SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def stream(rng: np.random.Generator, rows: int) -> pa.Table:
    """Skewed values, as numbers, text and addresses; some NULLs."""
    values = np.minimum(rng.zipf(rng.choice([1.2, 1.5, 2.5]), rows), 5_000)
    null = rng.random(rows) < rng.choice([0.0, 0.1])
    seconds = int(rng.choice([10, 60, 300]))
    return pa.table({
        "ts": pa.array(START + np.sort(rng.integers(0, seconds * SECOND, rows)), pa.timestamp("us", "UTC")),
        "g": rng.integers(0, int(rng.choice([1, 3, 20])), rows),
        "x": pa.array(values, pa.int64(), mask=null),
        "host": pa.array([f"host-{value}" for value in values], pa.string(), mask=null),
        "addr": pa.array(
            [f"2001:db8::{value:x}" if value % 3 else f"10.0.{value // 256}.{value % 256}" for value in values],
            pa.string(), mask=null,
        ),
        "size": rng.lognormal(3, 2, rows) * rng.choice([-1, 1], rows, p=[0.1, 0.9]),
    })  # fmt: skip


def settings(rng: random.Random, rows: int) -> Settings:
    return Settings(
        batch_rows=rng.choice([rows, rows // 3, rows // 20 + 1]),
        parallelism=rng.choice([1, 2, 5]),
        memory=rng.choice([0, 4096, 1 << 20]),
        task_memory=rng.choice([40_000 + 40 * rows, 1 << 26]),
        chunk_rows=rng.choice([17, 500, 65_536]),
        table_rows=rng.choice([2, 64, 4096]),
        slots=rng.choice([1, 4, 32]),
    )


def ran(text: str, folder: Path, chosen: Settings) -> Engine:
    app = resolve_app(text, "random.sql", lambda uri, options: fields(open_source(uri, options).schema()))
    sources = {one.name: open_source(one.source, dict(one.options)) for one in app.streams}
    engine = Engine(folder, app, sources, chosen)
    engine.finish()
    return engine


def declared(path: Path) -> str:
    return (
        f"CREATE STREAM s (ts TIMESTAMP, g BIGINT, x BIGINT, host STRING, addr INET, size DOUBLE) "
        f"FROM 'parquet:{path}' WATERMARK ts DELAY '1 hour';\n"
    )


Place = tuple[int, int | None]  # start of a window, and group
WINDOWS = ("[RANGE '1 minute']", "[RANGE '20 seconds' SLIDE '1 second']", "[RANGE '1 minute' SLIDE '7 seconds']")


def rows_of(engine: Engine, query: str) -> list[dict[str, object]]:
    found = engine.rows(query)
    return [] if found is None else found.to_pylist()


def true_counts(
    data: pa.Table, column: str, grouped: bool, window: str
) -> dict[tuple[int, int | None], Counter[object]]:
    """Counts of values by start of the window and group."""
    words = [int(word) * (60 if "minute" in unit else 1) for word, unit in _durations(window)]
    length, slide = words[0] * SECOND, words[-1] * SECOND
    found: dict[Place, Counter[object]] = {}
    for ts, g, value in zip(
        data.column("ts").cast(pa.int64()).to_pylist(),
        data.column("g").to_pylist(),
        data.column(column).to_pylist(),
        strict=True,
    ):
        if value is not None:
            first = (ts - length) // slide * slide + slide
            for start in range(first, ts + 1, slide):
                found.setdefault((start, g if grouped else None), Counter())[value] += 1
    return found


def _durations(window: str) -> Iterator[tuple[str, str]]:
    words = window.replace("'", " ").replace("]", " ").split()
    return ((word, words[at + 1]) for at, word in enumerate(words) if word.isdecimal())


@pytest.mark.parametrize("start", quick_and([0], range(5, 200, 5)))
def test_frequent_values_stay_within_their_bounds(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(start, start + 5):
        bounds(SEED + seed, tmp_path / str(seed), monkeypatch)


def bounds(seed: int, folder: Path, patch: pytest.MonkeyPatch) -> None:
    rng, dice = np.random.default_rng(seed), random.Random(seed)
    patch.setattr(compaction, "MOST", dice.choice([1, 3, 12]))
    data = stream(rng, int(rng.choice([300, 3_000])))
    folder.mkdir()
    pq.write_table(data, folder / "s.parquet", row_group_size=int(rng.choice([100, 1_000])))
    support = dice.choice(["0.5", "0.1", "0.02"])
    lost = dice.choice(["", f", {float(support) / 2}", f", {float(support) * 0.9:.4f}"])
    column, grouped, window = dice.choice(["x", "host", "addr"]), dice.random() < 0.5, dice.choice(WINDOWS)
    key, by = ("g, ", "GROUP BY g") if grouped else ("", "")
    only = " FILTER (WHERE size > 20)" if dice.random() < 0.4 else ""
    text = declared(folder / "s.parquet") + (
        f"CREATE QUERY q AS SELECT {key}approx_frequent({column}, {support}{lost}){only} AS f, count(*) AS n "
        f"FROM s {window} {by};\n"
        f"CREATE QUERY e AS SELECT {key}frequent({column}, {support}){only} AS f FROM s {window} {by};\n"
    )
    context = f"seed {seed}\n{text}"
    engine = ran(text, folder / "run", settings(dice, data.num_rows))
    truth = true_counts(data.filter(pc.greater(data.column("size"), 20)) if only else data, column, grouped, window)
    share = Fraction(support)
    error = Fraction(lost.strip(", ")) if lost else share / 10
    exact = {
        (key, value): count
        for key, counts in truth.items()
        for value, count in counts.items()
        if count >= share * sum(counts.values())
    }
    told = {(place(row, grouped), row["f"]): row for row in rows_of(engine, "e")}
    assert {key: row["count_f"] for key, row in told.items()} == exact, context
    assert all(row["undercount_f"] == 0 for row in told.values()), context
    listed = {(place(row, grouped), row["f"]): row for row in rows_of(engine, "q")}
    assert exact.keys() <= listed.keys(), context
    for (where, value), row in listed.items():
        number, count = sum(truth[where].values()), truth[where][value]
        least, short = row["count_f"], row["undercount_f"]
        assert isinstance(least, int), context
        assert isinstance(short, int), context
        assert least <= count <= least + short, context
        assert 0 <= short <= error * number, context
        assert least + short >= ceil(share * number), context


def place(row: dict[str, object], grouped: bool) -> Place:
    start, group = row["window_start"], row.get("g")
    micros = int(np.datetime64(start.replace(tzinfo=None), "us").astype(np.int64))  # type: ignore[attr-defined]
    assert group is None or isinstance(group, int)
    return micros, group if grouped else None


SKETCHES = (
    "SELECT g, approx_count_distinct({0}) AS d, approx_count_distinct({0}, 0.1) AS rough, "
    "count(DISTINCT {0}) AS true_d, approx_percentile(size, 0.5) AS m, median(size) AS true_m, "
    "approx_percentile(size, 0.99, 0.001) AS p, "
    "percentile(size, 0.99) AS true_p, entropy({0}) AS h FROM s {1} GROUP BY g"
)


@pytest.mark.parametrize("start", quick_and([0], range(3, 60, 3)))
def test_sketches_are_near_and_the_same_however_the_stream_is_cut(
    start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(start, start + 3):
        sketches(SEED + seed, tmp_path / str(seed), monkeypatch)


def sketches(seed: int, folder: Path, patch: pytest.MonkeyPatch) -> None:
    rng, dice = np.random.default_rng(seed), random.Random(seed)
    data = stream(rng, int(rng.choice([300, 5_000])))
    folder.mkdir()
    pq.write_table(data, folder / "s.parquet", row_group_size=100)
    column, window = dice.choice(["x", "host", "addr", "addr/24"]), dice.choice(WINDOWS)
    select = SKETCHES.format(column, window)
    # A LIMIT that cuts nothing: the window is closed in one piece then, a range of slots after the other.
    queries = f"CREATE QUERY q AS {select};\nCREATE QUERY l AS {select} ORDER BY g LIMIT 1000;"
    text = declared(folder / "s.parquet") + queries
    context, found = f"seed {seed}\n{text}", []
    for number in range(3):
        patch.setattr(compaction, "MOST", dice.choice([1, 12]))
        engine = ran(text, folder / str(number), settings(dice, data.num_rows))
        for query in ("q", "l"):
            rows = engine.rows(query)
            assert rows is not None, context
            found.append(rows.sort_by([("window_start", "ascending"), ("g", "ascending")]))
    assert all(found[0].equals(other) for other in found[1:]), context
    for row in found[0].to_pylist():
        # Five standard errors; among few values two that share a register are more.
        assert abs(row["d"] - row["true_d"]) <= max(2, 5 * 0.01625 * row["true_d"]), (row, context)
        assert abs(row["rough"] - row["true_d"]) <= max(3, 5 * 0.0919 * row["true_d"]), (row, context)
        assert abs(row["m"] - row["true_m"]) <= 0.01 * abs(row["true_m"]), (row, context)
        assert abs(row["p"] - row["true_p"]) <= 0.001 * abs(row["true_p"]), (row, context)


def test_memory_bounds_what_a_task_keeps(tmp_path: Path) -> None:
    """With a bound on memory runs are written early, and the bounds hold all the same."""
    rng = np.random.default_rng(SEED)
    data = stream(rng, 20_000)
    pq.write_table(data, tmp_path / "s.parquet")
    text = declared(tmp_path / "s.parquet") + (
        "CREATE QUERY q AS SELECT approx_frequent(x, 0.2, '4KiB') AS f FROM s [RANGE '1 hour'];"
    )
    chosen = Settings(20_000, 1, 0, 1 << 26, 500, 64, 4)
    engine = ran(text, tmp_path / "run", chosen)
    counts = Counter(value for value in data.column("x").to_pylist() if value is not None)
    number = sum(counts.values())
    listed = {row["f"]: row for row in rows_of(engine, "q")}
    assert {value for value, count in counts.items() if count >= 0.2 * number} <= listed.keys()
    for value, row in listed.items():
        least, short = row["count_f"], row["undercount_f"]
        assert isinstance(least, int)
        assert isinstance(short, int)
        assert least <= counts[value] <= least + short
        assert short <= Fraction(7, 64) * number + 1
