"""The demo of a burst without its run: traces, what is true of them, and what is said and drawn of windows."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from penstock.app.demos import burst, capacity, overload
from penstock.app.demos.burst import SECOND, START, burst_profile
from penstock.app.demos.capacity import Capacity
from penstock.app.demos.windows import Told, group_windows, reading, told

PROFILE = burst_profile(100, 1_000, before=14, during=16, after=10)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    path = tmp_path_factory.mktemp("burst") / "burst.arrow"
    burst.write_burst(path, PROFILE, 7)
    assert [file.name for file in path.parent.iterdir()] == ["burst.arrow"]
    return burst.read_burst(path)


def test_a_trace_keeps_to_its_profile(trace: pa.Table) -> None:
    times = trace["ts"].cast(pa.int64()).to_numpy() - START
    assert trace.num_rows == burst.records_of(PROFILE) == 1_400 + 16_000 + 1_000
    assert burst.seconds_of(PROFILE) == 40
    assert (np.diff(times) >= 0).all()
    assert 0 <= times[0] <= times[1_399] < 14 * SECOND <= times[1_400]
    assert times[17_399] < 30 * SECOND <= times[17_400]
    assert times[-1] < 40 * SECOND
    assert burst.arrivals(trace, 10.0).sum() == trace.num_rows


def test_what_is_true_of_windows_and_groups(trace: pa.Table) -> None:
    windows = burst.windows_of(trace, 10)
    sizes, ports = trace["bytes"].to_numpy(), trace["dport"].to_numpy()
    found = burst.sums(trace, 10)
    assert found["window"].to_pylist() == [0, 1, 2, 3]
    assert found["bytes"].to_pylist() == [int(sizes[windows == at].sum()) for at in range(4)]
    grouped = burst.sums(trace, 10, ("dport",)).to_pylist()
    assert sum(row["records"] for row in grouped) == trace.num_rows
    for row in grouped[:: len(grouped) // 50]:
        own = (windows == row["window"]) & (ports == row["dport"])
        assert (row["records"], row["bytes"]) == (own.sum(), sizes[own].sum())


def test_what_waits_if_all_is_read() -> None:
    arrived = np.array([50, 300, 50, 50, 50, 0, 0, 50])
    assert burst.waiting(arrived, 1.0, 100.0).tolist() == [0, 2, 1.5, 1, 0.5, 0, 0, 0]
    assert burst.waiting(arrived, 2.0, 100.0).tolist() == [0, 1, 0, 0, 0, 0, 0, 0]


def test_capacity_is_that_of_usual_batches() -> None:
    summary = {
        "batches": [{"rows": rows} for rows in (1_000, 1_000, 1_000, 10)],
        "seconds": {"per_batch": [9.0, 0.1, 0.1, 5.0]},
    }
    assert capacity.per_record(summary) == 100_000
    assert capacity.dragged(100_000, 100_000, 20_000) == Capacity(0.0, 20_000.0)
    assert Capacity(34_000.4, 1.0).environment == {"PENSTOCK_DRAG": "34000"}


def row(window: int, bytes_: float, exact: float, error: float, port: int = 25) -> dict[str, object]:
    start = np.datetime64(START + window * 10 * SECOND, "us").item()
    parts = {"bytes": bytes_, "exact_bytes": exact, "estimated_bytes": bytes_ - exact, "error_bytes": error}
    return {"window_start": start, "dport": port, **parts}


def account(window: int, exact: int, triaged: int, delay: float, overdue: bool = False) -> dict[str, object]:
    start = START + window * 10 * SECOND
    times = {"start": start, "end": start + 10 * SECOND, "delay": round(delay * SECOND), "overdue": overdue}
    return {**times, "exact": exact, "triaged": triaged}


def test_windows_stand_beside_the_truth() -> None:
    results = pa.Table.from_pylist([row(1, 90, 30, 6), row(0, 50, 50, 0)])
    truth = pa.table({"bytes": [50, 100]})
    calm, rough = told([account(0, 5, 0, 0.4), account(1, 3, 6, 2.5, overdue=True)], results, truth)
    assert (calm.start, calm.end, calm.late, calm.off, calm.promised) == (0, 10, 0.4, 0, 0)
    assert (rough.read, rough.estimated, rough.overdue, rough.off) == (3, 6, True, -0.1)
    assert rough.promised == pytest.approx(6 / 90)


def test_a_group_over_time_has_zeros_where_it_has_no_row() -> None:
    results = pa.Table.from_pylist([row(0, 9, 9, 0), row(2, 8, 2, 3), row(1, 7, 7, 0, port=80)])
    truth = pa.table({"window": [0, 1, 2, 2], "dport": [25, 80, 25, 80], "bytes": [9, 7, 10, 1]})
    found = group_windows(results, truth, "dport", 25, 10)
    assert found["bytes"].tolist() == [9, 0, 8]
    assert found["estimated_bytes"].tolist() == [0, 0, 6]
    assert found["truth"].tolist() == [9, 0, 10]


def test_what_batches_read() -> None:
    times = START + np.arange(100) * SECOND
    offsets = [
        {"row": 0},
        {"row": 20, "arrived": 30},
        {"row": 84, "arrived": 90, "ranges": [[52, 4], [84, 2]]},
        {"row": 100, "arrived": 200, "ranges": [[90, 0], [100, 63]]},
    ]
    at, reads = reading([{"offsets": {"streams": {"flows": one}}} for one in offsets], "flows", times)
    assert at.tolist() == [29, 89, 99]
    assert reads.tolist() == [20, 2 + 8, 6]


@pytest.fixture
def seen(trace: pa.Table, tmp_path: Path) -> overload.Seen:
    """A run that read one record in four of the burst."""
    truth, ports = burst.sums(trace, 10), burst.sums(trace, 10, ("dport",))
    totals, services, windows = [], [], []
    for one in truth.to_pylist():
        rough = one["window"] in (1, 2)
        x = one["bytes"] * (1.01 if rough else 1)
        totals.append(row(one["window"], x, x / 4 if rough else x, 0.02 * x if rough else 0))
        read = one["records"] // 4 if rough else one["records"]
        windows.append(account(one["window"], read, one["records"] - read, 1.5 if rough else 0.5))
    for one in ports.to_pylist():
        services.append(row(one["window"], one["bytes"], one["bytes"], 0, one["dport"]))
    for name, rows in (("totals", totals), ("services", services)):
        (tmp_path / "results" / name).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "results" / name / "part.parquet")
    batches = [{"offsets": {"streams": {"flows": {"row": at, "arrived": at}}}} for at in range(0, 18_000, 3_000)]
    found = told(windows, pa.Table.from_pylist(totals), truth)
    return overload.Seen(trace, Capacity(0.0, 200.0), 1.0, {"batches": batches}, found, tmp_path)


def test_the_run_in_words(seen: overload.Seen) -> None:
    out = io.StringIO()
    overload.show(seen, Console(file=out, width=200))
    said = out.getvalue()
    for text in (
        "times the 200 that",
        "4 of 4 windows kept",
        "one record in 4",
        "at most 1.00 %",
        "2 of 2",
        "2 are exact",
    ):
        assert text in said
    assert seen.all_read == pytest.approx(16_000 / 200 - 16, rel=0.02)
    exact = [replace(one, estimated=0, overdue=True) for one in seen.windows]
    assert any("0 of 4 windows kept" in line for line in overload.words(replace(seen, windows=exact)))
    assert not any("estimated" in line for line in overload.words(replace(seen, windows=exact)))


def test_the_run_in_a_picture(seen: overload.Seen, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = io.StringIO()
    overload.draw(seen, tmp_path / "picture.png", Console(file=out, width=200))
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    assert "penstock state --checkpoint" in out.getvalue()


def test_signs_of_errors() -> None:
    assert [overload.percent(part) for part in (0.0123, -0.0123, -1e-6)] == ["+1.23", "-1.23", "0.00"]
    assert Told(0, 10, 1, 1, 0.0, False, 110.0, 11.0, 100.0).off == pytest.approx(0.1)
