"""Random promised apps as the scheduler itself decides, by a clock of dice and by given costs: where there is
time, nothing is left unread; where there is none, each mode does what it says.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from in_process import OWNER, Engine, bearable
from promised_runs import Clock, Logged, assert_as_expected, at_these_costs, logged, run_to_end

import penstock as ps
from penstock.testing.apps.generators import STREAM, RandomCase
from penstock.testing.apps.random_promises import random_promised_case
from penstock.testing.asserts import assert_same_rows
from penstock.testing.oracle.triage import expect_triaged, key_of
from penstock.triage.picks import DROP
from penstock.triage.plan import Costs, Mode
from support.amounts import quick_and

SEED = int(os.environ.get("PENSTOCK_SEED", "20261118"))
QUICK, SLOW, CHUNK = 2, 200, 20
CHEAP = Costs(batch=1e-3, full=1e-9, skip=1e-10, close=1e-6)
DEAR = Costs(batch=0.1, full=100.0, skip=1e-6, close=0.1)  # no record can be read in time
PLAIN = re.compile(r"\n  LIMIT DELAY TO '[^']*'|\n  ON OVERLOAD KEEP RESERVOIR \(1\)| WITH \(speed = [^)]*\)")


@dataclass(frozen=True)
class Ran:
    """A run of a promised case."""

    case: RandomCase
    text: str
    summary: dict[str, Any]
    rows: dict[str, pa.Table | None]
    log: Logged

    @property
    def steps(self) -> set[int]:
        return {k for _, k in self.log.ranges}


def ran(seed: int, folder: Path, patch: pytest.MonkeyPatch, costs: Costs, mode: Mode = Mode.TRIAGE) -> Ran:
    """And compared with what the oracle makes of what was logged."""
    dice, case = random.Random(seed), random_promised_case(seed)
    case.write(folder / "in")
    text = case.text(f"replay:parquet:{folder}/in")
    settings = bearable(case.settings, case.data.num_rows)
    context = f"seed {seed}, {mode}: {settings}\n{text}"
    try:
        asked = ps.App(master="process").sql(text)
        app = asked.query_set()
        sources = asked.inputs(app).sources
        with at_these_costs(patch, Clock(dice, case.data.column("ts"), sources[STREAM].speed), costs):
            engine = Engine(folder, app, sources, settings, overload=mode)
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
    assert_as_expected(summary, rows, windows, expected, log, f"{context}\nranges {log.ranges}")
    return Ran(case, text, summary, rows, log)


def assert_nothing_is_estimated(found: Ran, seed: int) -> None:
    assert found.steps <= {0}, f"seed {seed}"
    assert found.summary["accounting"]["triaged"] == 0, f"seed {seed}"
    for name, table in found.rows.items():
        for column in () if table is None else table.schema.names:
            if column.startswith(("estimated_", "error_")):
                values = table.column(column).to_pylist()
                # Of sums that are no numbers neither is what was added to them.
                assert all(v is None or v == 0 or v != v for v in values), f"seed {seed}, {name}.{column}"


@pytest.mark.parametrize("first", quick_and([0], range(SEED, SEED + SLOW, CHUNK)))
@pytest.mark.parametrize(("costs", "mode"), [(CHEAP, Mode.TRIAGE), (DEAR, Mode.QUEUE)], ids=["in time", "queue"])
def test_where_all_is_read_results_are_those_of_an_app_without_promises(
    first: int, costs: Costs, mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of the files themselves, where nothing is late: what is late depends on the batches."""
    for seed in range(first, first + (QUICK if first == 0 else CHUNK)):
        folder = tmp_path / str(seed)
        found = ran(seed, folder, monkeypatch, costs, mode)
        assert_nothing_is_estimated(found, seed)
        text = PLAIN.sub("", found.text).replace("'replay:", "'")
        if "exact_o" not in text and "estimated_o" not in text:  # which plain queries do not have
            compare_with_files(found, text, folder, seed)
        shutil.rmtree(folder)


def compare_with_files(found: Ran, text: str, folder: Path, seed: int) -> None:
    asked = ps.App(master="process").sql(text)
    app = asked.query_set()
    settings = bearable(found.case.settings, found.case.data.num_rows)
    engine = Engine(folder / "plain", app, asked.inputs(app).sources, settings)
    engine.finish()
    told = engine.summary()
    for name in found.case.queries:
        late = [one["queries"][name]["accounting"]["late"] for one in (found.summary, told)]
        window = next(query.window for query in app.queries if query.name == name)
        apart = window.range is not None and window.range <= window.slide  # else a record may be late for some windows
        plain, mine = engine.rows(name), found.rows[name]
        if late == [0, 0] and apart and plain is not None and mine is not None:
            assert_same_rows(mine.select(plain.schema.names), plain, f"seed {seed}, {name}\n{text}")


@pytest.mark.parametrize("first", quick_and([0], range(SEED, SEED + SLOW, CHUNK)))
@pytest.mark.parametrize("mode", [Mode.TRIAGE, Mode.DROP, Mode.SUMMARISE])
def test_where_there_is_no_time_each_mode_does_as_it_says(
    first: int, mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: dict[Mode, Callable[[int], bool]] = {
        Mode.TRIAGE: lambda k: k != DROP,
        Mode.DROP: lambda k: k in (0, DROP),
        Mode.SUMMARISE: lambda k: k != DROP,
    }
    steps: set[int] = set()
    for seed in range(first, first + (QUICK if first == 0 else CHUNK)):
        found = ran(seed, tmp_path / str(seed), monkeypatch, DEAR, mode)
        assert all(map(allowed[mode], found.steps)), f"seed {seed}: {found.log.ranges}"
        steps |= found.steps
        shutil.rmtree(tmp_path / str(seed))
    assert steps > {0}, f"seeds from {first} on left nothing unread"
