"""Hundreds of queries on one stream: random sets of 20 attributes in aggregate trees of bounded memory.

Answers equal the oracle's; tables keep to the memory they were given, whatever they meet.
"""

from __future__ import annotations

import random
from pathlib import Path
from time import thread_time

import measured
import numpy as np
import pyarrow.parquet as pq
import pytest
from measured import Measured, resolved

from penstock.runtime.planning.replan import Planner
from penstock.runtime.work import TABLE
from penstock.sharing.options import AUTO, EACH, TREE, Planning
from penstock.testing.asserts import assert_same_rows
from penstock.testing.oracle.expected import expect

LETTERS = "abcdefghijklmnopqrst"  # 20 attributes
FILTERS = ("", "", "", "WHERE v > 50", "WHERE a = 1")
WINDOWS = ("20 seconds", "20 seconds", "5 seconds")
ROWS, BATCH = 60_000, 25_000
SLACK = 64 << 10  # bytes of logs and rounding that small tables have at least


def columns(rng: random.Random, rows: int) -> dict[str, np.ndarray]:
    """Some attributes follow from others, some come in flows, a few have many values."""
    dice = np.random.default_rng(rng.randrange(1 << 30))
    flows = np.repeat(np.arange(rows // 8 + 1), 8)[:rows]
    found: dict[str, np.ndarray] = {}
    for letter in LETTERS:
        kind, values = rng.choice(("zipf", "uniform", "flow", "follows")), rng.choice((2, 10, 60, 3000))
        if kind == "flow":
            found[letter] = dice.integers(0, values, len(flows))[flows]
        elif kind == "follows" and found:
            found[letter] = found[rng.choice(list(found))] % values
        elif kind == "zipf":
            found[letter] = dice.zipf(1.3, rows) % values
        else:
            found[letter] = dice.integers(0, values, rows)
    return found


def app_text(rng: random.Random, path: Path, count: int) -> str:
    queries = [f"CREATE STREAM s FROM 'parquet:{path}' WATERMARK ts DELAY '0 seconds';"]
    for number in range(count):
        keys = ", ".join(sorted(rng.sample(LETTERS, rng.randint(1, 4))))
        queries.append(
            f"CREATE QUERY q{number} AS SELECT {keys}, count(*) AS tuples, {rng.choice(('sum', 'max'))}(v) AS value "
            f"FROM s [RANGE '{rng.choice(WINDOWS)}'] {rng.choice(FILTERS)} GROUP BY {keys};"
        )
    return "\n".join(queries)


def table_bytes(ran: Measured) -> int:
    """The most that the tables of a task took."""
    tasks = ran.engine.executor.reports
    return max(sum(size for name, size in task.bytes.items() if name.startswith(TABLE)) for task in tasks)


def check(seed: int, count: int, plan: str, memory: int, folder: Path, patch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    path = folder / "in.parquet"
    measured.write(path, columns(rng, ROWS))
    text, chosen = app_text(rng, path, count), measured.settings(BATCH)
    app, sources = resolved(text)
    planner, began = Planner(Planning(plan, memory=memory, stored=EACH)), thread_time()
    planner.look(app, sources, chosen.batch_rows, chosen.parallelism)
    tables = planner.plans(app)["s"].tables
    print(f"seed {seed}: {count} queries, {len(tables)} tables, planned in {thread_time() - began:.2f} s")
    assert tables
    ran = measured.run(folder / "run", text, chosen, Planner(Planning(plan, memory=memory, stored=EACH)), patch)
    saved = sum(batch.operations for batch in ran.batches) / (count * ROWS)
    print(f"{saved:.2f} of the hash operations, {table_bytes(ran):,} bytes of tables")
    assert saved < 1
    assert table_bytes(ran) <= memory + SLACK
    expected = expect(app, pq.read_table(path), [batch.rows for batch in ran.batches])
    assert len(expected.rows) == count
    for name, rows in expected.rows.items():
        found = ran.engine.rows(name)
        assert found is not None
        assert_same_rows(found, rows, f"seed {seed}, query {name}")


def test_sixty_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(1, 60, TREE, 128 << 10, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(("plan", "memory"), [(TREE, 256 << 10), (TREE, 8 << 20), (AUTO, 1 << 20)])
def test_three_hundred_queries(plan: str, memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(2, 300, plan, memory, tmp_path, monkeypatch)
