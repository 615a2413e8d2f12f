"""The benchmark `sketches`: approximate aggregates beside the sketches of Apache DataSketches on the same groups.

    approx_count_distinct ── HLL
    approx_percentile ── KLL
    approx_frequent ── frequent items, which is akin to Space-Saving

Errors are against exact answers of DuckDB. Times are of a whole process, less one that does nothing but start and read
the file; memory is what the state of a group takes in a file, on average.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.comparisons.peers import interpreter
from benchmarks.measure import machine

Progress = Callable[[str], None]

ROWS, QUICK_ROWS, GROUPS = 2_000_000, 20_000, 200
TIMES, QUICK_TIMES = 3, 1
SUPPORT, SHARE = 0.01, 0.99
OURS = {
    "distinct": "approx_count_distinct(x) AS n",
    "percentile": f"approx_percentile(size, {SHARE}) AS n",
    "frequent": f"approx_frequent(x, {SUPPORT}) AS f",
    "nothing": "count(*) AS n",
}
# Run by the Python that has the sketches: reads the file, updates a sketch for each group, prints answers and bytes.
THEIRS = """
import json, sys
import datasketches as d
import pyarrow.parquet as pq
table = pq.read_table(sys.argv[2]).sort_by("g")
groups, x, size = table["g"].to_numpy(), table["x"].to_pylist(), table["size"].to_numpy().copy()
edges = [0, *(groups[1:] != groups[:-1]).nonzero()[0].__add__(1).tolist(), len(groups)]
answers, total = {}, 0
for begin, end in zip(edges[:-1], edges[1:]):
    g = int(groups[begin])
    if sys.argv[1] == "distinct":
        sketch = d.hll_sketch(12)
        for value in x[begin:end]: sketch.update(value)
        answers[g], total = round(sketch.get_estimate()), total + len(sketch.serialize_compact())
    elif sys.argv[1] == "percentile":
        sketch = d.kll_doubles_sketch(200)
        sketch.update(size[begin:end])
        answers[g], total = sketch.get_quantile(float(sys.argv[3])), total + len(sketch.serialize())
    elif sys.argv[1] == "frequent":
        sketch = d.frequent_strings_sketch(12)
        for value in x[begin:end]: sketch.update(str(value))
        least = float(sys.argv[3]) * (end - begin)
        found = sketch.get_frequent_items(d.frequent_items_error_type.NO_FALSE_NEGATIVES, max(0, int(least) - 1))
        answers[g] = [(int(item), low, high) for item, estimate, low, high in found]
        total += len(sketch.serialize())
    else:
        answers[g] = end - begin
print(json.dumps({"answers": answers, "bytes": total}))
"""


def run(
    *,
    work: Path,
    rows: int = ROWS,
    quick: bool = False,
    engines: list[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return the figures as JSON data; `engines` is not asked: there are two."""
    tell = progress or (lambda text: None)
    rows = min(rows, QUICK_ROWS) if quick else rows
    work.mkdir(parents=True, exist_ok=True)
    file, python = written(work, rows), interpreter("datasketches")
    times, results = QUICK_TIMES if quick else TIMES, list[dict[str, Any]]()
    for engine in ("penstock", "datasketches"):
        if engine == "datasketches" and python is None:
            results.append(
                {"engine": engine, "work": "all", "seconds": None, "note": "not installed: make bench-peers"}
            )
            continue
        seconds: dict[str, float] = {}
        for name in reversed(OURS):
            tell(f"{engine}: {name}")
            found = [
                ours(name, file, work) if engine == "penstock" else theirs(name, file, str(python))
                for _ in range(times)
            ]
            seconds[name] = median(one[0] for one in found)
            if name != "nothing":
                answers, state = found[-1][1:]
                results.append({
                    "engine": engine,
                    "work": name,
                    "seconds": seconds[name] - seconds["nothing"],
                    "bytes_per_group": state / GROUPS,
                    **errors(name, answers, file),
                    "note": "",
                })  # fmt: skip
    return {"name": "sketches", "machine": machine.describe(), "rows": rows, "times": times, "results": results}


def written(work: Path, rows: int) -> Path:
    """Groups of different sizes, skewed values, sizes over many magnitudes."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    file, rng = work / f"sketches-{rows}.parquet", np.random.default_rng(7)
    if not file.exists():
        groups = np.minimum(rng.geometric(0.02, rows), GROUPS) - 1
        values = np.minimum(rng.zipf(1.3, rows), 1 << 40)
        times = pa.array(np.arange(rows), pa.timestamp("us", "UTC"))
        columns = {"ts": times, "g": groups, "x": values, "size": rng.lognormal(5, 2, rows)}
        pq.write_table(pa.table(columns), file)
    return file


def ours(name: str, file: Path, work: Path) -> tuple[float, Any, float]:
    """Seconds, answers by group, and bytes of all states: of what a run keeps before its windows close."""
    import pyarrow.parquet as pq

    out = work / "sketches-out.parquet"
    query = f"SELECT g, {OURS[name]} FROM '{file}' GROUP BY g"
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "penstock", "query", "--quiet", "--format", "parquet", "-o", str(out), query],
        check=True, cwd=work,
    )  # fmt: skip
    seconds, rows = time.perf_counter() - begin, pq.read_table(out).to_pylist()
    if name == "frequent":
        answers: dict[int, Any] = {}
        for row in rows:
            low = row["count_f"]
            answers.setdefault(row["g"], []).append((row["f"], low, low + row["undercount_f"]))
    else:
        answers = {row["g"]: row["n"] for row in rows}
    return seconds, answers, 0.0 if name == "nothing" else kept_bytes(name, file, work)


def kept_bytes(name: str, file: Path, work: Path) -> float:
    """What tasks wrote of the finer relation."""
    app = work / "sketches.sql"
    app.write_text(
        f"CREATE STREAM s FROM 'parquet:{file}';\n"
        f"CREATE QUERY q INTO 'discard:' AS SELECT g, {OURS[name]} FROM s [RANGE '1 day'] GROUP BY g;\n"
    )
    command = [sys.executable, "-m", "penstock", "run", str(app), "--master", "process", "--parallelism", "1", "--json"]
    told = subprocess.run(command, check=True, cwd=work, capture_output=True, text=True)
    return float(json.loads(told.stdout)["state"]["written"])


def theirs(name: str, file: Path, python: str) -> tuple[float, Any, float]:
    begin = time.perf_counter()
    parameter = str(SHARE if name == "percentile" else SUPPORT)
    done = subprocess.run(
        [python, "-c", THEIRS, name, str(file), parameter], check=True, capture_output=True, text=True
    )
    told = json.loads(done.stdout)
    return time.perf_counter() - begin, {int(g): one for g, one in told["answers"].items()}, told["bytes"]


def errors(name: str, answers: dict[int, Any], file: Path) -> dict[str, float]:
    """Of distinct counts and percentiles the mean and greatest relative error; of frequent values, how many that should
    be listed are missing, and how many are listed that should not be."""
    import duckdb

    if name == "frequent":
        return _listed_errors(answers, file)
    exact = {"distinct": "count(DISTINCT x)", "percentile": f"quantile_disc(size, {SHARE})"}[name]
    truth = dict(duckdb.sql(f"SELECT g, {exact} FROM '{file}' GROUP BY g").fetchall())
    off = [abs(answers[g] - value) / value for g, value in truth.items()]
    return {"mean_error": sum(off) / len(off), "greatest_error": max(off)}


def _listed_errors(answers: dict[int, Any], file: Path) -> dict[str, float]:
    import duckdb

    text = (
        f"SELECT g, x, count(*) AS n FROM '{file}' GROUP BY g, x QUALIFY n >= {SUPPORT} * sum(n) OVER (PARTITION BY g)"
    )
    truth = {(g, x) for g, x, _ in duckdb.sql(text).fetchall()}
    listed = {(g, item) for g, items in answers.items() for item, _, _ in items}
    wide = [high - low for items in answers.values() for _, low, high in items]
    return {
        "missing": float(len(truth - listed)),
        "too_many": float(len(listed - truth)),
        "mean_width": sum(wide) / max(1, len(wide)),
    }
