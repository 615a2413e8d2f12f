"""Random apps whose queries all promise a delay, on streams that are replayed by the clock, with records left unread at
random: rows with their estimates and errors, accounts of queries, streams and windows must be what the oracle makes of
the logged ranges.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from in_process import OWNER, Engine, bearable
from promised_runs import Chance, Clock, assert_as_expected, by_chance, logged, reach_of, run_to_end

import penstock as ps
from penstock.runtime.batch import compaction
from penstock.testing.apps.generators import STREAM
from penstock.testing.apps.random_promises import random_promised_case
from penstock.testing.oracle.triage import expect_triaged, key_of
from support.amounts import quick_and

SEED = int(os.environ.get("PENSTOCK_SEED", "20261118"))
QUICK, SLOW, CHUNK = 20, 400, 20


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
        patch.setattr(compaction, "MOST", dice.choice([1, 2, 4, 12]))
        patch.setattr(compaction, "FORCED", dice.choice([3, 12, 48]))
        chance = Chance(dice, case.data.num_rows, dice.choice([0.0, 0.0, 0.0, 0.2]))
        clock = Clock(dice, reach_of(app, case.data, sources[STREAM].speed))
        with by_chance(patch, clock, chance, dice):
            engine = chance.engine = Engine(folder, app, sources, settings)
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
    for seed in range(first, first + CHUNK):
        check(seed, tmp_path / str(seed), monkeypatch)
        shutil.rmtree(tmp_path / str(seed))
