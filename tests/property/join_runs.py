"""Runs of random joins, and what they must show: rows, accounts by alias and by stream, windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from in_process import Engine, bearable, read_output

import penstock as ps
from penstock.errors import RunError
from penstock.runtime.planning.replan import Planner
from penstock.state import manifest as manifests
from penstock.state.manifest import Manifest
from penstock.testing.apps.random_joins import JoinCase
from penstock.testing.asserts import assert_same_account, assert_same_rows
from penstock.testing.oracle.joins import ExpectedApp
from penstock.testing.oracle.joins.spec import RunLog, at_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOW = ("start", "end", "rows", "exact")
STUMBLED = "the manifest cannot be written"


@dataclass(frozen=True)
class Ran:
    """What a run left behind; nothing but the error, where it ended with one."""

    summary: Mapping[str, Any]
    rows: Mapping[str, pa.Table | None]
    windows: Mapping[str, list[dict[str, int]]]
    error: RunError | None = None

    @property
    def log(self) -> RunLog:
        """Row counts by stream and batch, from the positions that were decided."""
        offsets = [batch["offsets"]["streams"] for batch in self.summary["batches"]]
        names = sorted({name for offset in offsets for name in offset})
        rows, ended = {}, {}
        for name in names:
            places = [0, *(offset.get(name, {"row": 0})["row"] for offset in offsets)]
            rows[name] = tuple(b - a for a, b in pairwise(places))
            ends = [n for n, offset in enumerate(offsets) if offset.get(name, {}).get("end")]
            ended[name] = ends[0] if ends else len(offsets)
        return RunLog(rows, ended)


def run_in_process(
    case: JoinCase,
    folder: Path,
    patch: pytest.MonkeyPatch,
    planner: Planner | None = None,
    stumbling: bool = False,
) -> Ran:
    """Step by step, with random plans unless there is a planner; `stumbling`: every batch fails once and is redone."""
    app = ps.App(master="process").sql(case.write(folder / "in"))
    queries = app.query_set()
    settings = bearable(case.settings, sum(case.rows.values()))
    engine = Engine(folder, queries, app.inputs(queries).sources, settings, planner)
    with patch.context() as patched:
        if stumbling:
            _stumble(patched)
        try:
            _finish(engine)
        except RunError as error:
            return Ran({}, {}, {}, error)
    names = [query.name for query in case.shown]
    return Ran(engine.summary(), {n: engine.rows(n) for n in names}, {n: engine.window_account(n) for n in names})


def _finish(engine: Engine) -> None:
    while True:
        try:
            if not engine.step():
                break
        except RunError as error:
            if STUMBLED not in str(error):
                raise
            engine.again()
    engine.finish()


def _stumble(patch: pytest.MonkeyPatch) -> None:
    put, failed = manifests.put, set()

    def once(checkpoint: Path, manifest: Manifest) -> None:
        if manifest.batch not in failed:
            failed.add(manifest.batch)
            raise OSError(STUMBLED)
        put(checkpoint, manifest)

    patch.setattr(manifests, "put", once)


def run_app(spark: SparkSession | None, case: JoinCase, folder: Path, **planning: Any) -> Ran:
    """By the public way: on Spark, or with worker processes."""
    app = ps.App(spark=spark, master="process").sql(case.write(folder / "in"))
    places = {"checkpoint": str(folder / "checkpoint"), "output": str(folder / "out")}
    settings = bearable(case.settings, sum(case.rows.values())).as_arguments()
    try:
        run = app.start(**{"plan": "none", **settings, **planning}, **places)
        run.await_end()
    except RunError as error:
        return Ran({}, {}, {}, error)
    names = [query.name for query in case.shown]
    rows = {name: read_output(folder / "out" / name) for name in names}
    return Ran(run.summary(), rows, {name: run.window_account(name) for name in names})


# -- what must be


def assert_as_expected(ran: Ran, case: JoinCase, context: str) -> None:
    """Where a sum does not fit, the run must have ended with a message; nothing is late in such apps."""
    if ran.error is not None:
        _assert_too_large(ran.error, case, context)
        return
    log = ran.log
    for name, count in case.rows.items():
        assert sum(log.rows[name]) == count, f"{context}: batches {log.rows[name]} do not cover '{name}'"
    expected = case.expected(log)
    for query in case.shown:
        _assert_query(ran, case, expected, query.name, f"{context}\nquery {query.name}")
    told = ran.summary["accounting"]
    accounts = {next(iter(case.rows)): told} if "input" in told else told
    for name, account in expected.streams.items():
        assert_same_account(accounts[name], account, f"{context}\nstream {name}")


def _assert_too_large(error: RunError, case: JoinCase, context: str) -> None:
    try:
        if case.endless:
            case.expected(at_once(case.rows))
    except RunError:
        return
    error.add_note(context)
    raise error


def _assert_query(ran: Ran, case: JoinCase, expected: ExpectedApp, name: str, place: str) -> None:
    found, actual, told = expected.queries[name], ran.rows[name], ran.summary["queries"][name]
    assert_same_rows(found.rows.slice(0, 0) if actual is None else actual, found.rows, place)
    assert told["rows"] == found.rows.num_rows, f"{place}: the summary says {told['rows']} rows"
    accounting = told["accounting"]
    accounts = {next(iter(found.accounts)): accounting} if "input" in accounting else accounting
    assert accounts.keys() == found.accounts.keys(), f"{place}: accounts of {sorted(accounts)}"
    for alias, account in found.accounts.items():
        assert_same_account(accounts[alias], account, f"{place}, side {alias}")
    assert_windows(ran.windows[name], found.windows, place)


def assert_windows(actual: Sequence[Mapping[str, int]], expected: Sequence[Mapping[str, int]], place: str) -> None:
    shown = [{part: window[part] for part in WINDOW} for window in actual]
    for theirs, ours in zip(shown, expected, strict=False):
        assert theirs == ours, f"{place}: window {theirs}, expected {ours}"
    assert len(shown) == len(expected), f"{place}: {len(shown)} windows have an account, expected {len(expected)}"
