"""The examples run as written: `examples/*.sql` through the command line, `examples/quickstart.py`, the demo.

`flows.sql`, the quickstart and the demo in processes of their own, as users run them; the other files of queries on the
session of the tests. Results are compared with DuckDB on the same file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import duckdb
import pytest

from benchmarks.data.frames import write_trace
from support.calling import Caller

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ROWS = 60_000
TIMEOUT = 300

# Per query its key as text, what it counts, and the condition; windows are [RANGE '... seconds'].
ADDRESS = "concat_ws('.', {0} >> 24, ({0} >> 16) & 255, ({0} >> 8) & 255, {0} & 255)"
NET16 = "concat({0} >> 24, '.', ({0} >> 16) & 255, '.0.0/16')"
EXPECTED = {
    "rate": (1, [], "count(*), sum(packets), sum(bytes)", "true", "true"),
    "protocols": (10, ["proto"], "count(*), sum(bytes)", "true", "true"),
    "talkers": (
        60, [ADDRESS.format("src")], "count(*), sum(packets), sum(bytes)", "true", "count(*) >= 20",
    ),
    "services": (60, ["dport", "proto"], "count(*), sum(bytes)", "proto IN (6, 17) AND dport < 1024", "true"),
    "scanned": (
        30, [ADDRESS.format("dst"), "dport"], "count(*), avg(bytes)", "proto = 6 AND flags = 2", "count(*) >= 3",
    ),
    "nets16": (300, [NET16.format("src"), NET16.format("dst")], "count(*), sum(bytes)", "true", "true"),
    "sizes": (
        30, ["proto"], "avg(bytes), min(bytes), max(bytes), sum(bytes) / sum(packets)", "true", "true",
    ),
}  # fmt: skip


def execute(*command: str, cwd: Path) -> str:
    """Run a command to its end; its output, or a failure that shows what it said."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def penstock(*arguments: str, cwd: Path) -> str:
    return execute(sys.executable, "-m", "penstock.app.cli", *arguments, cwd=cwd)


def beside(caller: Caller, *arguments: str, cwd: Path) -> str:
    done = caller.run(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with trace.parquet and the results of flows.sql in out/."""
    folder = tmp_path_factory.mktemp("examples")
    options = ("--rows", str(ROWS), "--option", "rate=150", "--option", "clients=3000", "--quiet")
    penstock("generate", "bursty", "-o", "trace.parquet", *options, cwd=folder)
    app = str(EXAMPLES / "flows.sql")
    arguments = ("run", app, "--set", "trace=trace.parquet", "--output", "out", "--batch-rows", "20000", "--json")
    (folder / "summary.json").write_text(penstock(*arguments, cwd=folder))
    return folder


@pytest.fixture(scope="module")
def summary(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return loaded


def test_every_record_is_accounted_for(summary: dict[str, Any]) -> None:
    assert summary["accounting"]["input"] == ROWS
    assert summary["ended"]
    assert len(summary["queries"]) == 12
    for query in summary["queries"].values():
        account = query["accounting"]
        parts = (account[part] for part in ("exact", "triaged", "late", "filtered", "malformed"))
        assert account["input"] == ROWS == sum(parts)
        assert account["late"] == account["malformed"] == 0


@pytest.mark.parametrize("query", EXPECTED)
def test_results_are_those_of_duckdb(query: str, folder: Path, summary: dict[str, Any]) -> None:
    seconds, keys, aggregates, where, having = EXPECTED[query]
    groups = ", ".join([f"epoch_us(ts) // {seconds * 10**6}", *keys])
    numbers = ", ".join(str(number + 1) for number in range(len(keys) + 1))
    rows = f"SELECT {groups}, {aggregates} FROM '{folder}/trace.parquet' WHERE {where}"
    expected = duckdb.sql(f"{rows} GROUP BY {numbers} HAVING {having}").fetchall()
    # Columns of a result: those of the select list in order, then the window.
    found = duckdb.sql(
        f"SELECT epoch_us(window_start) // {seconds * 10**6}, * EXCLUDE (window_start, window_end) "
        f"FROM '{folder}/out/{query}/*.parquet'"
    ).fetchall()
    assert Counter(map(_rounded, found)) == Counter(map(_rounded, expected))
    assert summary["queries"][query]["rows"] == len(expected) > 0
    assert summary["queries"][query]["accounting"]["exact"] == _count(folder, where)


def _count(folder: Path, where: str) -> int:
    ((count,),) = duckdb.sql(f"SELECT count(*) FROM '{folder}/trace.parquet' WHERE {where}").fetchall()
    return int(count)


def _rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(value, 6) if isinstance(value, float) else value for value in row)


# Per query of windows.sql: its rows without the window, by DuckDB; {t} is the trace. Times are seconds of the stream.
WINDOWS = {
    "moving": (
        "SELECT count(*), sum(bytes) * 8 / 60, stddev(bytes) FROM {t}, range(-50, 500, 10) w(s) "
        "WHERE second >= s AND second < s + 60 GROUP BY s"
    ),
    "uneven": (
        "SELECT proto, count(*), max(bytes) FROM {t}, range(-20, 500, 10) w(s) "
        "WHERE second >= s AND second < s + 25 GROUP BY s, proto"
    ),
    "sampled": "SELECT count(*), sum(bytes) FROM {t} WHERE second % 10 < 1 GROUP BY floor(second / 10)",
    "so_far": (
        "SELECT proto, count(*), sum(bytes) FROM {t}, range(60, 600, 60) w(e) "
        "WHERE second < e AND e < 60 + (SELECT max(second) FROM {t}) GROUP BY e, proto"
    ),
    "by_count": (
        "SELECT count(*), avg(bytes), max(epoch(ts)) - min(epoch(ts)) FROM {t}, range(-5000, 60000, 5000) w(r) "
        "WHERE n >= r AND n < r + 10000 GROUP BY r"
    ),
    "top": (
        "SELECT src, sum(bytes), count(*) FILTER (WHERE flags = 2) FROM {t} GROUP BY floor(second / 60), src "
        "QUALIFY row_number() OVER (PARTITION BY floor(second / 60) ORDER BY sum(bytes) DESC, min(number)) <= 5"
    ),
}
TRACE = (
    "(SELECT *, src AS number, epoch(ts) - epoch(TIMESTAMPTZ '2026-01-01 00:00:00Z') AS second, "
    "row_number() OVER () - 1 AS n FROM '{0}/trace.parquet')"
)


@pytest.fixture(scope="module")
def windows(folder: Path, caller: Caller) -> dict[str, Any]:
    app = str(EXAMPLES / "windows.sql")
    arguments = ("run", app, "--set", "trace=trace.parquet", "--output", "windows", "--batch-rows", "20000", "--json")
    loaded: dict[str, Any] = json.loads(beside(caller, *arguments, cwd=folder))
    return loaded


def test_every_kind_of_window_has_results(windows: dict[str, Any]) -> None:
    assert windows["accounting"]["exact"] == ROWS
    for query in windows["queries"].values():
        assert query["rows"] > 0
        assert query["accounting"]["late"] == query["accounting"]["malformed"] == 0


@pytest.mark.parametrize("query", WINDOWS)
def test_windows_are_those_of_duckdb(query: str, folder: Path, windows: dict[str, Any]) -> None:
    expected = duckdb.sql(WINDOWS[query].format(t=TRACE.format(folder))).fetchall()
    found = duckdb.sql(f"SELECT * EXCLUDE (window_start, window_end) FROM '{folder}/windows/{query}/*.parquet'")
    rows = found.fetchall()
    if query == "top":
        rows = [(int(ip_address(src)), *rest) for src, *rest in rows]
    assert Counter(map(_rounded, rows)) == Counter(map(_rounded, expected))
    assert windows["queries"][query]["rows"] == len(expected) > 0


# Per query of packets.sql: windows of how many seconds, keys, aggregates, condition.
OPENED, CLOSED = "count(*) FILTER (WHERE tcp_flags % 64 = 2)", "count(*) FILTER (WHERE tcp_flags % 2 = 1)"
PACKETS = {
    "protocols": (10, ["version", "proto"], "count(*), sum(ip_length)", "true"),
    "sizes": (10, ["length // 64 * 64"], "count(*), sum(length)", "true"),
    "flags": (10, ["tcp_flags"], "count(*)", "proto = 6"),
    "nets24": (60, [f"concat({ADDRESS.format('(src >> 8 << 8)')}, '/24')"], "count(*), sum(ip_length)", "true"),
    "pairs": (60, [ADDRESS.format("src"), ADDRESS.format("dst")], "count(*), sum(ip_length)", "true"),
    "services": (300, ["proto", "least(sport, dport)"], "count(*), sum(ip_length)", "sport IS NOT NULL"),
    "flows": (
        300, [ADDRESS.format("src"), ADDRESS.format("dst"), "sport", "dport", "proto"],
        f"count(*), sum(ip_length), min(ts), max(ts), {OPENED}, {CLOSED}", "true",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory, caller: Caller) -> Path:
    """A folder with a capture, what its packets say (fields.parquet), and the results of packets.sql in out/."""
    folder = tmp_path_factory.mktemp("packets")
    write_trace(ROWS // 3, 50.0, folder / "trace.pcap", folder / "fields.parquet", lambda text: None)
    arguments = ("run", str(EXAMPLES / "packets.sql"), "--set", "capture=trace.pcap", "--output", "out", "--json")
    (folder / "summary.json").write_text(beside(caller, *arguments, cwd=folder))
    return folder


@pytest.mark.parametrize("query", PACKETS)
def test_packets_are_those_of_duckdb(query: str, captured: Path) -> None:
    seconds, keys, aggregates, where = PACKETS[query]
    groups = ", ".join([f"ts // {seconds * 10**6}", *keys])
    numbers = ", ".join(str(number + 1) for number in range(len(keys) + 1))
    rows = f"SELECT {groups}, {aggregates} FROM '{captured}/fields.parquet' WHERE {where}"
    expected = duckdb.sql(f"{rows} GROUP BY {numbers}").fetchall()
    found = duckdb.sql(
        f"SELECT epoch_us(window_start) // {seconds * 10**6}, * EXCLUDE (window_start, window_end) "
        f"FROM '{captured}/out/{query}/*.parquet'"
    )
    micros = [f'epoch_us("{name}")' if name in ("first", "last") else f'"{name}"' for name in found.columns]
    assert Counter(found.project(", ".join(micros)).fetchall()) == Counter(expected)
    assert len(expected) > 0


def test_every_query_of_packets_has_an_account(captured: Path) -> None:
    summary = json.loads((captured / "summary.json").read_text())
    assert len(summary["queries"]) == 12
    assert summary["accounting"]["exact"] == summary["accounting"]["input"] == ROWS // 3
    assert all(query["accounting"]["malformed"] == 0 for query in summary["queries"].values())


# Exact queries of anomalies.sql, by DuckDB: keys, aggregates, and what is asked of groups.
ANOMALIES = {
    "floods": (
        1, [], "count(*), count(*) FILTER (WHERE tcp_flags = 2), entropy(src), entropy(dst)", "true",
        "packets, opened, source_bits, destination_bits",
    ),
    "sizes": (
        10, ["proto"],
        "avg(ip_length), quantile_disc(ip_length, 0.5), min(ip_length) FILTER (WHERE place >= 0.99 * number)", "true",
        "proto, mean, half, p99",
    ),
    "networks": (
        10, [f"concat({ADDRESS.format('(src >> 8 << 8)')}, '/24')"], "count(*), min(src)", "true",
        "network, count_network",
    ),
}  # fmt: skip


def test_anomalies_are_those_of_duckdb(captured: Path, caller: Caller) -> None:
    beside(
        caller, "run", str(EXAMPLES / "anomalies.sql"), "--set", "capture=trace.pcap", "--output", "odd", cwd=captured
    )
    source = (
        f"(SELECT *, row_number() OVER (PARTITION BY ts // 10000000, proto ORDER BY ip_length) AS place, "
        f"count(*) OVER (PARTITION BY ts // 10000000, proto) AS number FROM '{captured}/fields.parquet')"
    )
    for query, (seconds, keys, aggregates, having, columns) in ANOMALIES.items():
        groups = ", ".join([f"ts // {seconds * 10**6}", *keys])
        numbers = ", ".join(str(number + 1) for number in range(len(keys) + 1))
        text = f"SELECT {groups}, {aggregates} FROM {source} GROUP BY {numbers} HAVING {having}"
        if query == "networks":  # at least 2 % of a window, and the ten first of those
            text = (
                f"SELECT w, k, n FROM ({text}) AS t(w, k, n, least) QUALIFY n >= 0.02 * sum(n) OVER (PARTITION BY w) "
                f"AND row_number() OVER (PARTITION BY w ORDER BY n DESC, least) <= 10"
            )
        found = duckdb.sql(
            f"SELECT epoch_us(window_start) // {seconds * 10**6}, {columns} FROM '{captured}/odd/{query}/*.parquet'"
        ).fetchall()
        assert Counter(map(_rounded, found)) == Counter(map(_rounded, duckdb.sql(text).fetchall())), query


def test_quickstart_runs(tmp_path: Path) -> None:
    output = execute(sys.executable, str(EXAMPLES / "quickstart.py"), cwd=tmp_path)
    assert "300,000 records in, 300,000 of them exact, 0 late" in output
    assert "window_start" in output


def test_demo_runs_over_an_earlier_one(tmp_path: Path) -> None:
    """What an earlier demo left is replaced, but for the trace."""
    earlier = tmp_path / "demo-out" / "results" / "talkers"
    earlier.mkdir(parents=True)
    (earlier / "_penstock.json").write_text(json.dumps({"id": "another", "checkpoint": "gone"}))
    (earlier / "talkers-00000000-0000.parquet").write_text("no longer wanted")
    (tmp_path / "demo-out" / "checkpoint").mkdir()
    (tmp_path / "demo-out" / "checkpoint" / "app.json").write_text("{}")
    code = (
        "from pathlib import Path; from rich.console import Console; from penstock.app import demo\n"
        f"demo.run(Path('demo-out'), Console(), rows={ROWS})"
    )
    output = execute(sys.executable, "-c", code, cwd=tmp_path)
    for part in ("the plan", "top talkers", "closing account", "where the time went"):
        assert part in output
    assert (tmp_path / "demo-out" / "demo.png").stat().st_size > 10_000
