"""What the groups of a task cost behind their leaves: by their columns, and by how many there are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.logical.resolve.app import resolve_app
from penstock.relations.relation import Relation, relation_of
from penstock.sharing.model.partial_groups import Behind, Handed, behind, columns_of
from penstock.sharing.model.unit_costs import USUAL, PerRow

APP = resolve_app(
    """CREATE STREAM s (ts TIMESTAMP, a INT, b INT, c INT, x DOUBLE) FROM 'csv:s' WATERMARK ts DELAY '0 s';
    CREATE QUERY counted AS SELECT a, count(*) AS n FROM s [RANGE '1 s'] GROUP BY a;
    CREATE QUERY summed AS SELECT a, b, count(*) AS n, sum(c) AS c, max(c) AS m FROM s [RANGE '1 s'] GROUP BY a, b;
    CREATE QUERY measured AS SELECT a/2 AS h, avg(x) AS x FROM s [RANGE '1 s'] GROUP BY a/2;""",
    "test",
    lambda uri, options: (),
)
COSTS = replace(USUAL, segment=PerRow(10.0, 2.0), merge=PerRow(20.0, 3.0), block=1000.0)


def kept(query: str) -> Relation:
    return relation_of(APP.query(query))


@pytest.mark.parametrize(("query", "columns"), [("counted", 2), ("summed", 5), ("measured", 4)])
def test_columns_are_keys_count_and_words_of_states(query: str, columns: int) -> None:
    """A sum of doubles takes two words; how many values it has is count(*) where none is NULL."""
    assert columns_of(kept(query)) == columns


def test_each_group_is_written_and_merged_once_a_task() -> None:
    found = behind([Handed(kept("counted"), 500.0), Handed(kept("summed"), 2000.0)], 1000.0, COSTS)
    assert found == Behind(2.5, 0.5 * 14.0 + 2.0 * 20.0 + 2.0, 0.5 * 26.0 + 2.0 * 35.0)
    assert found.cost == found.segment + found.merge
    assert found.cost == pytest.approx(0.5 * COSTS.partial(2) + 2.0 * COSTS.partial(5) + 2.0 * COSTS.block / 1000.0)


def test_nothing_stored_costs_nothing() -> None:
    assert behind([], 1000.0, COSTS).cost == 0.0
