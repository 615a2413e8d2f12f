"""Queries of windows that are too few for all tasks: each in one part, and parts alike."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.relations.relation import relation_of
from penstock.runtime.epoch import Epoch
from penstock.runtime.merge.items import FOREVER, Due
from penstock.runtime.merge.rolling.dealing import dealt
from penstock.runtime.merge.windows import TaskSegments
from penstock.runtime.settings import TaskSettings
from penstock.runtime.task.task import run_task
from penstock.sharing.plan import unshared_plan
from penstock.state.protocol import Results
from support.closed import blocks_of, due_of, reading_of

SIZES = {"a": 4000, "b": 3000, "c": 800, "d": 6, "e": 4, "f": 2}
ROWS = 20_000


def due_by_pairs(folder: Path, limited: bool = False) -> Due:
    """One window of the six columns, and the queries by pairs of them, the finest ones first."""
    columns = ", ".join(f"{name} INT" for name in SIZES)
    texts = [", ".join(SIZES), *(f"{one}, {other}" for one, other in combinations(SIZES, 2))]
    created = (
        f"CREATE QUERY q{n} AS SELECT {keys}, count(*) AS n FROM s [RANGE '1 hour' SLIDE '1 hour'] GROUP BY {keys}"
        + (" HAVING count(*) > 1;" if limited else ";")
        for n, keys in enumerate(texts)
    )
    alone = "CREATE QUERY alone AS SELECT count(*) AS n FROM s [RANGE '1 hour' SLIDE '1 hour'];"  # by no key
    stream = f"CREATE STREAM s (ts TIMESTAMP, {columns}) FROM 'csv:x';"
    app: QuerySet = resolve_app(f"{stream} {' '.join(created)} {alone}", "app.sql", lambda uri, options: ())
    dice = np.random.default_rng(5)
    data = {name: pa.array(dice.integers(0, size, ROWS), pa.int32()) for name, size in SIZES.items()}
    table = pa.table({"ts": pa.array(np.arange(ROWS), pa.timestamp("us", tz="UTC")), **data})
    wide, *queries = app.queries
    plan = unshared_plan(replace(app, queries=(wide,)), "s", 0)
    told = run_task(plan, TaskSettings(), Epoch(0), iter(table.to_batches()), folder / "0.seg")
    reading = reading_of(queries[0], [relation_of(wide)])
    segments = TaskSegments(folder, [told.segment])
    return due_of(reading, tuple(queries), blocks_of(reading, segments), -FOREVER, FOREVER, None)


@pytest.mark.parametrize("parts", [1, 2, 3, 20])
@pytest.mark.parametrize("limited", [False, True])
def test_each_query_is_in_one_part(parts: int, limited: bool, tmp_path: Path) -> None:
    due = due_by_pairs(tmp_path, limited)
    found = list(dealt(due, due.wanting, parts, {"q1": Results(1, ROWS)}))
    assert sorted(name for names in found for name in names) == sorted(w.query.name for w in due.wanting)
    assert 1 <= len(found) <= parts
    assert all(found)


def test_parts_have_as_many_groups_as_windows_before_told(tmp_path: Path) -> None:
    """Half of the queries had many groups, in any order: no part has them all."""
    due = due_by_pairs(tmp_path)
    names = [wanting.query.name for wanting in due.wanting]
    for seed in range(20):
        heavy = set(random.Random(seed).sample(names, len(names) // 2))
        before = {name: Results(2, 2 * (ROWS if name in heavy else 3)) for name in names}
        shares = [len(heavy.intersection(part)) for part in dealt(due, due.wanting, 2, before)]
        assert abs(shares[0] - shares[1]) <= 2, (seed, shares)


def test_queries_of_one_lead_stay_together(tmp_path: Path) -> None:
    """But for those where a part ends."""
    due = due_by_pairs(tmp_path)
    leads = {w.query.name: min((a.name for a in w.groups.wanted.attributes), default="") for w in due.wanting}
    parts = [{leads[name] for name in part} for part in dealt(due, due.wanting, 3, {})]
    assert sum(len(one & other) for one, other in combinations(parts, 2)) <= 2
