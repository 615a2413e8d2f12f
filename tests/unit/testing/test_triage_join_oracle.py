"""The oracle of promised delays, for joins of a stream with tables: by hand, and against the oracle of exact joins."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import RunError
from penstock.logical.types import BIGINT, INT, STRING, TIMESTAMP
from penstock.testing.apps.random_joins import random_join_case
from penstock.testing.asserts import assert_same_rows
from penstock.testing.oracle.joins import expect_joins
from penstock.testing.oracle.joins.spec import (
    RANGE,
    AppSpec,
    FieldSpec,
    JoinSpec,
    KeySpec,
    OutputSpec,
    RunLog,
    Side,
    StreamSpec,
    TableSide,
    TableSpec,
    Tie,
    WindowSpec,
    at_once,
)
from penstock.testing.oracle.joins.terms import aggregate, column, grouped
from penstock.testing.oracle.triage import Reading, expect_triaged_joins, read_records, whole_run
from support.amounts import quick_and
from support.ranges import random_ranges

SECOND = 1_000_000
SEED = int(os.environ.get("PENSTOCK_SEED", "20261118"))
EVENTS = StreamSpec("s", (FieldSpec("ts", TIMESTAMP), FieldSpec("k", INT), FieldSpec("v", BIGINT)), "ts")
OWNERS = TableSpec(
    "owners",
    (FieldSpec("k", INT), FieldSpec("owner", STRING)),
    pa.table({"k": pa.array([1, 1, 1, 2], pa.int32()), "owner": ["x", "x", "y", "y"]}),
)
K, V, OWNER = column("S", "k", INT), column("S", "v", BIGINT), column("T", "owner", STRING)
JOIN = JoinSpec(
    "q",
    (Side("S", "s", WindowSpec(RANGE, 60 * SECOND)),),
    60 * SECOND,
    (
        OutputSpec("owner", grouped(OWNER)),
        OutputSpec("n", aggregate("count")),
        OutputSpec("t", aggregate("sum", V)),
        OutputSpec("m", aggregate("avg", V)),
    ),
    (KeySpec(OWNER),),
    (TableSide("T", "owners", (Tie("=", K, column("T", "k", INT)),)),),
)


def events(keys: list[int]) -> pa.Table:
    times = pa.array([i * SECOND for i in range(len(keys))], pa.timestamp("us"))
    return pa.table({"ts": times, "k": pa.array(keys, pa.int32()), "v": pa.array([*range(len(keys))], pa.int64())})


def read(rows: int, *picked: int) -> Reading:
    """The first two records are exact, of all others these were picked, each for four."""
    steps = np.array([0, 0, *[2] * (rows - 2)], np.int8)
    return Reading(steps, np.isin(np.arange(rows), [0, 1, *picked]))


def test_rows_of_a_table_by_hand() -> None:
    """Record 5 has k = 1 and three rows: x gets 2 of it, y one. Record 8 has k = 2: y gets one. n is 2, so that of y
    error² = 12·((1 + 1) − 2²/2)·2 = 0 for the count, and of x 12·(4 − 4/2)·2."""
    data = events([1, 2, 9, 9, 9, 1, 9, 9, 2, 9])
    app = AppSpec((EVENTS,), (JOIN,), (OWNERS,))
    found = expect_triaged_joins(app, {"s": data}, at_once({"s": 10}), {"s": read(10, 5, 8)}).queries["q"]
    shown = found.rows.drop_columns(["window_start", "window_end"]).to_pylist()
    x, y = sorted(shown, key=lambda row: row["owner"])
    assert [x[name] for name in ("n", "exact_n", "estimated_n")] == [10, 4, 6]
    assert [x[name] for name in ("t", "exact_t", "estimated_t", "m", "exact_m")] == [40, 10, 30, 4.0, 2.5]
    assert x["error_n"] == math.sqrt(48)
    assert x["error_t"] == pytest.approx(5 * math.sqrt(48))
    assert x["error_m"] == pytest.approx(2 * math.sqrt(12) / 10)
    assert (y["n"], y["exact_n"], y["error_n"]) == (10, 4, 0.0)
    assert (y["t"], y["error_t"]) == (53, pytest.approx(math.sqrt(24 * (25 + 64 - 13**2 / 2))))
    assert found.accounts["S"].as_dict() == {
        "input": 10, "exact": 4, "triaged": 6, "late": 0, "filtered": 0, "malformed": 0
    }  # fmt: skip
    assert found.windows == [{"start": 0, "end": 60 * SECOND, "rows": 2, "exact": 4, "triaged": 6}]


def test_combinations_have_the_weight_of_their_record() -> None:
    outputs = (OutputSpec("v", V), OutputSpec("owner", OWNER))
    app = AppSpec((EVENTS,), (replace(JOIN, outputs=outputs, keys=None),), (OWNERS,))
    data = {"s": events([1, 2, 9, 9, 9, 1])}
    found = expect_triaged_joins(app, data, at_once({"s": 6}), {"s": read(6, 5)}).queries["q"].rows
    rows = sorted(zip(*(found.column(name).to_pylist() for name in ("v", "owner", "weight")), strict=True))
    assert rows == [(0, "x", 1), (0, "x", 1), (0, "y", 1), (1, "y", 1), (5, "x", 4), (5, "x", 4), (5, "y", 4)]


# -- random apps


def lone(seed: int) -> tuple[AppSpec, Mapping[str, pa.Table], RunLog]:
    """The queries of a random app that read one stream and tables, without DISTINCT; and random batches."""
    case, dice = random_join_case(seed), random.Random(seed)
    names = {stream.name for stream in case.app.streams}
    kept = [
        replace(query, hidden=False)
        for query in case.app.queries
        if len(query.streams) == 1
        and query.sides[0].source in names
        and query.sides[0].window.kind == RANGE
        and not any(one.distinct for output in query.outputs for one in output.term.aggregates)
    ]
    cuts = {}
    for name, rows in case.rows.items():
        places = sorted(dice.randint(0, rows) for _ in range(3))
        cuts[name] = tuple(b - a for a, b in zip([0, *places], [*places, rows], strict=True))
    return replace(case.app, queries=tuple(kept)), case.data, RunLog(cuts, dict.fromkeys(cuts, 3))


@pytest.mark.parametrize("first", quick_and([SEED], range(SEED + 20, SEED + 400, 20)))
def test_random_joins_with_nothing_unread_are_exact(first: int) -> None:
    for seed in range(first, first + 20):
        app, data, log = lone(seed)
        try:
            exact = expect_joins(app, data, log)
        except RunError:
            continue
        found = expect_triaged_joins(app, data, log, {n: read_records(t.num_rows, [], 0) for n, t in data.items()})
        assert found.streams == exact.streams, f"seed {seed}"
        for name, one in exact.queries.items():
            rows = found.queries[name].rows.select(one.rows.schema.names)
            assert_same_rows(rows, one.rows, f"seed {seed}, {name}")


@pytest.mark.parametrize("first", quick_and([SEED], range(SEED + 20, SEED + 400, 20)))
def test_random_joins_with_random_ranges(first: int) -> None:
    """The account closes, estimates add up, and there is a row for a group if and only if it was read."""
    for seed in range(first, first + 20):
        app, data, log = lone(seed)
        dice = random.Random(seed)
        logged = {name: random_ranges(dice, log.rows[name], drop=0.05) for name in data}
        readings = {
            name: read_records(table.num_rows, whole_run(log.rows[name], logged[name]), seed)
            for name, table in data.items()
        }
        try:
            found = expect_triaged_joins(app, data, log, readings)
        except RunError:
            continue
        for name, one in found.queries.items():
            side = app.query(name).sides[0]
            account = one.accounts[side.alias]
            assert account.triaged == int((~readings[side.source].read).sum()), f"seed {seed}, {name}"
            for field in one.rows.schema:
                if field.name.startswith("estimated_") and pa.types.is_integer(field.type):
                    of = field.name.removeprefix("estimated_")
                    parts = [one.rows.column(n).to_pylist() for n in (of, f"exact_{of}", field.name)]
                    assert all(e is None or x == s + e for x, s, e in zip(*parts, strict=True)), f"seed {seed}, {name}"
