"""Random apps through tasks and merges alone, without Spark: many more cases in the same time.

Splits, chunks, table sizes, memory, direct-mapped fronts, slots and passes are random; every query must equal the
oracle. Nothing is late here: batches and watermarks are the business of `test_random_apps`.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.logical.query import Query, QuerySet
from penstock.logical.resolve import resolve_app
from penstock.runtime.lfta import Epoch, run_task
from penstock.runtime.merge import Segments, merge_item
from penstock.runtime.merge_plan import FOREVER, MergeItem
from penstock.runtime.results import result_schema
from penstock.runtime.settings import TaskSettings
from penstock.sharing.plan import unshared_plan
from penstock.sources.base import even_splits, fields
from penstock.sources.registry import open_source
from penstock.testing.asserts import assert_same_rows
from penstock.testing.generators import random_case
from penstock.testing.oracle import expect

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
QUICK, SLOW = 40, 400


def everything(app: QuerySet) -> QuerySet:
    """The same app with nothing late and nothing ahead."""
    return QuerySet(tuple(replace(s, delay=None, ahead=None) for s in app.streams), app.queries)


def cut(query: Query, slots: int, rng: np.random.Generator) -> list[MergeItem]:
    """Items that cover all windows and slots of a query, in some random way."""
    edges = sorted({0, slots, *rng.integers(0, slots + 1, 2).tolist()})
    middle = int(rng.integers(-10, 10))
    passes = int(rng.integers(1, 4))
    return [
        MergeItem(query.name, 0, first, beyond, low, high, turn, passes)
        for first, beyond in ((-FOREVER, middle), (middle, FOREVER))
        for low, high in itertools.pairwise(edges)
        for turn in range(passes)
    ]


def check(seed: int, folder: Path) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(seed)
    text = case.write(folder / "in")
    app = everything(resolve_app(text, "random.sql", lambda uri, options: fields(open_source(uri, options).schema())))
    (stream,) = app.streams
    source = open_source(stream.source, dict(stream.options))
    settings = TaskSettings(
        case.settings.chunk_rows, case.settings.table_rows, case.settings.task_memory, case.settings.slots
    )
    plan = unshared_plan(app, case.settings.memory)
    used = {stream.time}.union(*(query.columns for query in app.queries))
    columns = [field.name for field in stream.fields if field.name in used]
    references = []
    splits = even_splits(0, source.rows(), int(rng.integers(1, 6))) if source.rows() else []
    for number, split in enumerate(splits):
        batches = source.read(split, columns, settings.chunk_rows)
        path = folder / f"{number}.seg"
        references.append(run_task(plan, settings, Epoch(0, None, None), batches, path)["segment"])
    expected = expect(app, case.data, [case.data.num_rows])
    segments = Segments(folder, references)
    for query in app.queries:
        schema = result_schema(query)
        tables = [merge_item(query, item, segments).cast(schema) for item in cut(query, settings.slots, rng)]
        assert_same_rows(pa.concat_tables(tables), expected.rows[query.name], f"seed {seed}, query {query.name}")


@pytest.mark.parametrize("start", range(0, QUICK, 10))
def test_tasks_and_merges_match_the_oracle(start: int, tmp_path: Path) -> None:
    for seed in range(500 + start, 510 + start):
        check(seed, tmp_path / str(seed))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, SLOW, 20))
def test_many_tasks_and_merges_match_the_oracle(start: int, tmp_path: Path) -> None:
    for seed in range(SEED + start, SEED + start + 20):
        check(seed, tmp_path / str(seed))
