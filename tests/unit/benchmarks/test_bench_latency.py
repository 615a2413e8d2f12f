"""The benchmark `latency`: what is counted of windows, other ways to deal with a burst, memory, and one short run."""

from __future__ import annotations

import io
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks.latency import beside, bursts, promises, queries, reading, soak
from benchmarks.latency.stalls import Stall, stalled, watching
from benchmarks.latency.trial import BURST, CALM, FIRST, Outcome, Seen, Trial
from benchmarks.measure import table
from penstock.app.demos import burst, capacity
from penstock.app.demos.capacity import Capacity
from penstock.errors import ConfigError
from penstock.logical.resolve.app import resolve_app

GROUPS = 1 << 16


def window(kind: str, delays: tuple[float, ...], read: int = 10, unread: int = 0, stall: float = 0.0) -> Seen:
    error = 0.1 if unread else 0.0
    return Seen(0.0, 10.0, kind, delays, read, unread, stall, error, 30 * error, error)


def outcome(*windows: Seen) -> Outcome:
    truth = np.zeros((len(windows), GROUPS))
    truth[:, :2] = 40, 60
    reported = truth / 4
    return Outcome(
        Trial("a burst", 5.0, 2.0), windows, 0.3, reported, truth, reported.sum(axis=1) * 7, truth.sum(axis=1) * 7
    )


def test_windows_are_counted_by_how_late_they_are() -> None:
    calm = window(CALM, (0.5, 0.6))
    rough = window(BURST, (1.9, 2.2), unread=30)
    late = window(BURST, (2.4, 2.4), unread=30, stall=0.6)
    line = promises.line([outcome(calm, rough), outcome(calm, late)])
    assert (line["runs"], line["same_answer"], line["batch_seconds"]) == (2, True, 0.3)
    assert FIRST not in line
    found = line[BURST]
    counts = ("windows", "within", "a_batch_later", "later", "while_stalled", "late_without_stall")
    assert [found[name] for name in counts] == [4, 1, 1, 2, 2, 1]
    assert (found["median"], found["p99"], found["greatest"]) == (2.2, 2.4, 2.4)
    assert (found["read"], found["unread"], line[CALM]["unread"]) == (20, 60, 0)
    assert found["total_error"] == found["promised_error"] == 0.1
    assert found["rmse"] == 3.0
    out = io.StringIO()
    report = {
        "name": "latency",
        "machine": machine(),
        "rows": 1,
        "results": [line],
        "capacity": 5,
        "burst_seconds": 8.0,
    }
    table.show(report, Console(file=out, width=100))
    for text in ("a burst; 2 runs", "burst", "calm", "25.0 %", "10.000 %", "2.40"):
        assert text in out.getvalue()


def machine() -> dict[str, Any]:
    return {"cpu": "c", "cores": 2, "memory": 1 << 30, "l2": 1 << 20, "python": "3"}


def test_dropped_records_can_be_made_up_for_by_a_factor() -> None:
    found = beside.weighted(outcome(window(BURST, (1.0,), read=25, unread=75)))
    assert (found[0].groups, found[0].total, found[0].delays) == (0.0, 0.0, (1.0,))
    found = beside.weighted(outcome(window(BURST, (1.0,), read=50, unread=50)))
    assert found[0].total == pytest.approx(0.5)
    assert found[0].groups == pytest.approx(np.sqrt((20**2 + 30**2) / 2))


def test_a_reservoir_behind_the_first_records(tmp_path: Path) -> None:
    bench = promises.Bench(tmp_path / "app.sql", Capacity(0.0, 300.0), 10.0, tmp_path)
    records = burst.read_burst(bench.trace(100.0))
    windows = burst.windows_of(records, queries.WINDOW)
    count = int(windows[-1]) + 1
    kinds = [window(BURST if (windows == at).sum() > 10_000 else CALM, (0.1,)) for at in range(count)]
    rough = [window(one.kind, one.delays, 5_096, int((windows == at).sum()) - 5_096) if one.kind == BURST else one
             for at, one in enumerate(kinds)]  # fmt: skip
    truth = np.stack([np.bincount(records["dport"].to_numpy()[windows == at], minlength=GROUPS) for at in range(count)])
    sizes = np.array([records["bytes"].to_numpy()[windows == at].sum() for at in range(count)], float)
    made = Outcome(Trial("triage", 100.0, 2.0), tuple(rough), 0.3, truth, truth.astype(float), sizes, sizes)
    found = beside.exact_first(bench, made)
    assert all(one.groups == one.total == 0 for one in found if one.kind == CALM)
    assert all(0 < one.total < 0.5 and one.groups > 0 and not one.delays for one in found if one.kind == BURST)
    line = beside._line("exact first", 100.0, found, None)
    assert line["seconds"] is None
    assert line["same_answer"]


def test_the_queries_are_a_dozen_with_a_promise() -> None:
    options = {"stream": "generate:flows", "speed": "1", "promise": "2"}
    app = resolve_app(queries.app_text(), "latency.sql", fields, options)
    assert len(app.queries) == len(queries.SELECTS) == 12
    assert {query.promise for query in app.queries} == {2_000_000}


def fields(uri: str, options: Any) -> Any:
    from penstock.app.api import App

    return App().fields_of(uri, options)


def test_stalls_are_those_of_a_span(tmp_path: Path) -> None:
    stalls = [Stall(10.0, 10.2), Stall(20.0, 21.0)]
    assert [stalled(stalls, *span) for span in ((0, 9), (0, 11), (10.1, 20.5), (22, 30))] == [
        0,
        pytest.approx(0.2),
        1,
        0,
    ]
    with watching(tmp_path / "log") as found:
        time.sleep(0.1)
    assert all(one.stop > one.start for one in found.found)


def test_memory_is_that_of_all_processes() -> None:
    assert soak.growth([(0.0, 1, 1)])["note"]
    flat = soak.growth([(float(at), 500 if at < 5 else 100 + at % 2, at) for at in range(20)])
    assert flat["flat"]
    assert flat["anonymous"][0] == 500
    assert not soak.growth([(float(at), at, 0) for at in range(20)])["flat"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone tells")
def test_memory_of_processes_below() -> None:
    import subprocess

    with subprocess.Popen(
        [sys.executable, "-S", "-c", "x = b'1' * (80 << 20); print(1, flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        child.stdout.readline()
        own, files = soak.memory_below(os.getpid())
        child.communicate(b"\n")
    assert own >= 80 << 20
    assert files >= 0


def test_a_soak_has_calm_at_both_ends() -> None:
    profile = soak.profile_of(100.0, 5.0)
    assert len(profile) == 13
    assert profile[0] == profile[-1] == burst.Phase(40.0, 40.0)
    assert burst.seconds_of(profile) == 340


def test_reading_is_measured_by_source(tmp_path: Path) -> None:
    lines = {line["engine"]: line for line in reading.measured(tmp_path, 1 << 14, lambda text: None)}
    assert tuple(lines) == reading.SOURCES
    for line in lines.values():
        assert min(line["full_ns"], line["ns_1_in_64"], line["ratio_1_in_1024"]) > 0
    out = io.StringIO()
    report = {"name": "latency", "machine": machine(), "rows": 1, "results": [*lines.values()]}
    table.show(report, Console(file=out, width=100))
    assert "generate" in out.getvalue()


def test_what_is_asked_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="burst cannot be"):
        bursts.run(work=tmp_path, peaks=[0.5])
    with pytest.raises(ConfigError, match=r"unknown engine 'queue'\n.*peaks, beside"):
        bursts.run(work=tmp_path, engines=["queue"])


@pytest.mark.slow
def test_a_short_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Spark, and with next to no time: all windows are told, whatever their delays."""
    monkeypatch.setattr(capacity, "MASTER", "process")
    monkeypatch.setattr(promises, "BEFORE", 3.0)
    monkeypatch.setattr(promises, "AFTER", 2.0)
    monkeypatch.setattr(queries, "WINDOW", 2)
    monkeypatch.setattr(bursts, "QUICK_WANTED", 5_000.0)
    said: list[str] = []
    report = bursts.run(
        work=tmp_path, quick=True, engines=["peaks"], peaks=[3.0], seconds=2.0, repeat=1, progress=said.append
    )
    assert [line["promise"] for line in report["results"]] == [2.0, 5.0]
    for line in report["results"]:
        kinds = [line[kind] for kind in (FIRST, CALM, BURST)]
        assert [kind["windows"] for kind in kinds] == [12, 12, 24]
        assert sum(kind["read"] + kind["unread"] for kind in kinds) > 0
        assert all(kind["within"] + kind["a_batch_later"] + kind["later"] == kind["windows"] for kind in kinds)
    assert any("records a second with a drag" in text for text in said)
