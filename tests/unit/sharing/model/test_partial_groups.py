"""What the groups of a task cost behind their leaves: by their columns, and by how many there are."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from penstock.logical.resolve.app import resolve_app
from penstock.relations.relation import APPEND, Relation, relation_of
from penstock.relations.storing import stored
from penstock.relations.uniting import Union, united
from penstock.sharing.model.closings import rolled_bytes
from penstock.sharing.model.partial_groups import Behind, Handed, Made, Pace, addresses_of, behind, columns_of, handed
from penstock.sharing.model.unit_costs import USUAL, PerRow

APP = resolve_app(
    """CREATE STREAM s (ts TIMESTAMP, a INT, b INT, c INT, x DOUBLE) FROM 'csv:s' WATERMARK ts DELAY '0 s';
    CREATE QUERY counted AS SELECT a, count(*) AS n FROM s [RANGE '1 s'] GROUP BY a;
    CREATE QUERY summed AS SELECT a, b, count(*) AS n, sum(c) AS c, max(c) AS m FROM s [RANGE '1 s'] GROUP BY a, b;
    CREATE QUERY measured AS SELECT a/2 AS h, avg(x) AS x FROM s [RANGE '1 s'] GROUP BY a/2;""",
    "test",
    lambda uri, options: (),
)
COSTS = replace(
    USUAL, segment=PerRow(10.0, 2.0), merge=PerRow(20.0, 3.0), overlapping=PerRow(40.0, 5.0), block=1000.0,
    rolled=PerRow(4.0, 7.0), grouped=1.5, merging=500.0, read=500.0, coding=40.0, finish=0.5, shown=11.0, close=300.0,
    spelled=20.0, ordered=9.0, touched=0.25, fresh=6.0,
)  # fmt: skip


def kept(query: str) -> Relation:
    return relation_of(APP.query(query))


@pytest.mark.parametrize(("query", "columns"), [("counted", 2), ("summed", 5), ("measured", 4)])
def test_columns_are_keys_count_and_words_of_states(query: str, columns: int) -> None:
    """A sum of doubles takes two words; how many values it has is count(*) where none is NULL."""
    assert columns_of(kept(query)) == columns


def test_each_group_is_made_written_and_merged_once_a_task() -> None:
    found = behind([Handed(kept("counted"), 500.0), Handed(kept("summed"), 2000.0)], 1000.0, COSTS)
    merge = 0.5 * 26.0 + 2.0 * 35.0 + 2.0 * 0.5
    assert found == Behind(2.5, 0.5 * 14.0 + 2.0 * 20.0 + 2.0, merge, fresh=2.5 * 6.0)
    assert found.cost == found.fresh + found.segment + found.merge
    assert found.cost == pytest.approx(0.5 * COSTS.partial(2) + 2.0 * COSTS.partial(5) + 2.0 + 1.0 + 15.0)


def test_rows_that_are_appended_make_no_groups() -> None:
    assert behind([Handed(replace(kept("counted"), table=APPEND), 500.0)], 1000.0, COSTS).fresh == 0.0


def test_where_windows_close_but_once_an_item_costs_nothing() -> None:
    """At the end of a stream, which nobody knows."""
    kept_by_rule = stored(APP, "s")
    endless = handed(kept_by_rule, lambda relation: 500.0, 1000.0, Pace(2, lambda one: 3.0, inf, inf))
    assert all(one.merges == one.touched == 0.0 and one.made[0].items == 0.0 for one in endless)
    # A tenth of it in each batch of two tasks.
    found = list(handed(kept_by_rule, lambda relation: 500.0, 1000.0, Pace(2, lambda one: 3.0, 10.0, 10.0)))
    assert all(one.merges == one.made[0].items == pytest.approx(1 / 20) for one in found)
    counted = next(one for one in found if one.relation.attributes == kept("counted").attributes)
    assert counted.touched == 500.0 * rolled_bytes(counted.relation)


def test_windows_that_overlap_are_merged_row_by_row() -> None:
    """Each row for each window that holds it, and each of those has a result."""
    text = """CREATE STREAM t (ts TIMESTAMP, a INT) FROM 'csv:s' WATERMARK ts DELAY '0 s';
    CREATE QUERY q AS SELECT a, count(*) AS n FROM t [RANGE '6 s' SLIDE '2 s'] GROUP BY a ORDER BY n LIMIT 3;"""
    whole = stored(resolve_app(text, "test", lambda uri, options: ()), "t")
    (one,) = handed(whole, lambda relation: 100.0, 1000.0)
    assert (one.merged, one.merges, one.made[0].items) == (3.0, 1.0, 1.0)
    found = behind([one], 1000.0, COSTS)
    assert found.merge == pytest.approx((3 * 100.0 * 50.0 + 500.0) / 1000.0)
    assert found.finish == pytest.approx((3 * 100.0 * (2 * 0.5 + 9.0) + 300.0) / 1000.0)


def test_memory_that_is_new_is_touched_once() -> None:
    merged, rolled = (Handed(kept("counted"), 100.0, (), times, touched=4000.0) for times in (1.0, 0.0))
    assert behind([merged], 1000.0, COSTS).merge == pytest.approx((100.0 * 26.0 + 500.0 + 1000.0) / 1000.0)
    assert behind([rolled], 1000.0, COSTS).roll == pytest.approx(1.0)


def test_each_row_is_rolled_up_once_for_each_query_and_coded_once_for_each_attribute() -> None:
    summed, counted = kept("summed"), kept("counted")
    made = (Made(summed, 300.0, True), Made(summed, 200.0, True))
    found = behind([Handed(summed, 900.0, made, False)], 1000.0, COSTS)
    # The second one is made of the groups of the first, which are fewer: their attributes are coded again.
    first, second = 900.0 * (4.0 + 2 * 7.0), 300.0 * (4.0 + 2 * 7.0)
    groups = 500.0 * 5 * 1.5
    assert found.merge == 0.0
    assert found.roll == pytest.approx((first + second + groups + 2 * 500.0 + 4 * 40.0) / 1000.0)
    assert found.finish == pytest.approx((500.0 * 5 * 0.5 + 2 * 300.0) / 1000.0)
    # What cannot be made of other groups is made of the rows, with codes that are there.
    others = (Made(counted, 30.0, True), Made(kept("measured"), 20.0, True))
    found = behind([Handed(summed, 900.0, others, False)], 1000.0, COSTS)
    each = 2 * 500.0 + 2 * 40.0
    assert found.roll == pytest.approx((900.0 * (2 * 4.0 + 2 * 7.0) + (60.0 + 80.0) * 1.5 + each) / 1000.0)


def test_of_as_many_rows_those_made_last_are_taken() -> None:
    """Groups of tasks are merged on the way, and become fewer."""
    summed = kept("summed")
    made = (Made(summed, 900.0, True), Made(summed, 900.0, True))
    found = behind([Handed(summed, 900.0, made, 0.0)], 1000.0, COSTS)
    # The second from the first one's groups, whose attributes are coded again.
    rows, columns = 900.0 * (2 * 4.0 + 4 * 7.0), 900.0 * 2 * columns_of(summed) * 1.5
    assert found.roll == pytest.approx((rows + columns + 2 * 500.0 + 4 * 40.0) / 1000.0)


def test_filters_keep_how_many_values_there_were() -> None:
    text = """CREATE STREAM t (ts TIMESTAMP, a INT, b INT) FROM 'csv:s' WATERMARK ts DELAY '0 s';
    CREATE QUERY q AS SELECT a, count(*) AS n, count(*) FILTER (WHERE b > 3) AS some,
      sum(CASE WHEN b > 4 THEN b ELSE 0 END) AS most FROM t [RANGE '1 s'] GROUP BY a;"""
    relation = relation_of(resolve_app(text, "test", lambda uri, options: ()).query("q"))
    assert len(relation.lacking) == 1
    assert columns_of(relation) == 1 + 1 + 1 + 1


def test_addresses_are_shown() -> None:
    text = """CREATE STREAM t (ts TIMESTAMP, src INET, b INT) FROM 'csv:s' WATERMARK ts DELAY '0 s';
    CREATE QUERY nets AS SELECT src/16 AS net, b, count(*) AS n FROM t [RANGE '1 s'] GROUP BY src/16, b;"""
    relation = relation_of(resolve_app(text, "test", lambda uri, options: ()).query("nets"))
    assert addresses_of(relation) == 1
    found = behind([Handed(relation, 100.0, (Made(relation, 100.0),))], 100.0, COSTS)
    assert found.finish == pytest.approx(3 * 0.5 + 11.0 + (300.0 + 20.0) / 100.0)


@pytest.mark.parametrize("table", ["exact", APPEND])
def test_of_a_union_all_queries_are_rolled_up(table: str) -> None:
    whole = stored(APP, "s")
    union = united(whole, [Union(tuple(one.name for one in whole.relations), table)])
    groups = {kept(name).attributes: count for name, count in (("counted", 50.0), ("summed", 400.0))}
    (one,) = handed(union, lambda relation: groups.get(relation.attributes, 700.0), 1000.0)
    assert (one.merged, one.groups) == (False, 1000.0 if table == APPEND else 700.0)
    assert [(made.groups, made.rolled) for made in one.made] == [(50.0, True), (400.0, True), (700.0, True)]
    alone = list(handed(whole, lambda relation: 10.0, 1000.0))
    assert all(one.merged and [made.rolled for made in one.made] == [False] for one in alone)


def test_nothing_stored_costs_nothing() -> None:
    assert behind([], 1000.0, COSTS).cost == 0.0
