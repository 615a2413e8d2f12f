"""Plans that change while queries come and go, batches are done again, and tasks are tried twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import measured
import numpy as np
import pyarrow.parquet as pq
import pytest
from in_process import Engine
from measured import app_text, resolved, uniform, write
from test_random_plans import restless

from penstock.errors import RunError
from penstock.logical.query import QuerySet
from penstock.runtime.planning.replan import Planner
from penstock.runtime.task import sampling
from penstock.sharing.options import Planning
from penstock.state import manifest as manifests
from penstock.state import versions
from penstock.state.manifest import Manifest
from penstock.testing.asserts import assert_same_rows
from penstock.testing.oracle.expected import expect

BATCH, BATCHES = 5_000, 8
KEYS = ["ab", "bc", "ac", "a", "b"]
Between = Callable[[Engine], None]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """A run whose plans change at every chance."""
    restless(monkeypatch)
    sizes = {"a": 30, "b": 20, "c": 40, "d": 7}
    write(tmp_path / "in.parquet", uniform(np.random.default_rng(1), BATCH * BATCHES, sizes))
    app, sources = resolved(text(tmp_path))
    planner = Planner(Planning("gc", memory=8 << 10))
    settings = measured.settings(BATCH)
    return Engine(tmp_path / "run", app, sources, settings, planner)


def text(folder: Path) -> str:
    return app_text(folder / "in.parquet", KEYS, 2 * BATCH)


def check(engine: Engine, folder: Path, app: QuerySet, since: dict[str, tuple[int | None, int, int]]) -> None:
    engine.finish()
    batches = [batch["rows"] for batch in engine.summary()["batches"]]
    expected = expect(app, pq.read_table(folder / "in.parquet"), batches, since=since)
    for name, rows in expected.rows.items():
        found = engine.rows(name)
        assert found is not None, name
        assert_same_rows(found, rows, name)


def test_plans_do_change_here(engine: Engine, tmp_path: Path) -> None:
    check(engine, tmp_path, engine.held.version.app, {})
    assert engine.held.version.number >= 3


def test_a_query_that_is_added_while_a_batch_runs(engine: Engine, tmp_path: Path) -> None:
    """The batch's counters know nothing of it: no plan is made from them. The next batch's do."""
    first = engine.held.version.app
    app, _ = resolved(app_text(tmp_path / "in.parquet", [*KEYS, "abc"], 2 * BATCH))
    app = QuerySet(first.streams, app.queries)
    engine.step()
    number = engine.held.version.number
    engine.step(meanwhile=lambda: engine.amend(app))
    amended = engine.held.version.number
    assert amended == number + 1
    known = engine.driver.manifest.streams["s"]
    since = {"q_abc": (known.greatest, known.row, engine.batch)}
    for _ in range(3):
        engine.step()
    assert engine.held.version.number > amended
    plan = engine.held.version.plans["s"]
    assert "q_abc" in {plan.stored.labels[name] for table in plan.tables for name in table.leaves}
    check(engine, tmp_path, app, since)


def test_a_query_that_is_dropped_while_a_batch_runs(engine: Engine, tmp_path: Path) -> None:
    app = engine.held.version.app
    left = QuerySet(app.streams, tuple(query for query in app.queries if query.name != "q_ab"))
    engine.step()
    number = engine.held.version.number
    engine.step(meanwhile=lambda: engine.amend(left))
    assert engine.held.version.number == number + 1
    check(engine, tmp_path, left, {})


def test_nothing_is_planned_while_somebody_changes_the_app(engine: Engine, tmp_path: Path) -> None:
    engine.step()
    number = engine.held.version.number
    with engine.held.changing:
        for _ in range(3):
            engine.step()
    assert engine.held.version.number == number
    engine.step()
    assert engine.held.version.number > number
    check(engine, tmp_path, engine.held.version.app, {})


def test_batches_that_are_done_again(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fails once before its manifest: it is done again with the plans it was decided with."""
    put, failed = manifests.put, set[int]()

    def stumble(checkpoint: Path, manifest: Manifest) -> None:
        if manifest.batch not in failed:
            failed.add(manifest.batch)
            raise OSError("the manifest cannot be written")
        put(checkpoint, manifest)

    monkeypatch.setattr(manifests, "put", stumble)
    while True:
        try:
            if not engine.step():
                break
        except RunError:
            engine.again()
        assert engine.driver.manifest.offset == engine.offset
    assert len(failed) >= BATCHES
    check(engine, tmp_path, engine.held.version.app, {})


def test_tasks_that_are_tried_twice(engine: Engine, tmp_path: Path) -> None:
    """The references of the second attempts count; both left a sample."""
    engine.executor.attempts = 2
    check(engine, tmp_path, engine.held.version.app, {})
    assert [path.name for path in (engine.checkpoint / sampling.FOLDER).iterdir()] == ["s.sample"]


def test_damaged_samples_in_the_middle(engine: Engine, tmp_path: Path) -> None:
    """A sample that cannot be read leaves the plan as it is."""
    path = sampling.path_of(engine.checkpoint, "s")
    engine.step()
    for damage in (b"", b"nothing", path.read_bytes()[:-1]):
        number = engine.held.version.number
        engine.step(meanwhile=partial(path.write_bytes, damage))
        assert engine.held.version.number == number
    check(engine, tmp_path, engine.held.version.app, {})


def test_versions_do_not_pile_up(engine: Engine, tmp_path: Path) -> None:
    most = 0
    while engine.step():
        most = max(most, len(list((engine.checkpoint / versions.FOLDER).iterdir())))
    assert engine.held.version.number >= 3
    assert most <= 4
    check(engine, tmp_path, engine.held.version.app, {})
