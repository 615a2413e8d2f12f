"""Windows far longer than a batch: right, and what is kept, read and held in memory does not grow with the stream.

An hour that slides by a second, over four hours: the first fills the window, then it must stay as it is. A landmark
window whose groups are ten times what a task may hold. Figures are printed: pytest -m slow -s shows them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pytest

from penstock.app.state_view import state_of
from penstock.testing.asserts import assert_account_closes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

HOUR = 3_600
FAN = 8  # panes that the state keeps together, and eights of those, and so on


def penstock(*arguments: str) -> str:
    command = [sys.executable, "-m", "penstock.app.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print figures past pytest's capture."""

    def show(text: str) -> None:
        with capsys.disabled():
            print(f"\n  {text}", end="", flush=True)

    return show


@dataclass(frozen=True)
class Sample:
    """State after a batch."""

    row: int
    watermark: int
    windows: int
    read: int
    kept: int
    segments: int
    manifest: int


def table(connection: duckdb.DuckDBPyConnection, text: str) -> list[tuple[Any, ...]]:
    return connection.sql(text).fetchall()


# -- an hour by the second

FLOWS, RATE, BATCHES = 504_000, 35, 80
GROUP_BYTES = 8  # of a group of one pane as stored: slot 1, src_as 2, count 1, sum 2, max 2


def test_an_hour_that_slides_by_a_second(spark: SparkSession, tmp_path: Path, say: Callable[[str], None]) -> None:
    import penstock as ps

    trace, out, ckpt = tmp_path / "flows.parquet", tmp_path / "out", tmp_path / "ckpt"
    penstock("generate", "flows", "-o", str(trace), "--rows", str(FLOWS), "--option", f"rate={RATE}", "--quiet")
    samples: list[Sample] = []

    def note(report: Any, manifest: Any) -> None:
        found = state_of(str(ckpt))
        assert found["batch"] == manifest.batch
        stream = found["streams"]["flows"]
        windows = found["results"]["hour"]["windows"]
        assert found["bytes_read_per_window"] == found["volume"]["read"] // windows
        samples.append(
            Sample(
                stream["row"], stream["watermark"], windows, found["volume"]["read"], found["bytes"],
                len(found["segments"]), found["manifest_bytes"],
            )
        )  # fmt: skip

    app = ps.App(spark).sql(
        f"CREATE STREAM flows FROM 'parquet:{trace}' WATERMARK ts DELAY '2 seconds';"
        "CREATE QUERY hour AS SELECT src_as, count(*) AS n, sum(bytes) AS b, max(bytes) AS m "
        "FROM flows [RANGE '1 hour' SLIDE '1 second'] GROUP BY src_as;"
    )
    run = app.start(str(ckpt), output=str(out), batch_rows=FLOWS // BATCHES, listener=note)
    run.await_end()
    summary = run.summary()
    assert_account_closes(summary)
    assert summary["accounting"]["exact"] == FLOWS
    assert len(samples) >= BATCHES
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            f"CREATE TABLE flows AS SELECT epoch_us(ts) AS t, epoch_us(ts) // 1000000 AS s, src_as::INT AS src_as, "
            f"bytes FROM '{trace}'"
        )
        connection.execute(
            f"CREATE VIEW found AS SELECT epoch_us(window_end) // 1000000 AS e, src_as, n, b, m FROM '{out}/hour/*.parquet'"
        )
        windows = check_hours(connection, summary["queries"]["hour"])
        check_reading(connection, samples, windows, say)
        check_keeping(connection, samples, say)
    say(
        f"segments live at most {max(s.segments for s in samples)}, manifest at most {max(s.manifest for s in samples):,} B"
    )
    assert max(s.segments for s in samples) <= 16
    assert max(s.manifest for s in samples[BATCHES // 2 : -1]) < 2 * max(s.manifest for s in samples[: BATCHES // 2])


def check_hours(connection: duckdb.DuckDBPyConnection, result: dict[str, Any]) -> int:
    """Every window once, every record in its 3,600 windows, and fifty windows group for group."""
    ((first, last, total, seconds),) = table(
        connection, "SELECT min(s), max(s), sum(bytes), count(DISTINCT s) FROM flows"
    )
    assert seconds > (last - first) // 2  # no hour is empty
    windows = last - first + HOUR
    found = "SELECT count(*), count(DISTINCT (e, src_as)), count(DISTINCT e), sum(n), sum(b) FROM found"
    ((rows, groups, ends, records, octets),) = table(connection, found)
    assert (result["windows"], ends) == (windows, windows)
    assert (result["rows"], groups) == (rows, rows)
    assert (records, octets) == (HOUR * FLOWS, HOUR * total)
    dice = np.random.default_rng(3)
    chosen = {first + 1, last + HOUR, *dice.integers(first + 1, last + HOUR, 48).tolist()}
    connection.execute(f"CREATE TABLE chosen AS SELECT unnest({sorted(chosen)}) AS e")
    mine = "SELECT found.* FROM found JOIN chosen USING (e)"
    theirs = (
        "SELECT e, src_as, count(*) AS n, sum(bytes)::BIGINT AS b, max(bytes) AS m FROM flows JOIN chosen "
        f"ON s >= e - {HOUR} AND s < e GROUP BY e, src_as"
    )
    assert table(connection, f"SELECT count(*) FROM ({theirs})") == table(connection, f"SELECT count(*) FROM ({mine})")
    assert table(connection, f"({mine}) EXCEPT ({theirs})") == []
    assert table(connection, f"({theirs}) EXCEPT ({mine})") == []
    return windows


def check_reading(
    connection: duckdb.DuckDBPyConnection, samples: list[Sample], windows: int, say: Callable[[str], None]
) -> None:
    """Bytes a window, by quarter of the run; the first quarter fills the window."""
    quarters = [samples[BATCHES * i // 4 - 1] for i in range(1, 5)]
    each = [(b.read - a.read) / (b.windows - a.windows) for a, b in pairwise(quarters)]
    ((panes,),) = table(connection, f"SELECT count(DISTINCT (s, src_as)) * {HOUR} / (max(s) - min(s) + 1) FROM flows")
    whole = panes * GROUP_BYTES
    say(f"{windows:,} windows; read a window in quarters 2, 3, 4: {', '.join(f'{n:,.0f}' for n in each)} B;")
    say(f"all panes of a window: {panes:,.0f} groups, {whole:,.0f} B, {whole / max(each):.0f} × that")
    assert each[2] <= 1.5 * each[0]
    assert max(each) <= whole / 10


def check_keeping(connection: duckdb.DuckDBPyConnection, samples: list[Sample], say: Callable[[str], None]) -> None:
    """Bytes kept against one copy of the groups of open panes: by second, and by 8, 64 and 512 seconds."""
    ratios = []
    for sample in samples[:-1]:  # at the end nothing is kept
        first = sample.watermark // 10**6 - HOUR + 1  # of the first window that is open
        come = f"(SELECT s, src_as FROM flows LIMIT {sample.row}) WHERE s >= {first}"
        levels = ", ".join(f"count(DISTINCT (s // {FAN**level}, src_as))" for level in range(4))
        (counts,) = table(connection, f"SELECT {levels} FROM {come}")
        ratios.append((sample.kept / (GROUP_BYTES * sum(counts)), sample.kept / (GROUP_BYTES * counts[0]), sample.kept))
    half = len(ratios) // 2
    say(
        f"kept at most {max(kept for _, _, kept in ratios):,} B, in the second half {max(k for _, _, k in ratios[half:]):,} B:"
    )
    say(
        f"at most {max(r for r, _, _ in ratios):.2f} × one copy of the open panes' groups at four levels "
        f"({max(r for _, r, _ in ratios):.2f} × by the second alone)"
    )
    assert max(ratio for ratio, _, _ in ratios) <= 3
    assert max(kept for _, _, kept in ratios[half:]) <= 1.5 * max(kept for _, _, kept in ratios[:half])
