"""In how many items windows close, against what the engine cuts."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.logical.resolve.app import resolve_app
from penstock.logical.window import Panes, Window
from penstock.relations.relation import relation_of
from penstock.relations.storage import StoredSource
from penstock.relations.uniting import union_of
from penstock.runtime.merge.items import Due, Part, Reading, Wanting, due_items
from penstock.runtime.merge.rolling.items import rolled_items
from penstock.runtime.settings import TaskSettings
from penstock.sharing.model.closings import merged_closings, rolled_closings, share_of, windows_of

COLUMNS = "abcdefg"
QUERY = "CREATE QUERY {0}{1} AS SELECT {0}, {1}, count(*) AS n FROM s [RANGE '1 s'] GROUP BY {0}, {1};"
APP = resolve_app(
    f"CREATE STREAM s (ts TIMESTAMP, {', '.join(f'{c} INT' for c in COLUMNS)}) FROM 'csv:s' WATERMARK ts DELAY '0 s';"
    + "".join(QUERY.format(one, other) for one in COLUMNS for other in COLUMNS if one < other),
    "test",
    lambda uri, options: (),
)


def due(windows: int, queries: int, rows: int, united: bool) -> Due:
    """So many windows of as many rows."""
    some = APP.queries[:queries]
    relations = [relation_of(query) for query in some]
    kept = union_of(relations) if united else relations[0]
    source = (StoredSource(kept),)
    reading = Reading(some[0].window, source, "s", "ts")
    wanting = tuple(Wanting(query, Part(one, source)) for query, one in zip(some, relations, strict=True))
    return Due(reading, wanting, np.arange(windows), np.full(windows, rows), ())


def closings(items: list[tuple[str, ...]], queries: int) -> float:
    """How often a query closes, on average."""
    return sum(map(len, items)) / queries


@pytest.mark.parametrize("tasks", [1, 2, 3])
@pytest.mark.parametrize("queries", [2, 20])
@pytest.mark.parametrize("rows", [3_000, 40_000])
@pytest.mark.parametrize("windows", [0, 1, 2, 3, 5, 7, 12])
def test_of_roll_ups_as_they_are_cut(windows: int, rows: int, queries: int, tasks: int) -> None:
    settings = TaskSettings()
    one = due(windows, queries, rows, True)
    attributes = len(one.reading.sources[0].relation.attributes)
    found = rolled_items(0, one, settings, tasks, {}) if windows else ()
    expected = closings([item.names for item in found], queries)
    assert rolled_closings(windows, queries, rows, attributes, tasks) == pytest.approx(expected, abs=1)
    if windows % tasks == 0 or windows < tasks:
        assert rolled_closings(windows, queries, rows, attributes, tasks) == expected


@pytest.mark.parametrize("windows", [0, 1, 4, 9])
@pytest.mark.parametrize("rows", [500, 30_000, 70_000])
def test_of_merges_as_they_are_cut(rows: int, windows: int) -> None:
    share = share_of(windows * rows, 2)
    items = list(due_items(0, due(windows, 1, rows, False), share, TaskSettings()))
    whole = {(item.cut.first, item.cut.beyond) for item in items}
    assert merged_closings(windows, rows, share) == len(whole)


def test_between_two_numbers_of_windows() -> None:
    """A batch that closes now one and now two of them."""
    assert rolled_closings(3.25, 20, 400_000.0, 13, 2) == 0.75 * 3 + 0.25 * 2
    assert rolled_closings(0.5, 2, 100.0, 13, 2) == 0.5
    assert merged_closings(0.25, 70_000.0, 50_000.0) == 0.25
    assert merged_closings(2.0, 0.0, 50_000.0) == 1.0


def test_windows_go_by_with_panes() -> None:
    assert windows_of(Window(60, 60), Panes("time", 10), 12.0) == 2.0
    assert windows_of(Window(25, 10), Panes("time", 10, 5), 12.0) == 6.0
