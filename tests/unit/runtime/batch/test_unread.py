"""What a task writes down of records that nobody looks at: how many, by the panes that they came in."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.logical.resolve.app import resolve_app
from penstock.runtime.batch.live.unread import lost_records, picks_alone
from penstock.sharing.plan import SharedPlan, unshared_plan
from penstock.sources.base import Position, Source, Split, fields
from penstock.sources.live import replay, times
from penstock.sources.live.contract import live
from penstock.sources.live.course import course_of
from penstock.sources.registry import open_source

BLOCK, SECOND, DAY = 16, 1_000_000, 86_400_000_000


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (replay, times):
        monkeypatch.setattr(module, "BLOCK", BLOCK)


def planned(folder: Path, windows: list[str]) -> SharedPlan:
    queries = "".join(
        f"CREATE QUERY q{i} AS SELECT count(*) AS n FROM s {window} LIMIT DELAY TO '1 hour';"
        for i, window in enumerate(windows)
    )
    text = f"CREATE STREAM s FROM 'replay:parquet:{folder}' WATERMARK ts DELAY '1 second' MAX AHEAD '1 day'; {queries}"
    app = resolve_app(text, "drop.sql", lambda uri, options: fields(open_source(uri, options).schema()))
    return picks_alone(unshared_plan(app, "s"))


@pytest.mark.parametrize("seed", range(40))
def test_what_is_lost_is_counted_in_the_pane_that_it_came_in(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    pace = rng.choice([1_000, SECOND // 20, SECOND, 600 * SECOND])
    stamps = np.cumsum([rng.randrange(2 * pace) if rng.random() < 0.9 else 5 * pace for _ in range(400)])
    late = np.array([stamp - rng.choice([0, 0, pace]) for stamp in stamps.tolist()])
    holes = [None if rng.random() < 0.05 else stamp for stamp in late.tolist()]
    pq.write_table(pa.table({"ts": pa.array(holes, pa.timestamp("us"))}), tmp_path / "0.parquet")
    windows = rng.sample(["[RANGE '1 second']", "[RANGE '7 seconds' SLIDE '3 seconds']", "[RANGE '1 hour']"], 2)
    print(seed, pace, windows)
    kept = planned(tmp_path, windows)
    source: Source = open_source(f"replay:parquet:{tmp_path}", {"speed": "1"})
    assert live(source)
    source = source.prepare("ts", DAY)
    known = np.maximum.accumulate([times.LEAST if one is None else one for one in holes])
    for _ in range(10):
        start, stop = sorted(Position(rng.randrange(401)) for _ in range(2))
        split = Split(start, stop)
        told = course_of(source, split, "ts", DAY)
        (rows,) = lost_records(told, source.narrowed(split), kept)
        usable = [int(one) for one in known[start:stop] if one != times.LEAST]
        for panes in {relation.panes for relation in kept.relations}:
            found = Counter[int]()
            for stamp, weight in zip(
                rows.column(0).cast(pa.int64()).to_pylist(), rows.column(1).to_pylist(), strict=True
            ):
                found[panes.number(stamp)] -= weight
            assert found == Counter(map(panes.number, usable))


def test_times_are_read_only_where_a_pane_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = pa.array(range(0, 400 * 100_000, 100_000), pa.timestamp("us"))
    pq.write_table(pa.table({"ts": stamps}), tmp_path / "0.parquet")
    kept = planned(tmp_path, ["[RANGE '10 seconds']"])
    source: Source = open_source(f"replay:parquet:{tmp_path}", {"speed": "1"})
    assert live(source)
    source = source.prepare("ts", None)
    split = Split(Position(0), Position(400))
    told = course_of(source, split, "ts", None)
    narrow = source.narrowed(split)
    read: list[Split] = []
    running = times.running
    monkeypatch.setattr(
        "penstock.sources.live.course.running",
        lambda one, part, *rest: [read.append(part), running(one, part, *rest)][1],
    )
    (rows,) = lost_records(told, narrow, kept)
    # Nothing is known before the first block; records 100, 200 and 300 are the first of their windows.
    assert [(one.start, one.stop) for one in read] == [(0, 16), (96, 112), (192, 208), (288, 304)]
    assert -sum(rows.column(1).to_pylist()) == 400
