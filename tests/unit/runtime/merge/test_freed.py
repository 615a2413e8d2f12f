"""What merging an item has read and made is gone with the item, without the garbage collector.

Columns in a circle of references stay until that comes; each of dozens of queries then begins in fresh memory.
"""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.relations.relation import relation_of
from penstock.runtime.epoch import Epoch
from penstock.runtime.merge.item import merge_item
from penstock.runtime.merge.items import FOREVER, Wanting
from penstock.runtime.merge.merge import Merge
from penstock.runtime.merge.once import MergedOnce
from penstock.runtime.merge.rolling.rolling import Rolling
from penstock.runtime.merge.windows import TaskSegments
from penstock.runtime.settings import TaskSettings
from penstock.runtime.task.task import run_task
from penstock.sharing.plan import unshared_plan
from penstock.state.segments.groups import Groups
from support.closed import blocks_of, due_of, engine_cuts, reading_of, wanting_of

STREAM = "CREATE STREAM s (ts TIMESTAMP, a INT, b INT, h STRING, v BIGINT) FROM 'csv:x';"
MADE = (Groups, Merge, MergedOnce, Rolling)
WIDE = "SELECT a, b, h, count(*) AS n, sum(v) AS t, max(v) AS m FROM s WINDOW GROUP BY a, b, h"


def app(texts: list[str]) -> QuerySet:
    window = "[RANGE '10 seconds' SLIDE '10 seconds']"
    created = " ".join(f"CREATE QUERY q{n} AS {text.replace('WINDOW', window)};" for n, text in enumerate(texts))
    return resolve_app(f"{STREAM} {created}", "app.sql", lambda uri, options: ())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, b, h, count(*) AS n, sum(v) AS t, max(v) AS m FROM s WINDOW GROUP BY a, b, h HAVING count(*) > 1",
        "SELECT a, count(*) AS n FROM s WINDOW GROUP BY a",
        "SELECT b, h, sum(v) AS t, max(v) AS m FROM s WINDOW GROUP BY b, h HAVING sum(v) > 3 ORDER BY sum(v) LIMIT 3",
        "SELECT a, b, max(v) AS m FROM s WINDOW GROUP BY a, b",
    ],
    ids=["as stored", "by place", "limited", "with an extreme"],
)
def test_nothing_waits_for_the_garbage_collector(text: str, tmp_path: Path) -> None:
    both, settings = app([WIDE, text]), TaskSettings()
    wide, query = both.queries
    dice, rows = np.random.default_rng(3), 20_000
    data = pa.table(
        {
            "ts": pa.array(np.sort(dice.integers(0, 40_000_000, rows)), pa.timestamp("us", tz="UTC")),
            "a": pa.array(dice.integers(0, 3000, rows), pa.int32()),
            "b": pa.array(dice.integers(0, 900, rows), pa.int32()),
            "h": pa.array(dice.choice(["x", "y", "z"], rows)),
            "v": pa.array(dice.integers(0, 9, rows)),
        }
    )
    plan = unshared_plan(replace(both, queries=(wide,)), "s", 0)
    told = run_task(plan, settings, Epoch(0), iter(data.to_batches()), tmp_path / "0.seg")
    reading = reading_of(query, [relation_of(wide)])
    with TaskSegments(tmp_path, [told.segment]) as segments:
        due = due_of(reading, (query,), blocks_of(reading, segments), -FOREVER, FOREVER, None)
        wanting: tuple[Wanting, ...] = wanting_of(reading, query)
        gc.collect()
        gc.disable()
        try:
            closed = 0
            for _, cut in engine_cuts(due, settings):
                for merged in merge_item(reading, wanting, cut, segments):
                    closed += merged.table.num_rows
                    del merged
            left = [type(one).__name__ for one in gc.get_objects() if isinstance(one, MADE)]
        finally:
            gc.enable()
    assert closed > 0
    assert left == []
