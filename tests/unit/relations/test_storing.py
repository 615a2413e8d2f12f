"""What is stored by rule: queries of equal grain once, coarser ones rolled up, everything else by itself."""

from __future__ import annotations

import pytest

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.relations.closing import Finish, RollUp, rolls_up
from penstock.relations.relation import relation_of
from penstock.relations.storage import Storage, first_storage, mixable, next_storages, sources
from penstock.relations.storing import Stored, stored

STREAM = "CREATE STREAM s (ts TIMESTAMP, src INET, dst INET, port INT, v BIGINT) FROM 'csv:x' WATERMARK ts DELAY '1 s';"
MINUTE = "[RANGE '1 minute']"


def app(*queries: str) -> QuerySet:
    text = STREAM + " ".join(f"CREATE QUERY q{i} AS SELECT {query};" for i, query in enumerate(queries))
    return resolve_app(text, "app.sql", lambda uri, options: ())


def kept(*queries: str) -> Stored:
    return stored(app(*queries), "s")


def closings(found: Stored) -> list[str]:
    """For each query whether it is finished or rolled up, and the number of the relation."""
    numbers = {relation.name: number for number, relation in enumerate(found.relations)}
    return [
        f"{'finish' if isinstance(reader.closing, Finish) else 'roll up'} {numbers[reader.closing.relation]}"
        for reader in found.readers
    ]


def test_queries_of_equal_grain_are_stored_once_with_all_that_any_keeps() -> None:
    found = kept(
        f"src, port, sum(v) AS t FROM s {MINUTE} GROUP BY src, port",
        f"port, src, max(v) AS m FROM s {MINUTE} GROUP BY port, src HAVING max(v) > 3",
    )
    (one,) = found.relations
    assert [(state.kind, state.column) for state in one.states] == [("count", "v"), ("max", "v"), ("sum", "v")]
    assert closings(found) == ["finish 0", "finish 0"]
    assert found.labels == {one.name: "q0+q1"}


@pytest.mark.parametrize(
    "other",
    [
        f"src, count(*) AS n FROM s {MINUTE} WHERE port > 3 GROUP BY src",  # other records
        f"src, sum(v) AS n FROM s {MINUTE} GROUP BY src",  # v may be malformed
        "src, count(*) AS n FROM s [RANGE '2 minutes'] GROUP BY src",  # other panes
        "src, count(*) AS n FROM s [WINDOW UNTIL NOW] GROUP BY src EVERY 1 MINUTE",  # begins with the stream
        "src, count(*) AS n FROM s [ROWS 60] GROUP BY src",
        f"dst, count(*) AS n FROM s {MINUTE} GROUP BY dst",
        f"src, dst, count(*) AS n FROM s {MINUTE} GROUP BY src, dst",
    ],
)
def test_queries_that_differ_in_what_they_take_are_stored_apart(other: str) -> None:
    found = kept(f"src, count(*) AS n FROM s {MINUTE} GROUP BY src", other)
    assert closings(found)[:2] == ["finish 0", "finish 1"]


def test_windows_of_the_same_panes_share_what_is_stored() -> None:
    found = kept(
        "src, count(*) AS n FROM s [RANGE '1 minute' SLIDE '10 seconds'] GROUP BY src",
        "src, count(*) AS n FROM s [RANGE '10 seconds'] GROUP BY src",
    )
    assert closings(found) == ["finish 0", "finish 0"]
    assert found.reach == {found.relations[0].name: 6}


def test_prefixes_are_rolled_up_from_the_address() -> None:
    lengths = (8, 16, 24, 32)
    grouped = [f"src/{n} AS net, count(*) AS n FROM s {MINUTE} GROUP BY src/{n}" for n in lengths]
    found = kept(*grouped, f"src, count(*) AS n FROM s {MINUTE} GROUP BY src")
    assert closings(found) == [*["roll up 0"] * 4, "finish 0"]
    assert closings(kept(*grouped)) == [*["roll up 0"] * 3, "finish 0"]  # from the longest
    rolled = found.readers[0].closing
    assert isinstance(rolled, RollUp)
    assert rolled.to == relation_of(app(grouped[0]).queries[0])


def test_of_two_that_can_be_made_of_each_other_one_is_stored() -> None:
    whole, both = (
        "src, count(*) AS n FROM s {w} GROUP BY src",
        "src, src/8 AS p, count(*) AS n FROM s {w} GROUP BY src, p",
    )
    for queries in ((whole, both), (both, whole)):
        found = kept(*(query.format(w=MINUTE) for query in queries))
        assert closings(found) == ["finish 0", "roll up 0"]


def test_what_is_kept_must_be_there() -> None:
    found = kept(
        f"src, sum(v) AS t FROM s {MINUTE} GROUP BY src", f"src/8 AS net, max(v) AS m FROM s {MINUTE} GROUP BY src/8"
    )
    assert closings(found) == ["finish 0", "finish 1"]


def test_a_longer_prefix_tells_a_shorter_one_and_not_the_address() -> None:
    made = app(
        *(f"{key} AS k, count(*) AS n FROM s {MINUTE} GROUP BY {key}" for key in ("src", "src/24", "src/8", "dst/8"))
    )
    src, long, short, other = (relation_of(query) for query in made.queries)
    assert rolls_up(src, long)
    assert rolls_up(long, short)
    assert not rolls_up(short, long)
    assert not rolls_up(long, src)
    assert not rolls_up(src, other)


def test_names_are_of_the_content() -> None:
    one, same = (
        relation_of(app(f"{k}, count(*) FROM s {MINUTE} GROUP BY {k}").queries[0]) for k in ("src, port", "port, src")
    )
    assert one == same
    other = relation_of(app(f"src, port, count(*) FROM s {MINUTE} WHERE port > 1 GROUP BY src, port").queries[0])
    assert other.name != one.name
    assert relation_of(app(f"src, port, count(*) FROM s {MINUTE} GROUP BY src, port").queries[0], since=3) == one
    landmark = app("src, count(*) FROM s [WINDOW UNTIL NOW] GROUP BY src EVERY 1 MINUTE").queries[0]
    assert relation_of(landmark, 0).name != relation_of(landmark, 3).name


def test_windows_of_rows_have_the_times_of_their_panes_besides() -> None:
    found = kept(*(f"{key}, count(*) AS n FROM s [ROWS 10 SLIDE 4] GROUP BY {key}" for key in ("src", "dst")))
    assert [relation.booked for relation in found.relations] == [True, True, False]
    assert found.labels[found.relations[2].name] == "#pane:rows:4:2"
    assert set(found.reach.values()) == {5}


# -- storages


def storage(number: int, *queries: str, names: tuple[str, ...] = ()) -> Storage:
    made = first_storage([kept(*queries)], number)
    renamed = dict(zip(made.reads, names or made.reads, strict=True))
    return Storage(number, made.relations, {renamed[query]: relation for query, relation in made.reads.items()})


SRC, NET = (f"{key} AS k, count(*) AS n FROM s {MINUTE} GROUP BY {key}" for key in ("src", "src/8"))


def test_a_query_reads_what_the_version_that_wrote_says() -> None:
    before, after = storage(0, NET), storage(1, NET, SRC)
    found = sources([before, after], "q0")
    assert [source.storages for source in found] == [{0}, {1}]
    assert [len(source.relation.attributes) for source in found] == [1, 1]
    assert found[0].relation != found[1].relation
    assert sources([before, after], "q1") == sources([after], "q1")
    assert mixable(before, after)  # neither has what the other reads


def test_segments_in_which_a_query_must_not_read_a_relation_stay_apart() -> None:
    shared, own = storage(0, NET, SRC), storage(1, NET)
    both = Storage(2, (*shared.relations, *own.relations), {"q0": own.reads["q0"], "q1": shared.reads["q1"]})
    assert not mixable(shared, both)  # of the second q0 must not read what q1 does
    assert mixable(shared, own)


def test_versions_that_store_the_same_have_one_storage() -> None:
    first = storage(0, NET)
    assert next_storages([first], [kept(NET)], 1, ()) == (first,)
    later = next_storages([first], [kept(NET, SRC)], 2, ())
    assert [one.number for one in later] == [0, 2]
    assert [one.number for one in next_storages(later, [kept(SRC)], 5, {2})] == [2, 5]
    assert [one.number for one in next_storages(later, [kept(SRC)], 5, {0})] == [0, 2, 5]


def test_what_is_stored_is_found_once_for_an_app() -> None:
    """Only for this very one, and for the versions that brought its queries."""
    landmark = "src, count(*) AS n FROM s [WINDOW UNTIL NOW] GROUP BY src EVERY 1 MINUTE"
    mine, same = app(landmark), app(landmark)
    found = stored(mine, "s")
    assert stored(mine, "s", {"q0": 0}) is found
    assert stored(same, "s") == found
    assert stored(same, "s") is not found
    assert stored(mine, "s", {"q0": 1}) != found
    for number in range(10):
        assert stored(app(landmark, f"port, count(*) AS n FROM s [ROWS {number + 1}] GROUP BY port"), "s") != found
    assert stored(mine, "s") == found
