"""Random apps with Spark and without it, with random plans, against the oracle; the oracle against Spark's groupBy.

Every failure names its seed: `random_case(seed)` brings the app back.  PENSTOCK_SEED moves the slow campaign.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from in_process import bearable, read_output

from penstock.logical.expressions import Aggregate, Bucket, Column, Expression
from penstock.logical.query import OutputColumn, Query, QuerySet, Stream
from penstock.logical.resolve.app import resolve_app
from penstock.logical.types import BIGINT, TIMESTAMP, Kind
from penstock.logical.window import ROWS, Window
from penstock.sources.base import fields
from penstock.sources.registry import open_source
from penstock.testing.apps.generators import RandomCase, Settings, random_case
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows, assert_same_windows
from penstock.testing.oracle.columns import read_column
from penstock.testing.oracle.expected import Expected, expect
from support.amounts import quick_and

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
# The last three once split a NULL group, failed on an empty dictionary, and lost a value to a new layout.
QUICK = (*range(1, 10), 20261138, 20261147, 20261276)
SLOW_CASES, CHUNK = 300, 10
MANY, CHUNK_IN_PROCESS = 1_000, 20
FUNCTIONS = ("count", "sum", "min", "max", "avg")
DAY = 86_400_000_000
# Every setting as unlike the case's own as it can be.
OTHER = Settings(batch_rows=0, parallelism=3, memory=4_096, task_memory=30_000, chunk_rows=37, table_rows=4, slots=5)
PLAIN = Settings(
    batch_rows=0, parallelism=1, memory=0, task_memory=256_000_000, chunk_rows=65_536, table_rows=1_024, slots=1
)


@dataclass(frozen=True)
class Ran:
    """What a run left behind."""

    summary: Mapping[str, Any]
    rows: Mapping[str, pa.Table | None]
    windows: Mapping[str, list[dict[str, int]]]

    @property
    def batches(self) -> list[int]:
        return [batch["rows"] for batch in self.summary["batches"]]


def resolve(text: str) -> QuerySet:
    return resolve_app(text, "random.sql", lambda uri, options: fields(open_source(uri, options).schema()))


def random_planning(seed: int) -> dict[str, Any]:
    """Plans of any kind, by a seed of their own. `memory` replaces the case's where tables are shared."""
    rng = random.Random(seed)
    if rng.random() < 0.2:
        return {"plan": "none"}
    return {
        "plan": rng.choice(["auto", "gc", "gp"]),
        "alloc": rng.choice(["auto", "sl", "sr", "pl", "pr"]),
        "memory": rng.choice([4 << 10, 64 << 10, 1 << 20, 64 << 20]),
        "replan": rng.choice(["auto", "auto", "off"]),
        "peak_load": rng.choice([None, None, 1e5]),
    }


def run_app(spark: SparkSession | None, case: RandomCase, settings: Settings, folder: Path, **planning: Any) -> Ran:
    """Without a session, in this process, or with workers of its own; some read a table in memory, some Arrow files."""
    import penstock as ps

    app = ps.App(spark=spark, master="process")
    if case.seed % 4 == 1:
        app.stream("held", case.data, time="ts").sql(case.text("table:held"))
    else:
        app.sql(case.write(folder / "in", "arrow" if case.seed % 4 == 2 else "parquet"))
    places = {"checkpoint": str(folder / "checkpoint"), "output": str(folder / "out")}
    run = app.start(**{"plan": "none", **settings.as_arguments(), **planning}, **places)
    run.await_end()
    rows = {name: read_output(folder / "out" / name) for name in case.queries}
    return Ran(run.summary(), rows, {name: run.window_account(name) for name in case.queries})


def assert_as_expected(ran: Ran, expected: Expected, context: str) -> None:
    assert_account_closes(ran.summary)
    for name, rows in expected.rows.items():
        place = f"{context}, query {name}"
        actual = ran.rows[name]
        assert_same_rows(rows.slice(0, 0) if actual is None else actual, rows, place)
        told = ran.summary["queries"][name]
        assert told["rows"] == rows.num_rows, f"{place}: the summary says {told['rows']} rows, not {rows.num_rows}"
        assert_same_account(told["accounting"], expected.accounts[name], place)
        assert_same_windows(ran.windows[name], expected.windows[name], place)
    assert_same_account(ran.summary["accounting"], expected.stream, f"{context}, stream")


def check_case(spark: SparkSession | None, seed: int, folder: Path, workers: int | None = None) -> None:
    case = random_case(seed)
    settings = bearable(case.settings, case.data.num_rows)
    if workers is not None:
        settings = replace(settings, parallelism=workers)
    planning = random_planning(seed)
    context = f"seed {seed}: {settings}, {planning}\n{case.text(f'parquet:{folder}/in')}"
    try:
        ran = run_app(spark, case, settings, folder, **planning)
    except Exception as error:
        error.add_note(context)
        raise
    assert sum(ran.batches) == case.data.num_rows, f"{context}: batches {ran.batches} do not cover the stream"
    assert_as_expected(ran, expect(resolve(case.write(folder / "parquet")), case.data, ran.batches), context)


@pytest.mark.parametrize("seed", QUICK)
def test_random_apps_match_the_oracle(spark: SparkSession, seed: int, tmp_path: Path) -> None:
    check_case(spark, seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEED, SEED + SLOW_CASES, CHUNK))
def test_campaign_of_random_apps(spark: SparkSession, first: int, tmp_path: Path) -> None:
    failures: list[Exception] = []
    for seed in range(first, first + CHUNK):
        try:
            check_case(spark, seed, tmp_path / str(seed))
        except Exception as error:
            failures.append(error)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {CHUNK} seeds failed", failures)


# -- without Spark


@pytest.mark.parametrize("first", quick_and([1], range(SEED, SEED + MANY, CHUNK_IN_PROCESS)))
def test_random_apps_in_this_process_match_the_oracle(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + CHUNK_IN_PROCESS):
        check_case(None, seed, tmp_path / str(seed), workers=1)
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.parametrize("seed", quick_and([3, 4], range(SEED, SEED + 40)))
def test_random_apps_with_worker_processes_match_the_oracle(seed: int, tmp_path: Path) -> None:
    check_case(None, seed, tmp_path, workers=2 + seed % 2)


@pytest.mark.parametrize("seed", [QUICK[0], *(pytest.param(SEED - i, marks=pytest.mark.slow) for i in range(1, 9))])
def test_settings_change_no_result(spark: SparkSession, seed: int, tmp_path: Path) -> None:
    """Batch cuts decide what is late, so they may differ only where there is no watermark."""
    case = random_case(seed)
    cuts = [case.settings.batch_rows] * 2
    if case.delay is None:
        cuts[1] = max(1, case.data.num_rows // 2)
    first = run_app(spark, case, replace(PLAIN, batch_rows=cuts[0]), tmp_path / "plain")
    planned = {"plan": "gc", "memory": 16 << 10}
    second = run_app(spark, case, replace(OTHER, batch_rows=cuts[1]), tmp_path / "other", **planned)
    assert first.summary["accounting"] == second.summary["accounting"], f"seed {seed}"
    for name in case.queries:
        left, right = first.rows[name], second.rows[name]
        empty = next((table.slice(0, 0) for table in (left, right) if table is not None), None)
        if empty is None:
            continue
        assert_same_rows(left or empty, right or empty, f"seed {seed}, query {name}")


# -- the oracle against Spark


@pytest.mark.parametrize("seed", [QUICK[1], *(pytest.param(SEED + i, marks=pytest.mark.slow) for i in range(12))])
def test_oracle_agrees_with_spark(spark: SparkSession, seed: int, tmp_path: Path) -> None:
    case = random_case(seed)
    asked = resolve(case.write(tmp_path / "in"))
    stream = asked.streams[0]
    queries = QuerySet(asked.streams, tuple(simplified(query) for query in asked.readers(stream.name)))
    expected = expect(queries, case.data, [case.data.num_rows])
    null_times = case.data.column(stream.time).null_count
    for query in queries.queries:
        if expected.accounts[query.name].malformed == null_times:
            actual = spark_rows(spark, query, stream, case.data).cast(expected.rows[query.name].schema)
            assert_same_rows(actual, expected.rows[query.name], f"seed {seed}, query {query.name}")


def simplified(query: Query) -> Query:
    """What Spark can say in a plain groupBy: windows of time with an end to them, no WHERE, HAVING, LIMIT, addresses
    or expressions, no variances (Spark's have fewer digits); keys and aggregates selected."""
    window = query.window
    if window.landmark or window.axis == ROWS:
        window = Window(7 * DAY, 7 * DAY)
    keys = tuple(key for key in query.keys if plain(key.attribute))
    aggregates = tuple(a for a in query.aggregates if a.function in FUNCTIONS and (not a.argument or plain(a.argument)))
    aggregates = aggregates or (Aggregate("count", None, BIGINT),)
    chosen = (Bucket(), *(key.attribute for key in keys), *aggregates)
    select = tuple(OutputColumn(f"o{i}", expression) for i, expression in enumerate(chosen))
    return Query(query.name, query.stream, window, None, keys, select, None, aggregates, None)


def plain(expression: Expression) -> bool:
    return isinstance(expression, Column) and expression.type.kind not in (Kind.INET, Kind.PREFIX)


def spark_rows(spark: SparkSession, query: Query, stream: Stream, data: pa.Table) -> pa.Table:
    from pyspark.sql import functions as F

    grouped = spark_groups(spark, query, stream, data)
    window = query.window
    names: dict[Any, Any] = {Bucket(): F.col("window")}
    names |= {key.attribute: F.col(f"k{i}") for i, key in enumerate(query.keys)}
    names |= {aggregate: F.col(f"a{i}") for i, aggregate in enumerate(query.aggregates)}
    outputs = [spark_value(names[o.expression], o.expression.type.kind).alias(o.name) for o in query.select]
    start = F.col("window") * window.slide
    times = [F.timestamp_micros(start), F.timestamp_micros(start + window.length)]
    return grouped.select(*outputs, times[0].alias("window_start"), times[1].alias("window_end")).toArrow()


def spark_value(column: Any, kind: Kind) -> Any:
    from pyspark.sql import functions as F

    return F.timestamp_micros(column) if kind is Kind.TIMESTAMP else column


def spark_groups(spark: SparkSession, query: Query, stream: Stream, data: pa.Table) -> DataFrame:
    from pyspark.sql import functions as F

    types = {field.name: field.type for field in stream.fields}
    columns = {name: read_column(data.column(name), types[name]).array for name in sorted(query.columns)}
    columns["_time"] = read_column(data.column(stream.time), TIMESTAMP).array
    frame = spark.createDataFrame(pa.table(columns)).where("_time IS NOT NULL")
    slide, length = query.window.slide, query.window.length
    # The least number with number · slide + length > time, the greatest with number · slide <= time.
    first, last = (f"CAST(({t} - pmod({t}, {slide})) div {slide} AS BIGINT)" for t in (f"(_time - {length})", "_time"))
    numbers = f"filter(sequence({first} + 1, {last} + 1), k -> k <= {last})"  # none in a gap
    frame = frame.withColumn("window", F.explode(F.expr(numbers)))
    keys = [F.col(f"`{key.attribute.name}`").alias(f"k{i}") for i, key in enumerate(query.keys)]
    aggregates = [spark_aggregate(a).alias(f"a{i}") for i, a in enumerate(query.aggregates)]
    return frame.groupBy("window", *keys).agg(F.count(F.lit(1)).alias("rows"), *aggregates)


def spark_aggregate(aggregate: Aggregate) -> Any:
    from pyspark.sql import functions as F

    if aggregate.argument is None:
        return F.count(F.lit(1))
    column = F.col(f"`{aggregate.argument.name}`")
    if aggregate.argument.type.kind is Kind.INTEGER and aggregate.function in ("sum", "avg"):
        # Spark's own BIGINT sum overflows on the way; its decimals hold 38 digits.
        total = F.sum(column.cast("decimal(38,0)"))
        whole = aggregate.function == "sum"
        return total.cast("bigint") if whole else total.cast("double") / F.count(column)
    return getattr(F, aggregate.function)(column)
