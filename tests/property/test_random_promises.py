"""Random apps whose queries all promise a delay, on streams that are replayed by the clock, with records left unread at
random: rows with their estimates and errors, accounts of queries, streams and windows must be what the oracle makes of
the logged ranges.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from in_process import OWNER, Engine, bearable, read_output
from promised_runs import (
    Chance,
    Clock,
    assert_as_expected,
    assert_rows,
    assert_windows,
    by_chance,
    logged,
    run_to_end,
)

import penstock as ps
from penstock.runtime.batch.live import timings
from penstock.sources.live import replay, times
from penstock.state import identity
from penstock.testing.apps.generators import STREAM, Settings
from penstock.testing.apps.random_promised_joins import STREAM as JOINED
from penstock.testing.apps.random_promised_joins import random_promised_joins
from penstock.testing.apps.random_promises import random_promised_case
from penstock.testing.asserts import assert_account_closes, assert_same_account
from penstock.testing.oracle.joins.spec import RunLog
from penstock.testing.oracle.triage import expect_triaged, expect_triaged_joins, key_of, read_records
from support.amounts import quick_and

SEED = int(os.environ.get("PENSTOCK_SEED", "20261118"))
SECOND = 1_000_000
QUICK, SLOW, CHUNK = 6, 400, 20


def check(seed: int, folder: Path, patch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    case = random_promised_case(seed)
    format = dice.choice(case.formats)
    case.write(folder / "in", format)
    text = case.text(f"replay:{format}:{folder}/in")
    settings = bearable(case.settings, case.data.num_rows)
    context = f"seed {seed}: {settings}\n{text}"
    try:
        asked = ps.App(master="process").sql(text)
        app = asked.query_set()
        sources = asked.inputs(app).sources
        chance = Chance(dice, case.data.num_rows, dice.choice([0.0, 0.0, 0.0, 0.2]))
        clock = Clock(dice, case.data.column("ts"), sources[STREAM].speed)
        with by_chance(patch, clock, chance, dice):
            engine = Engine(folder, app, sources, settings)
            run_to_end(engine)
        summary = engine.summary()
        log = logged(summary, STREAM)
        expected = expect_triaged(
            app, case.data, log.batches, log.ranges, key_of(OWNER, STREAM), watermarks=log.watermarks
        )
    except Exception as error:
        error.add_note(context)
        raise
    rows = {name: engine.rows(name) for name in case.queries}
    windows = {name: engine.window_account(name) for name in case.queries}
    context += f"\nbatches {log.batches}\nranges {log.ranges}"
    assert sum(log.batches) == case.data.num_rows, context
    assert_as_expected(summary, rows, windows, expected, log, context)
    assert not list((engine.checkpoint / "segments").iterdir()), f"{context}\nsegments are left"


@pytest.mark.parametrize("first", quick_and([0], range(SEED, SEED + SLOW, CHUNK)))
def test_what_is_left_unread_is_estimated_as_the_oracle_says(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(first, first + (QUICK if first == 0 else CHUNK)):
        check(seed, tmp_path / str(seed), monkeypatch)
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.parametrize("seed", range(6))
def test_windows_say_how_many_of_their_records_were_dropped(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of records in order, each in the window that it belongs to, wherever ranges and blocks of the index end."""
    dice = random.Random(seed)
    block, ahead = dice.choice([16, 64, 4_096]), dice.choice(["", "MAX AHEAD '1 second'"])
    monkeypatch.setattr(timings, "ENOUGH", 0)  # the first batches are left to chance, too
    for module in (replay, times):
        monkeypatch.setattr(module, "BLOCK", block)
    stamps = np.sort(np.random.default_rng(seed).integers(0, 20 * SECOND, 3_000))
    data = pa.table({"ts": pa.array(stamps).cast(pa.timestamp("us", tz="UTC"))})
    (tmp_path / "in").mkdir()
    pq.write_table(data, tmp_path / "in" / "0.parquet")
    asked = ps.App(master="process").sql(f"""
        CREATE STREAM s FROM 'replay:parquet:{tmp_path}/in' WATERMARK ts DELAY '500 milliseconds' {ahead};
        CREATE QUERY q AS SELECT count(*) AS n FROM s [RANGE '1 second'] LIMIT DELAY TO '1 hour';""")
    app, chance = asked.query_set(), Chance(dice, len(stamps), 0.7)
    with by_chance(monkeypatch, Clock(dice, data.column("ts"), 1.0), chance, dice):
        settings = Settings(len(stamps), 2, 20_000, 256_000_000, dice.choice([7, 500]), 1_024, 2)
        engine = chance.engine = Engine(tmp_path, app, asked.inputs(app).sources, settings)
        run_to_end(engine)
    log = logged(engine.summary(), "s")
    print(seed, block, ahead, log)
    reading = read_records(len(stamps), log.ranges, key_of(OWNER, "s"))
    unread = np.where(reading.read, reading.weights - 1, reading.dropped)
    starts = stamps // SECOND * SECOND
    found = {window["start"]: window["triaged"] for window in engine.window_account("q")}
    assert found == {start: int(unread[starts == start].sum()) for start in found}
    assert set(found) == set(starts[reading.read].tolist())
    assert log.dropped


# -- as users run it


def planning_of(seed: int) -> dict[str, Any]:
    """Plans of any kind, by a seed of their own."""
    dice = random.Random(seed)
    plan = dice.choice(["none", "auto", "gc", "gp"])
    return {"plan": plan} | ({} if plan == "none" else {"memory": dice.choice([4 << 10, 64 << 10, 1 << 20])})


def check_run(seed: int, folder: Path, patch: pytest.MonkeyPatch, workers: int = 1) -> None:
    """With plans of the engine's own, and workers."""
    dice, case, planning = random.Random(seed), random_promised_case(seed), planning_of(seed)
    case.write(folder / "in")
    app = ps.App(master="process").sql(case.text(f"replay:parquet:{folder}/in"))
    settings = replace(bearable(case.settings, case.data.num_rows), parallelism=workers)
    context = f"seed {seed}: {settings}, {planning}\n{case.text(f'replay:parquet:{folder}/in')}"
    asked = app.query_set()
    speed = app.inputs(asked).sources[STREAM].speed
    chance = Chance(dice, case.data.num_rows, 0.0)
    try:
        with by_chance(patch, Clock(dice, case.data.column("ts"), speed), chance, dice):
            places = {"checkpoint": str(folder / "checkpoint"), "output": str(folder / "out")}
            run = app.start(**{**settings.as_arguments(), **planning}, **places)
            run.await_end()
        summary = run.summary()
        log, key = logged(summary, STREAM), key_of(identity.load(folder / "checkpoint").id, STREAM)
        expected = expect_triaged(asked, case.data, log.batches, log.ranges, key, watermarks=log.watermarks)
    except Exception as error:
        error.add_note(context)
        raise
    rows = {name: read_output(folder / "out" / name) for name in case.queries}
    windows = {name: run.window_account(name) for name in case.queries}
    context += f"\nbatches {log.batches}\nranges {log.ranges}"
    assert_as_expected(summary, rows, windows, expected, log, context)


@pytest.mark.parametrize("first", quick_and([0], range(SEED, SEED + SLOW // 4, CHUNK)))
def test_runs_with_plans_of_their_own_are_estimated_so(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(first, first + (QUICK // 2 if first == 0 else CHUNK)):
        check_run(seed, tmp_path / str(seed), monkeypatch)
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEED, SEED + 10))
def test_runs_with_workers_are_estimated_so(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_run(seed, tmp_path, monkeypatch, 2 + seed % 2)


# -- joins with tables


def check_joins(seed: int, folder: Path, patch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    promised = random_promised_joins(seed)
    case, text = promised.case, promised.write(folder / "in")
    data = case.data[JOINED]
    settings = bearable(case.settings, data.num_rows)
    context = f"seed {seed}: {settings}\n{text}"
    try:
        asked = ps.App(master="process").sql(text)
        app = asked.query_set()
        chance = Chance(dice, data.num_rows, dice.choice([0.0, 0.0, 0.0, 0.2]))
        with by_chance(patch, Clock(dice, data.column("ts"), promised.speed), chance, dice):
            engine = Engine(folder, app, asked.inputs(app).sources, settings)
            run_to_end(engine)
        summary = engine.summary()
        log = logged(summary, JOINED)
        reading = read_records(data.num_rows, log.ranges, key_of(OWNER, JOINED))
        told = RunLog({JOINED: log.batches}, {JOINED: len(log.batches) - 1})
        marks = {JOINED: log.watermarks}
        expected = expect_triaged_joins(case.app, case.data, told, {JOINED: reading}, marks)
    except Exception as error:
        error.add_note(context)
        raise
    context += f"\nbatches {log.batches}\nranges {log.ranges}"
    assert_account_closes(summary)
    for name, found in expected.queries.items():
        place = f"{context}\nquery {name}"
        actual, (account,) = engine.rows(name), found.accounts.values()
        # Where a record has several rows of a table, errors are told about.
        several = app.query(name).join is not None
        assert_rows(actual, found.rows, log, place, errors=not several)
        assert_same_account(summary["queries"][name]["accounting"], account, place)
        assert_windows(engine.window_account(name), found.windows, log, place)
    assert_same_account(summary["accounting"], expected.streams[JOINED], f"{context}\nstream")
    assert not list((engine.checkpoint / "segments").iterdir()), f"{context}\nsegments are left"


@pytest.mark.parametrize("first", quick_and([0], range(SEED, SEED + SLOW, CHUNK)))
def test_joins_with_tables_are_estimated_as_the_oracle_says(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(first, first + (QUICK if first == 0 else CHUNK)):
        check_joins(seed, tmp_path / str(seed), monkeypatch)
        shutil.rmtree(tmp_path / str(seed))
