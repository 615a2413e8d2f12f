"""Tables that are read again while a run goes on, is killed and goes on again: a record sees the version that the
logged decision about its batch names.

Tables change after every batch, and once more before every run; some of what is written cannot be taken. The oracle is
plain Python: it takes batches and versions from the log of decisions, the content of versions from the checkpoint's
files, and computes all windows anew. PENSTOCK_SEED moves the slow ones.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.errors import QueryError

SEED = int(os.environ.get("PENSTOCK_SEED", "20261118"))
ROWS, STEP, BATCH = 3_000, 100, 250  # records; milliseconds between them; records of a batch
START = 1_767_225_600_000
RANGE, SLIDE = 60_000, 20_000
PROGRAM = """
import logging, os, random, shutil, sys
from pathlib import Path
import penstock as ps
from penstock.state import garbage

place, seed, attempt, master = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
logging.basicConfig(filename=place / "log", level=logging.WARNING)
WINDOW = "[RANGE '60 seconds' SLIDE '20 seconds']"

def put(name, lines):
    (place / f"{name}.tmp").write_text("\\n".join(lines) + "\\n")
    os.replace(place / f"{name}.tmp", place / f"{name}.csv")

def change(step):
    dice = random.Random(f"{seed} {attempt} {step}")
    names = [f"{k},{dice.choice('abc')}{dice.randint(0, 2)}" for k in range(8) if dice.random() < 0.7] or ["1,z"]
    nets = [f"10.0.0.0,10.255.255.255,all{dice.randint(0, 1)}"]
    nets += [f"10.{n}.0.0,10.{n}.255.255,net{dice.randint(0, 3)}" for n in range(4) if dice.random() < 0.6]
    if step >= 0 and dice.random() < 0.3:
        names = dice.choice([["1,twice", "1,again"], ["one,text"], []])
    put("names", ["k,name", *names])
    put("nets", ["low,high,owner", *nets])
    if step >= 0 and dice.random() < 0.1:
        (place / "nets.csv").unlink()

def kept(checkpoint, *given):
    for folder in ("decisions", "spark/offsets", "tables"):
        for file in (checkpoint / folder).glob("[0-9v]*"):
            (place / "logged" / folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place / "logged" / folder / file.name)
    return collect(checkpoint, *given)

collect, garbage.collect = garbage.collect, kept
change(-1)
app = ps.App(master=master).sql(f'''
CREATE STREAM s FROM 'parquet:{place}/s.parquet' WATERMARK ts DELAY '0 seconds';
CREATE STREAM u FROM 'parquet:{place}/u.parquet' WATERMARK ts DELAY '0 seconds';
CREATE TABLE names (k BIGINT, name STRING) FROM 'csv:{place}/names.csv' WITH (refresh = '1 ms');
CREATE TABLE nets (low INET, high INET, owner STRING) FROM 'csv:{place}/nets.csv'
  WITH (match = 'longest', refresh = '1 ms');
CREATE QUERY inner_names AS SELECT name, count(*) AS n, sum(x) AS x FROM s {WINDOW}, names WHERE s.k = names.k
  GROUP BY name;
CREATE QUERY left_names AS SELECT name, count(*) AS n, sum(x) AS x FROM s {WINDOW} LEFT JOIN names ON s.k = names.k
  GROUP BY name;
CREATE QUERY owners AS SELECT owner, name, count(*) AS n, max(x) AS x
  FROM s {WINDOW} LEFT JOIN names ON s.k = names.k, nets WHERE addr BETWEEN low AND high GROUP BY owner, name;
CREATE QUERY joined AS SELECT name, count(*) AS n, sum(s.x) AS x FROM s {WINDOW}, u {WINDOW}, names
  WHERE s.k = u.k AND s.k = names.k GROUP BY name;
CREATE QUERY unknown AS SELECT k AS name, count(*) AS n, sum(x) AS x FROM s {WINDOW}
  WHERE NOT EXISTS (SELECT 1 FROM names t WHERE t.k = s.k) GROUP BY k;
''')
run = app.start(str(place / "ckpt"), output=str(place / "out"), parallelism=2, batch_rows=250,
                listener=lambda report, manifest: change(report.batch))
run.await_end()
kept(place / "ckpt", run.summary()["batches"][-1]["n"])
"""


def make_streams(place: Path, seed: int) -> None:
    dice = np.random.default_rng(seed)
    for name, rows, step in (("s", ROWS, STEP), ("u", ROWS // 10, 10 * STEP)):
        columns = {
            "ts": pa.array((START + np.arange(rows) * step) * 1000, pa.timestamp("us", "UTC")),
            "k": pa.array(dice.integers(0, 8, rows), pa.int64(), mask=dice.random(rows) < 0.05),
        }
        if name == "s":
            addresses = [
                f"10.{n}.0.{m}" for n, m in zip(dice.integers(0, 5, rows), dice.integers(0, 9, rows), strict=True)
            ]
            inet = pa.field("addr", pa.string(), metadata={b"penstock.type": b"INET"})
            columns |= {"addr": pa.array(addresses), "x": pa.array(dice.integers(0, 100, rows), pa.int64())}
            fields = [pa.field(n, c.type) if n != "addr" else inet for n, c in columns.items()]
            table = pa.table(list(columns.values()), pa.schema(fields))
        else:
            table = pa.table(columns)
        pq.write_table(table, place / f"{name}.parquet", row_group_size=max(10, BATCH * rows // ROWS))


def launch(place: Path, seed: int, attempt: int, master: str, fault: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"PENSTOCK_FAULT": fault} if fault else {})}
    command = [sys.executable, "-c", PROGRAM, str(place), str(seed), str(attempt), master]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


# -- the oracle


@dataclass(frozen=True)
class Batch:
    """Positions at which a batch ends, by stream, and digests of tables by name."""

    ends: dict[str, int]
    tables: dict[str, str]


def decisions(place: Path) -> list[Batch]:
    """As the engine's log, or Spark's, has them."""
    logged = [json.loads(file.read_text()) for file in sorted((place / "logged" / "decisions").glob("*.json"))]
    found = [one["body"] for one in logged]
    if not found:
        files = sorted((place / "logged" / "spark" / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
        found = [json.loads(file.read_text().splitlines()[-1]) for file in files]
    assert [one["n"] for one in found] == list(range(1, len(found) + 1))
    return [
        Batch(
            {name: stream["row"] for name, stream in one["streams"].items()},
            {name: table["digest"] for name, table in one["tables"].items()},
        )
        for one in found
    ]


def content(place: Path, digest: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        pa.ipc.open_file(place / "logged" / "tables" / f"{digest}.arrow").read_all().to_pylist()
    )
    return rows


def seen(place: Path, batches: list[Batch]) -> list[dict[str, Any]]:
    """Records of s with what they see: their name and owner."""
    records, at = pq.read_table(place / "s.parquet").to_pylist(), 0
    for batch in batches:
        names = {row["k"]: row["name"] for row in content(place, batch.tables["names"])}
        nets = content(place, batch.tables["nets"])
        for record in records[at : batch.ends["s"]]:
            record["name"] = names.get(record["k"])
            held = [net for net in nets if _within(record["addr"], net)]
            held.sort(key=lambda net: int(ip_address(net["high"])) - int(ip_address(net["low"])))
            record["owner"] = held[0]["owner"] if held else None
        at = batch.ends["s"]
    assert at == len(records)
    return records


def _within(address: str, net: dict[str, Any]) -> bool:
    return bool(ip_address(net["low"]) <= ip_address(address) <= ip_address(net["high"]))


def windows(records: Iterable[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """Records by the start of each window that holds them."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        at = round(record["ts"].timestamp() * 1000)
        for start in range(at // SLIDE * SLIDE - RANGE + SLIDE, at + 1, SLIDE):
            found[start].append(record)
    return found


def grouped(
    held: dict[int, list[dict[str, Any]]], keys: tuple[str, ...], fold: Callable[[list[int]], int]
) -> set[tuple[Any, ...]]:
    rows = set()
    for start, records in held.items():
        groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for record in records:
            groups[tuple(record[key] for key in keys)].append(record["x"])
        rows |= {(start, *key, len(values), fold(values)) for key, values in groups.items()}
    return rows


def expected(place: Path, batches: list[Batch]) -> dict[str, set[tuple[Any, ...]]]:
    records = seen(place, batches)
    named = [record for record in records if record["name"] is not None]
    others = windows(pq.read_table(place / "u.parquet").to_pylist())
    pairs = {
        start: [record for record in held for other in others.get(start, ()) if record["k"] == other["k"]]
        for start, held in windows(named).items()
    }
    return {
        "inner_names": grouped(windows(named), ("name",), sum),
        "left_names": grouped(windows(records), ("name",), sum),
        "owners": grouped(windows(r for r in records if r["owner"] is not None), ("owner", "name"), max),
        "joined": grouped(pairs, ("name",), sum),
        "unknown": grouped(windows(r for r in records if r["name"] is None), ("k",), sum),
    }


def written(place: Path, query: str, keys: int) -> list[tuple[Any, ...]]:
    names = ["window_start", *(("name",) if keys == 1 else ("owner", "name")), "n", "x"]
    tables = [pq.read_table(file, columns=names) for file in sorted((place / "out" / query).glob("*.parquet"))]
    rows = pa.concat_tables(tables).to_pylist()
    return [(round(row["window_start"].timestamp() * 1000), *(row[name] for name in names[1:])) for row in rows]


def check(place: Path) -> list[Batch]:
    batches = decisions(place)
    for query, rows in expected(place, batches).items():
        found = written(place, query, 2 if query == "owners" else 1)
        assert len(found) == len(set(found)), query
        assert set(found) == rows, query
    return batches


# -- queries that are added


def test_an_added_query_must_take_what_is_in_force(tmp_path: Path) -> None:
    def put(name: str, *lines: str) -> None:
        (tmp_path / "aside").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (tmp_path / "aside").replace(tmp_path / name)

    def records(minute: int) -> None:
        put(f"in/{minute:02d}.csv", "ts,k", *(f"2026-01-01T00:{minute:02d}:{n:02d}Z,{n % 3}" for n in range(60)))
        until(lambda: run.progress()["rows"] == 60 * (minute + 1))

    def until(true: Callable[[], bool]) -> None:
        while not true():
            assert run.state == "running"
            time.sleep(0.01)

    (tmp_path / "in").mkdir()
    put("t.csv", "k,name,other", "0,a,0", "1,b,1")
    app = ps.App(master="process")
    app.stream("s", f"csv:{tmp_path}/in", fields={"ts": "TIMESTAMP", "k": "BIGINT"}, time="ts", delay="0 seconds")
    fields = {"k": "BIGINT", "name": "STRING", "other": "BIGINT"}
    app.table("t", f"csv:{tmp_path}/t.csv", fields=fields, refresh="1 us")
    app.query("q", "SELECT name, count(*) AS n FROM s [RANGE '1 minute'], t WHERE s.k = t.k GROUP BY name")
    run = app.start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"), until="stopped", parallelism=1)
    other = "SELECT t.k AS k, count(*) AS n FROM s [RANGE '1 minute'], t WHERE s.k = t.other GROUP BY t.k"
    records(0)
    put("t.csv", "k,name,other", "0,c,1", "1,d,1")
    records(1)
    with pytest.raises(QueryError, match="table 't': some record would find several rows of it"):
        run.add_query("p", other)
    put("t.csv", "k,name,other", "0,e,2", "1,f,1")
    records(2)
    run.add_query("p", other)
    put("t.csv", "k,name,other", "0,g,0", "1,h,0")  # q could take it, p cannot
    records(3)
    told = run.summary()["tables"]["t"]
    records(4)
    run.stop()
    assert (told["refused"], told["problem"]) == (1, "some record would find several rows of it")
    found = {(row["window_start"].minute, row["name"]): row["n"] for row in run.arrow("q").to_pylist()}
    assert found == {(minute, name): 20 for minute, names in enumerate(("ab", "cd", "ef", "ef")) for name in names}
    assert {(row["window_start"].minute, row["k"], row["n"]) for row in run.arrow("p").to_pylist()} == {
        (3, 0, 20), (3, 1, 20)
    }  # fmt: skip


# -- runs


def test_records_see_the_version_of_their_batch(tmp_path: Path) -> None:
    make_streams(tmp_path, 3)
    done = launch(tmp_path, 3, 0, "process")
    assert done.returncode == 0, done.stderr
    batches = check(tmp_path)
    assert len(batches) >= 12
    assert len({batch.tables["names"] for batch in batches}) > 5
    assert "table 'names' was not taken as it is now: some record would find several rows of it" in (
        tmp_path / "log"
    ).read_text(encoding="utf-8")
    kept = list((tmp_path / "ckpt" / "tables").glob("version-*"))
    assert len(kept) <= 8  # of two tables: first, two manifests, decided; the rest is garbage
    assert len(list((tmp_path / "logged" / "tables").glob("version-*"))) > len(kept)


def test_kills_change_no_version(tmp_path: Path) -> None:
    killed(tmp_path, 7, "process", ("table.kept:5", "batch.collected:3", "manifest.write:2"))


POINTS = ("table.kept", "batch.collected", "manifest.write", "manifest.written", "garbage.delete", "sink.rename")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_more_kills_change_no_version(number: int, tmp_path: Path) -> None:
    seed = SEED + number
    dice = np.random.default_rng(seed)
    killed(tmp_path, seed, "process", [f"{dice.choice(POINTS)}:{dice.integers(1, 6)}" for _ in range(8)])


@pytest.mark.slow
def test_kills_with_spark_change_no_version(tmp_path: Path) -> None:
    killed(tmp_path, SEED, "local[2]", ("batch.collected:3", "manifest.write:2", "batch.collected:2"))


def killed(place: Path, seed: int, master: str, faults: Iterable[str]) -> None:
    """Each run begins with tables that the one before has not seen; what is logged stays."""
    make_streams(place, seed)
    again = 0
    attempt = 0
    for attempt, fault in enumerate(faults):
        before = decided(place)
        ended = launch(place, seed, attempt, master, fault)
        if ended.returncode == 0:  # the stream was shorter than the fault was late
            break
        assert ended.returncode == -signal.SIGKILL, (seed, fault, ended.stderr)
        again += before != ""
    else:
        last = launch(place, seed, attempt + 1, master)
        assert last.returncode == 0, (seed, last.stderr)
    batches = check(place)
    assert len({batch.tables["names"] for batch in batches}) > 3, seed
    assert again or master != "process", seed


def decided(place: Path) -> str:
    """The newest decision about a batch that is not done, which the next run must carry out as it says."""
    files = sorted((place / "ckpt" / "decisions").glob("*.json"))
    return "" if not files or files[-1].with_suffix(".done").exists() else files[-1].read_text()
