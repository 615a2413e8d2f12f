"""`penstock query` as people call it: real files, pipes, formats; each call is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import duckdb
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from penstock.sources.base import whole
from penstock.sources.generate.source import open_generate


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyarrow as pa

    path = tmp_path_factory.mktemp("flows") / "flows.parquet"
    source = open_generate("clustered", {"rows": "20000", "rate": "1000", "seed": "3"})
    pq.write_table(pa.Table.from_batches(source.read(whole(source), source.schema().names, 20_000)), path)
    return path


def query(*arguments: str, given: bytes | None = None, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "query", *arguments], input=given, capture_output=True, check=False
    )
    assert done.returncode == code, done.stderr.decode()
    return done


def test_the_busiest_ports_of_each_window(flows: Path) -> None:
    text = f"SELECT dport, count(*) AS n FROM '{flows}' [RANGE '5 seconds'] GROUP BY dport ORDER BY n DESC LIMIT 3"
    done = query(text)
    rows = csv.read_csv(BytesIO(done.stdout)).to_pylist()
    expected = duckdb.sql(
        f"""SELECT dport, n FROM (
              SELECT dport, epoch_us(ts) // 5000000 AS w, count(*) AS n,
                     row_number() OVER (PARTITION BY w ORDER BY n DESC, dport) AS place
              FROM '{flows}' GROUP BY dport, w)
            WHERE place <= 3 ORDER BY w, place"""
    ).fetchall()
    assert [(row["dport"], row["n"]) for row in rows] == expected
    assert done.stderr == b""


def test_several_queries_into_files(flows: Path, tmp_path: Path) -> None:
    text = f"SELECT proto, count(*) AS n FROM '{flows}' GROUP BY proto; SELECT sum(bytes) AS total FROM '{flows}'"
    for form in ("csv", "json", "parquet"):
        query(text, "-o", str(tmp_path / form), "--format", form)
    ((total,),) = duckdb.sql(f"SELECT sum(bytes) FROM '{flows}'").fetchall()
    assert json.loads((tmp_path / "json" / "query2.json").read_text()) == {"total": int(total)}
    by_proto = duckdb.sql(f"SELECT proto, count(*) AS n FROM '{flows}' GROUP BY proto ORDER BY proto").fetchall()
    for path in (tmp_path / "csv" / "query1.csv", tmp_path / "parquet" / "query1.parquet"):
        assert duckdb.sql(f"SELECT * FROM '{path}'").fetchall() == by_proto


def test_standard_input_and_columns(flows: Path) -> None:
    for name in ("-", "parquet:-"):
        done = query(f"SELECT count(*) AS n FROM '{name}'", given=flows.read_bytes())
        assert done.stdout.split() == [b'"n"', b"20000"]
    done = query("SELECT b, sum(a) AS s FROM 'csv:-' GROUP BY b", "--format", "table", given=b"a,b\n1,x\n2,y\n5,x\n")
    assert done.stdout.decode().splitlines()[2:] == ["x  6", "y  2"]
    listed = json.loads(query("--columns", str(flows), "--json").stdout)
    assert listed["ts"] == "TIMESTAMP"
    assert listed["src"] == "INET"


def test_records_that_are_wrong_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 30 + "3,x\n4,5,6\n")
    declared = f"CREATE STREAM x (a INT, b INT) FROM 'csv:{tmp_path / 'x.csv'}'"
    done = query(f"{declared}; SELECT sum(b) AS s, count(*) AS n FROM x")
    assert done.stdout.split() == [b'"s","n"', b"60,30"]
    assert done.stderr.decode().count("malformed: ") == 2


def test_spark_gives_the_same(flows: Path) -> None:
    text = f"SELECT src/8 AS net, count(*) AS n, max(bytes) AS m FROM '{flows}' GROUP BY src/8"
    here, there = query(text), query(text, "--master", "local[2]")
    assert here.stdout == there.stdout
