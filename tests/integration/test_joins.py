"""Joins end to end: on Spark as without it, killed and run again, shared with plain queries, read in step."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.relations.storing import stored
from penstock.state import manifest as manifests
from penstock.testing import faults
from penstock.testing.faults import DRIVER, WORKER, Fault, Kill, Launch, Lineage, Output, Strike, run_campaign

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
SECOND = 1_000_000
ROWS, BATCHES, KILLS = 60_000, 12, 25
STREAMS = """
CREATE STREAM orders FROM 'parquet:{place}/orders.parquet' WATERMARK ts DELAY '1 second';
CREATE STREAM clicks FROM 'parquet:{place}/clicks.parquet' WATERMARK ts DELAY '300 milliseconds';
"""
APP = (
    STREAMS
    + """
CREATE TABLE owners (low BIGINT, high BIGINT, name STRING) FROM 'csv:{place}/owners.csv';
CREATE QUERY pairs AS SELECT o.shop, c.page, count(*) AS n, sum(o.price) AS total, max(c.page) AS last
  FROM orders o [RANGE '4 seconds' SLIDE '2 seconds'], clicks c [RANGE '6 seconds' SLIDE '2 seconds']
  WHERE o.item = c.item AND o.price <> c.page GROUP BY o.shop, c.page;
CREATE QUERY sofar AS SELECT count(*) AS n, avg(price) AS mean, count(DISTINCT o.shop) AS shops
  FROM orders o [WINDOW UNTIL NOW], clicks c [ROWS 500] WHERE o.item = c.item EVERY 5 SECONDS;
CREATE QUERY owned AS SELECT w.name, o.shop, count(*) AS n
  FROM orders o [RANGE '2 seconds'] JOIN owners w ON o.item >= w.low AND o.item < w.high GROUP BY w.name, o.shop;
CREATE QUERY shops AS SELECT shop, count(*) AS n FROM orders [RANGE '2 seconds'] GROUP BY shop;
CREATE QUERY loud AS SELECT s.shop, count(*) AS n FROM shops s [RANGE '2 seconds'], orders o [RANGE '2 seconds']
  WHERE s.shop = o.shop AND s.n > 3 GROUP BY s.shop ORDER BY n DESC LIMIT 5;
"""
)


def write_streams(place: Path, rows: int = ROWS, denser: int = 2) -> None:
    """Orders and clicks on the same items, a minute of them; `denser`: clicks for an order."""
    rng = np.random.default_rng(5)

    def table(count: int, **columns: int) -> pa.Table:
        times = np.sort(rng.integers(0, 60 * SECOND, count)) + rng.integers(0, SECOND // 4, count)
        made = {
            name: pa.array(rng.integers(0, most, count), mask=rng.random(count) < 0.02)
            for name, most in columns.items()
        }
        return pa.table({"ts": pa.array(times, pa.timestamp("us", tz="UTC")), **made})

    few = rows // (1 + denser)
    pq.write_table(table(few, item=300, shop=9, price=50), place / "orders.parquet", row_group_size=1_000)
    pq.write_table(table(rows - few, item=300, page=7), place / "clicks.parquet", row_group_size=1_000)
    (place / "owners.csv").write_text("low,high,name\n0,100,a\n50,120,b\n110,290,c\n200,210,c\n")


def started(text: str, place: Path, **settings: Any) -> ps.App:
    app = ps.App(master="process").sql(text)
    app.start(str(place / "checkpoint"), output=str(place / "out"), parallelism=1, **settings).await_end()
    return app


@dataclass(frozen=True)
class Reference:
    app: Path
    output: Output


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    place = tmp_path_factory.mktemp("joins")
    write_streams(place)
    app = place / "app.sql"
    app.write_text(APP.format(place=place))
    started(app.read_text(), place, batch_rows=ROWS // BATCHES)
    return Reference(app, faults.collect(place / "out"))


PAIRS = """
  WITH o AS (SELECT *, epoch_us(ts) AS us FROM orders), c AS (SELECT *, epoch_us(ts) AS us FROM clicks),
       t AS (SELECT unnest(range(0, 80000000, 2000000)) AS t)
  SELECT o.shop, c.page, count(*) AS n, sum(o.price)::BIGINT AS total, max(c.page) AS last, t.t
  FROM t JOIN o ON o.us >= t.t - 4000000 AND o.us < t.t JOIN c ON c.us >= t.t - 6000000 AND c.us < t.t
  WHERE o.item = c.item AND o.price <> c.page GROUP BY ALL
"""


def test_pairs_equal_duckdb_at_every_instant(reference: Reference) -> None:
    """By SQL of its own, on more records than the random apps have."""
    place, database = reference.app.parent, duckdb.connect()
    for name in ("orders", "clicks"):
        database.register(name, pq.read_table(place / f"{name}.parquet"))
    found = pq.read_table(place / "out" / "pairs").to_pylist()
    ends = [int(row["window_end"].timestamp() * SECOND) for row in found]
    rows = [(r["shop"], r["page"], r["n"], r["total"], r["last"], end) for r, end in zip(found, ends, strict=True)]
    assert sorted(rows, key=repr) == sorted(database.execute(PAIRS).fetchall(), key=repr)


def test_spark_gives_the_same(reference: Reference, spark: SparkSession, tmp_path: Path) -> None:
    run = ps.App(spark).sql(reference.app.read_text()).start(
        str(tmp_path / "checkpoint"), output=str(tmp_path / "out"), batch_rows=ROWS // 5
    )  # fmt: skip
    run.await_end()
    faults.assert_same_output(tmp_path / "out", reference.output, "on Spark")
    accounts = run.summary()["queries"]["pairs"]["accounting"]
    assert set(accounts) == {"o", "c"}
    for entry in accounts.values():
        assert entry["input"] == sum(entry[part] for part in ("exact", "triaged", "late", "filtered", "malformed"))


# -- sharing


def test_two_joins_and_a_plain_query_share_one_relation(tmp_path: Path) -> None:
    """What is stored of a stream, and the bytes that tasks write, are those of one of them."""
    write_streams(tmp_path, 6_000)
    shared = """
    CREATE QUERY one AS SELECT o.item, count(*) AS n
      FROM orders o [RANGE '2 seconds'], clicks c [RANGE '2 seconds'] WHERE o.item = c.item GROUP BY o.item;
    CREATE QUERY two AS SELECT c.item, count(*) AS n
      FROM orders o [RANGE '4 seconds' SLIDE '2 seconds'], clicks c [RANGE '2 seconds']
      WHERE o.item = c.item GROUP BY c.item;
    CREATE QUERY plain AS SELECT item, count(*) AS n FROM orders [RANGE '2 seconds'] GROUP BY item;
    """
    texts = [STREAMS.format(place=tmp_path) + text for text in (shared, shared.partition("CREATE QUERY two")[0])]
    app = ps.App(master="process").sql(texts[0])
    for stream in ("orders", "clicks"):
        (relation,) = stored(app.query_set(), stream).relations
        assert [part.component.text for part in relation.parts[1:]] == ["value:item", "null:item"]
    assert "all queries close from one relation" in str(app.explain())
    written = []
    for number, text in enumerate(texts):
        place = tmp_path / str(number)
        run = (
            ps.App(master="process")
            .sql(text)
            .start(str(place), output=str(place / "out"), parallelism=1, joins="early")
        )
        run.await_end()
        written.append(run.summary()["state"]["written"])
    assert written[0] <= 1.1 * written[1]  # the plain query has NULLs besides, which no join takes


# -- in step


def test_a_denser_stream_does_not_make_the_other_pile_up(tmp_path: Path) -> None:
    """Bytes kept stay below twice what the windows hold, and a batch."""
    write_streams(tmp_path, 44_000, denser=10)
    text = (
        STREAMS.format(place=tmp_path)
        + """
    CREATE QUERY q AS SELECT o.shop, count(*) AS n FROM orders o [RANGE '4 seconds' SLIDE '2 seconds'],
      clicks c [RANGE '4 seconds' SLIDE '2 seconds'] WHERE o.item = c.item GROUP BY o.shop;
    """
    )
    kept: list[int] = []
    times: list[dict[str, int | None]] = []

    def listener(report: Any, manifest: manifests.Manifest) -> None:
        if not manifest.ended:
            kept.append(manifest.kept_bytes)
            times.append({name: state.greatest for name, state in manifest.streams.items()})

    app = ps.App(master="process").sql(text)
    run = app.start(
        str(tmp_path / "checkpoint"), output=str(tmp_path / "out"), parallelism=1, batch_rows=2_000, listener=listener
    )
    run.await_end()
    written = run.summary()["state"]["written"]
    batches = len(kept) + 1
    windows = written * 8 / 60  # two windows' worth of four seconds each, of a minute
    assert max(kept) <= 2 * windows + 2 * written / batches
    apart = [abs((one["orders"] or 0) - (one["clicks"] or 0)) for one in times[2:-2]]
    assert max(apart) <= 2 * SECOND + 60 * SECOND * 4 // batches


# -- kills


def launches(app: Path) -> Callable[[Path], Launch]:
    options = ("--parallelism", "2")
    return lambda place: Launch(app, place / "checkpoint", place / "out", ROWS // BATCHES, options).without_spark()


def test_a_few_kills_change_nothing(reference: Reference, tmp_path: Path) -> None:
    lineage = Lineage(launches(reference.app)(tmp_path), tmp_path / "logs")
    kills = [
        Kill(Fault("manifest.write", 2)),
        Kill(Fault("sink.rename", 3)),
        Kill(Fault("segment.close", 3)),
        Kill(strike=Strike(DRIVER, 2)),
        Kill(strike=Strike(WORKER, 1)),
    ]
    choose = random.Random(1)
    try:
        for kill in kills:
            _, hit = lineage.disturb(kill, choose)
            assert hit, lineage.log
        ended, _ = lineage.disturb(Kill(), choose)
        assert ended.code == 0, ended.messages
        faults.assert_same_output(lineage.launch.output, reference.output, "\n".join(lineage.log))
    finally:
        lineage.clean_up()


@pytest.mark.slow
def test_a_campaign_of_kills_changes_nothing(reference: Reference, tmp_path: Path) -> None:
    done = run_campaign(launches(reference.app), tmp_path, reference.output, KILLS, SEED)
    assert done.landed >= KILLS


@pytest.mark.slow
def test_a_campaign_of_kills_on_spark_changes_nothing(reference: Reference, tmp_path: Path) -> None:
    def launch(place: Path) -> Launch:
        return Launch(reference.app, place / "checkpoint", place / "out", ROWS // BATCHES)

    done = run_campaign(launch, tmp_path, reference.output, KILLS, SEED)
    assert done.landed >= KILLS
