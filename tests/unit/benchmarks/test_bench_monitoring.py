"""The dozen monitoring queries: asked alike of all engines, with answers that are not empty and that peers agree on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.comparisons import multiquery, peers
from benchmarks.comparisons.contenders import CONTENDERS, MONITORING
from benchmarks.data import files as data
from benchmarks.engines.monitoring import arrow
from benchmarks.engines.monitoring.questions import COLUMNS, NAMED, NAMES, QUESTIONS, asked
from benchmarks.measure.job import DISCARD, PARQUET, EngineJob

EXAMPLE = Path(__file__).parents[3] / "examples" / "packets.sql"


def test_the_dozen_is_that_of_the_example() -> None:
    text = EXAMPLE.read_text()
    assert list(NAMED) == [line.split()[2] for line in text.splitlines() if line.startswith("CREATE QUERY")]
    for question in QUESTIONS:
        query = text.partition(f"CREATE QUERY {question.name} AS")[2].partition(";")[0]
        seconds = {"10 seconds": 10, "1 minute": 60, "5 minutes": 300}[query.partition("RANGE '")[2].partition("'")[0]]
        assert question.seconds == seconds
        assert ("SLIDE" in query) == bool(question.slide)
        assert ("LIMIT 10" in query) == (question.top == 10)
        assert ("HAVING" in query) == bool(question.having)
        assert ("WHERE" in query.partition("FROM packets")[2]) or not question.where


def test_questions_as_text() -> None:
    assert NAMED["nets16"].select("s") == (
        "SELECT src/16 AS src_16, dst/16 AS dst_16, count(*) AS packets, sum(bytes) AS total "
        "FROM s [RANGE '300 seconds'] GROUP BY src/16, dst/16"
    )
    assert (
        NAMED["scanned"]
        .select("s")
        .endswith(
            "FROM s [RANGE '60 seconds' SLIDE '10 seconds'] WHERE proto = 6 AND flags % 64 = 2 "
            "GROUP BY dst, dport HAVING count(*) >= 3"
        )
    )
    assert NAMED["talkers"].select("s").endswith("GROUP BY src ORDER BY total DESC LIMIT 10")
    assert NAMED["scanned"].panes == 6
    job = EngineJob("f", 1, NAMES[:2], "w", 1, 0.0)
    assert [question.name for question in asked(job)] == ["protocols", "sizes"]
    assert asked(EngineJob("f", 1, (("src", "dst"),), "w", 1, 0.0)) == []


def test_reference_by_hand() -> None:
    """Six opened connections to one port within a minute, one of them 55 seconds later."""
    seconds = [0, 1, 2, 12, 13, 57]
    records = {name: [0] * 6 for name in COLUMNS} | {"ts": [second * 10**6 for second in seconds]}
    records |= {"src": [9, 8, 8, 8, 9, 7], "dst": [5] * 6, "dport": [80] * 6, "proto": [6] * 6, "flags": [2] * 6}
    records |= {"bytes": [100, 40, 60, 70, 1, 5]}
    numbers = {name: pa.array(values, pa.int64()).to_numpy() for name, values in records.items()}
    scanned = arrow.answer(NAMED["scanned"], numbers).sort_by("window_start")
    starts = [start // 10**6 for start in scanned["window_start"].to_pylist()]
    assert list(zip(starts, scanned["packets"].to_pylist(), strict=True)) == [
        (-50, 3), (-40, 5), (-30, 5), (-20, 5), (-10, 5), (0, 6), (10, 3),
    ]  # fmt: skip
    talkers = arrow.answer(NAMED["talkers"], numbers)
    assert talkers.select(["src", "packets", "total"]).to_pylist() == [
        {"src": 8, "packets": 3, "total": 170},
        {"src": 9, "packets": 2, "total": 101},
        {"src": 7, "packets": 1, "total": 5},
    ]


def test_no_answer_is_empty(tmp_path: Path) -> None:
    """Also the top ten of some window leave something out."""
    given = data.monitoring(tmp_path, 65_536, lambda text: None)
    table = pq.read_table(given.file, columns=list(COLUMNS))
    numbers = {name: table[name].cast(pa.int64()).to_numpy() for name in COLUMNS}
    found = {question.name: arrow.answer(question, numbers).num_rows for question in QUESTIONS}
    assert min(found.values()) > 0
    assert found["talkers"] == found["listeners"] == 10 * (2000 // 60 + 1)


@pytest.mark.parametrize("name", ["duckdb", "polars", "clickhouse"])
def test_engines_agree(tmp_path: Path, name: str) -> None:
    contender = next(c for c in CONTENDERS if c.name == name)
    if contender.package and peers.interpreter(contender.package) is None:
        pytest.skip(peers.NOT_INSTALLED)
    report = multiquery.run(work=tmp_path, rows=60_000, engines=[name], streams=[MONITORING])
    assert [(line["queries"], line["sink"]) for line in report["results"]] == [(12, PARQUET), (12, DISCARD)]
    written, dropped = report["results"]
    assert written["same_answer"], written["note"]
    assert dropped["same_answer"] or (name == "clickhouse" and dropped["same_answer"] is None), dropped["note"]
