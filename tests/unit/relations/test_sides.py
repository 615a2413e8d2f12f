"""Sides of joins, each early or late: what is stored of them, alone and beside others that need the same."""

from __future__ import annotations

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.relations.closing import Finish, RollUp
from penstock.relations.relation import APPEND, EXACT
from penstock.relations.sides import ALL_EARLY, SideTables
from penstock.relations.storage import first_storage, next_storages, side_table, sources
from penstock.relations.storing import Stored, stored

STREAMS = """
CREATE STREAM s (ts TIMESTAMP, k INT, g INT, v BIGINT) FROM 'csv:s' WATERMARK ts DELAY '1 s';
CREATE STREAM t (ts TIMESTAMP, k INT, h INT) FROM 'csv:t' WATERMARK ts DELAY '1 s';
"""
JOIN = """
CREATE QUERY j AS SELECT A.g, B.h, sum(A.v) AS n FROM s A [RANGE '1 minute'], t B [RANGE '1 minute']
WHERE A.k = B.k GROUP BY A.g, B.h;
"""
LATE_A = SideTables(frozenset({"j:A"}))


def app(*queries: str) -> QuerySet:
    return resolve_app(STREAMS + JOIN + "".join(queries), "app.sql", lambda uri, options: ())


def tables(found: Stored) -> list[str]:
    return [relation.table for relation in found.relations]


def test_each_side_is_stored_as_it_is_asked_to_be() -> None:
    assert tables(stored(app(), "s", None, LATE_A)) == [APPEND]
    assert tables(stored(app(), "t", None, LATE_A)) == [EXACT]
    assert tables(stored(app(), "s", None, ALL_EARLY)) == [EXACT]


def test_a_side_is_early_where_its_groups_are_stored_for_another_query() -> None:
    plain = "CREATE QUERY q AS SELECT k, g, sum(v) AS n FROM s [RANGE '1 minute'] GROUP BY k, g;"
    (one,) = stored(app(plain), "s", None, LATE_A).relations
    assert one.table == EXACT
    finer = "CREATE QUERY q AS SELECT k, g, v, sum(v) AS n FROM s [RANGE '1 minute'] GROUP BY k, g, v;"
    found = stored(app(finer), "s", None, LATE_A)
    assert tables(found) == [EXACT]
    assert [type(reader.closing) for reader in found.readers] == [Finish, RollUp]


def test_groups_are_not_made_of_a_late_side() -> None:
    addresses = STREAMS.replace("k INT", "k INET") + JOIN.replace("A.g, ", "")
    coarser = "CREATE QUERY q AS SELECT k/24, sum(v) AS n FROM s [RANGE '1 minute'] GROUP BY k/24;"
    made = resolve_app(addresses + coarser, "app.sql", lambda uri, options: ())
    assert tables(stored(made, "s", None, ALL_EARLY)) == [EXACT]  # rolled up from the side
    found = stored(made, "s", None, LATE_A)
    assert sorted(tables(found)) == [APPEND, EXACT]
    read = {reader.query: found.of[reader.closing.relation].table for reader in found.readers}
    assert read == {"q": EXACT, "j:A": APPEND}


def test_of_two_joins_with_the_same_side_an_early_one_serves_both() -> None:
    other = JOIN.replace("QUERY j", "QUERY i")
    found = stored(app(other), "s", None, LATE_A)
    assert tables(found) == [EXACT]
    assert {reader.closing.relation for reader in found.readers} == {found.relations[0].name}


def test_the_last_records_are_never_aggregated_before() -> None:
    rows = JOIN.replace("t B [RANGE '1 minute']", "t B [ROWS 5]").replace("B.h;", "B.h EVERY 1 MINUTE;")
    found = resolve_app(STREAMS + rows, "app.sql", lambda uri, options: ())
    assert tables(stored(found, "t", None, ALL_EARLY)) == [APPEND]


def test_a_side_reads_what_each_version_has_stored_of_it() -> None:
    made = app()
    side = made.query("j").join.sides[0]  # type: ignore[union-attr]
    plans = [[stored(made, name, None, sides) for name in "st"] for sides in (ALL_EARLY, LATE_A, ALL_EARLY)]
    storages = (first_storage(plans[0]),)
    for number in (1, 2):
        storages = next_storages(storages, plans[number], number, {0, 1})
    assert [side_table(one, "j", side) for one in storages] == [EXACT, APPEND, EXACT]
    read = {source.relation.table: source.storages for source in sources(storages, "j:A")}
    assert read == {EXACT: {0, 2}, APPEND: {1}}
    assert [source.storages for source in sources(storages, "j:B")] == [{0, 1, 2}]
