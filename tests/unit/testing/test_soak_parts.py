"""The parts of a soak: its app, its kills, what it takes for growth, and what it takes for wrong; no Spark."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.logical.resolve.app import resolve_app
from penstock.sources.base import fields
from penstock.sources.generate.source import open_generate
from penstock.testing.faults import DRIVER, JVM, WORKER, Output
from support.soak.checking import SECOND, Written, _check_since, _check_sum, _check_windows, _guarded
from support.soak.driving import blows
from support.soak.flatness import MOST_FILES, check_flat, growth
from support.soak.picture import draw
from support.soak.queries import KEYS, QUERIES, RATE, app_text, options
from support.soak.sampling import MIB, Sample

SEED = 7
START = 1_767_225_600 * SECOND  # of the generator


def test_the_app_has_a_dozen_queries_that_resolve() -> None:
    source = open_generate("bursty", options(SEED))
    app = resolve_app(app_text(SEED), "soak", lambda uri, given: fields(source.schema()))
    assert [query.name for query in app.queries] == [query.name for query in QUERIES]
    assert len(QUERIES) >= 12
    assert set(KEYS) <= {query.name for query in QUERIES}


@pytest.mark.parametrize("minutes", [10, 60])
def test_kills_leave_the_middle_alone(minutes: int) -> None:
    made = blows(minutes * 60, SEED)
    assert made == blows(minutes * 60, SEED)
    assert {blow.role for blow in made} == {DRIVER, JVM, WORKER}
    assert sorted(made, key=lambda blow: blow.at) == made
    assert not [blow for blow in made if minutes * 20 < blow.at < minutes * 40]
    assert len(made) >= minutes // 4


def samples(leak: int = 0, files: int = 60) -> list[Sample]:
    """Ten minutes, restarted after three and seven; `leak` bytes per batch in the driver."""
    made = []
    dice = random.Random(SEED)
    for second in range(0, 600, 3):
        phase, begin = (1, 0) if second < 180 else (2, 180) if second < 420 else (3, 420)
        age = second - begin
        grown = 150 * MIB + leak * age * 2 + dice.randrange(MIB)
        memory = {DRIVER: grown, JVM: 500 * MIB, "heap": 60 * MIB, WORKER: 600 * MIB}
        counts = {"segments": files // 2, "spark": files - files // 2}
        made.append(Sample(second, phase, age, second * 2, memory, counts, 10 * MIB, second, 3))
    return made


def test_what_is_flat_holds() -> None:
    assert [finding.name for finding in check_flat(samples()) if not finding.holds] == []


def test_a_leak_shows_within_a_run_though_restarts_hide_it() -> None:
    failed = [finding.name for finding in check_flat(samples(leak=300_000)) if not finding.holds]
    assert failed == ["memory of driver, within the longest run"]
    longest = [sample for sample in samples(leak=300_000) if sample.phase == 2]
    assert growth(longest, DRIVER) == pytest.approx(300_000, rel=0.05)


def test_too_many_files_show() -> None:
    failed = [finding.name for finding in check_flat(samples(files=MOST_FILES + 1)) if not finding.holds]
    assert failed == ["files of the checkpoint"]


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert draw(samples(), tmp_path / "soak.png")
    assert (tmp_path / "soak.png").stat().st_size > 10_000


@pytest.fixture(scope="module")
def right() -> Written:
    """What `protos` and `since` must show of the first four minutes, counted by hand."""
    source = open_generate("bursty", options(SEED))
    empty = Written(Output({}, (), ()), 0, 0, {}, source)
    ends = [START + 120 * SECOND, START + 240 * SECOND]
    protos, since = [], []
    total: dict[int, tuple[int, int]] = {}
    for end in ends:
        records = empty.records(end - 120 * SECOND, end)
        for row in records.group_by("proto").aggregate([([], "count_all"), ("bytes", "sum")]).to_pylist():
            n, size = total.get(row["proto"], (0, 0))
            total[row["proto"]] = (n + row["count_all"], size + row["bytes_sum"])
            protos.append((row["proto"], row["count_all"], row["bytes_sum"], end - 120 * SECOND, end))
        since += [(proto, n, size, START, end) for proto, (n, size) in total.items()]
    rows = {"protos": table(protos), "since": table(since)}
    shown = {name: {"rows": rows[name].num_rows, "windows": 2} for name in rows}
    return Written(Output(rows, (), ()), 241 * RATE, ends[-1] + SECOND, {"queries": shown}, source)


def table(rows: list[tuple[int, ...]]) -> pa.Table:
    proto, n, total, start, end = zip(*rows, strict=True)
    time = pa.timestamp("us", tz="UTC")
    return pa.table(
        {
            "proto": proto,
            "n": n,
            "total": total,
            "window_start": pa.array(start, time),
            "window_end": pa.array(end, time),
        }
    )


def with_rows(written: Written, name: str, rows: pa.Table) -> Written:
    return replace(written, output=replace(written.output, rows={**written.output.rows, name: rows}))


def test_right_results_pass(right: Written) -> None:
    for query in QUERIES[:2]:
        assert _guarded(query.name, _check_windows, right, query).holds
    assert _guarded("sum", _check_sum, right).holds
    assert _guarded("since", _check_since, right).holds


def test_wrong_results_do_not(right: Written) -> None:
    rows = right.output.rows["protos"]
    twice = with_rows(right, "protos", pa.concat_tables([rows, rows.slice(0, 1)]))
    assert not _guarded("twice", _check_windows, twice, QUERIES[0]).holds
    lost = with_rows(right, "protos", rows.slice(1))
    assert not _guarded("lost", _check_sum, lost).holds
    assert not _guarded("lost", _check_since, lost).holds
    behind = replace(right, watermark=right.watermark + 240 * SECOND)
    assert not _guarded("a window is missing", _check_windows, behind, QUERIES[0]).holds
