"""Queries that promise a delay beside others that do not, on one live stream: whatever is left unread of the first, the
others are exact, read the stream by themselves, and have an account of their own. What waits longer than the stream is
kept, and that alone, they never see.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from in_process import OWNER, Engine, bearable
from promised_runs import Chance, Clock, assert_rows, assert_windows, by_chance, logged, reach_of, run_to_end

import penstock as ps
from penstock.logical.owed import OWED
from penstock.logical.query import QuerySet
from penstock.testing.apps.generators import STREAM
from penstock.testing.apps.random_promises import random_promised_case
from penstock.testing.asserts import assert_account_closes, assert_same_account
from penstock.testing.oracle.triage import expect_triaged, key_of
from penstock.triage.picks import DROP
from support.amounts import quick_and

SEED = int(os.environ.get("PENSTOCK_SEED", "20261118"))
QUICK, SLOW, CHUNK = 5, 200, 20
CREATE = "CREATE QUERY "


def mixed(text: str, dice: random.Random) -> str:
    """Some queries promise nothing any more; those that look at estimates do."""
    first, *queries = text.split(CREATE)
    plain = [query.replace(query[query.rindex("\n  LIMIT DELAY TO") :], ";\n") for query in queries]
    free = [n for n, query in enumerate(queries) if "exact_o" not in query and "estimated_o" not in query]
    chosen = set(free[:1] if dice.random() < 0.3 else [n for n in free if dice.random() < 0.5])
    return CREATE.join([first, *(plain[n] if n in chosen else query for n, query in enumerate(queries))])


def check(seed: int, folder: Path, patch: pytest.MonkeyPatch, short: bool = False) -> bool:
    """Whether anything was given up; `short`: what waits is kept for a part of the run."""
    dice, case = random.Random(seed), random_promised_case(seed)
    case.write(folder / "in")
    text = mixed(case.text(f"replay:parquet:{folder}/in"), dice)
    settings = bearable(case.settings, case.data.num_rows)
    context = f"seed {seed}: {settings}\n{text}"
    try:
        asked = ps.App(master="process").sql(text)
        app = asked.query_set()
        sources = asked.inputs(app).sources
        chance = Chance(dice, case.data.num_rows, 0.0)
        speed = next(iter(sources.values())).speed
        kept = reach_of(case.data.column("ts"), speed) // dice.choice([2, 5, 20]) if short else None
        sources = {name: replace(source, kept_for=kept) for name, source in sources.items()}
        with by_chance(patch, Clock(dice, case.data.column("ts"), speed), chance, dice):
            engine = Engine(folder, app, sources, settings)
            run_to_end(engine)
        summary = engine.summary()
    except Exception as error:
        error.add_note(context)
        raise
    assert_account_closes(summary)
    names = [stream.name for stream in app.streams]
    assert (STREAM + OWED in names) == (len({query.promise is None for query in app.queries}) > 1), context
    lost = [check_stream(engine, app, name, f"{context}\nstream {name}", case.data) for name in names]
    assert short or not any(lost), context
    return any(lost)


def check_stream(engine: Engine, app: QuerySet, name: str, context: str, data: pa.Table) -> bool:
    """Whether records of the stream were given up."""
    summary, log = engine.summary(), logged(engine.summary(), name)
    own = QuerySet((app.stream(name),), app.readers(name))
    expected = expect_triaged(own, data, log.batches, log.ranges, key_of(OWNER, name), watermarks=log.watermarks)
    context += f"\nbatches {log.batches}\nranges {log.ranges}"
    for query in own.queries:
        place, rows = f"{context}\nquery {query.name}", engine.rows(query.name)
        if query.promise is None:
            assert {k for _, k in log.ranges} <= {0, DROP}, place
            names = [column.name for column in query.select]
            wanted = expected.rows[query.name].select([*names, "window_start", "window_end"])
        else:
            wanted = expected.rows[query.name]
        assert_rows(rows, wanted, log, place)
        assert_same_account(summary["queries"][query.name]["accounting"], expected.accounts[query.name], place)
        assert_windows(engine.window_account(query.name), expected.windows[query.name], log, place)
    told = summary["accounting"]
    assert_same_account(told if "input" in told else told[name], expected.stream, context)
    return log.dropped


@pytest.mark.parametrize("first", quick_and([0], range(SEED, SEED + SLOW, CHUNK)))
def test_queries_without_a_promise_are_exact(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + (QUICK if first == 0 else CHUNK)):
        check(seed, tmp_path / str(seed), monkeypatch)
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.parametrize("first", quick_and([0], range(SEED, SEED + SLOW, CHUNK)))
def test_what_waits_too_long_is_given_up(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = 0
    for seed in range(first, first + (QUICK if first == 0 else CHUNK)):
        lost += check(seed, tmp_path / str(seed), monkeypatch, short=True)
        shutil.rmtree(tmp_path / str(seed))
    assert lost, f"seeds from {first} on gave nothing up"
