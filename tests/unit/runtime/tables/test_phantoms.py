"""The tuple-at-a-time LFTA by hand-made cases: what is passed on, in which order, and how often is probed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from support.phantoms import FREQUENT, STREAM, Phantoms, Relation
from support.reference import Entry, merge_entries, run_direct_table


def at(*places: int) -> Any:
    """The key of a relation: these places of what feeds it."""
    return lambda key: tuple(key[place] for place in places)


def ones(rows: Sequence[Any]) -> list[tuple[Any, tuple[int, ...]]]:
    return [(row, (1,)) for row in rows]


def entries(*pairs: tuple[Any, int]) -> list[Entry]:
    return [Entry(key, (count,)) for key, count in pairs]


def test_an_eviction_falls_through_two_levels() -> None:
    """ABC(AB(A B) C), all with one bucket: the third tuple pushes the first two out of ABC, the fourth out of AB."""
    relations = [
        Relation("ABC", STREAM, at(0, 1, 2), 1, query=False),
        Relation("AB", 0, at(0, 1), 1, query=False),
        Relation("C", 0, at(2), 1, query=True),
        Relation("A", 1, at(0), 1, query=True),
        Relation("B", 1, at(1), 1, query=True),
    ]
    lfta = Phantoms(relations, lambda number, key: 0, ("add",))
    lfta.run(ones([(1, 1, 1), (1, 1, 1), (1, 1, 2), (2, 1, 2), (3, 1, 3)]))
    abc, ab, c, a, b = lfta.tables
    assert abc.passed == entries(((1, 1, 1), 2), ((1, 1, 2), 1), ((2, 1, 2), 1))
    assert ab.passed == entries(((1, 1), 3))
    assert c.passed == entries(((1,), 2))
    assert a.passed == b.passed == []
    assert [table.counts.probes for table in lfta.tables] == [5, 3, 3, 1, 1]
    assert [table.counts.evictions for table in lfta.tables] == [3, 1, 1, 0, 0]
    lfta.flush()
    # ABC gives (3, 1, 3) to AB, which passes on (2, 1) for it; AB then gives (3, 1); B has the same group all along.
    assert lfta.output("A") == entries(((1,), 3), ((2,), 1), ((3,), 1))
    assert lfta.output("B") == entries(((1,), 5))
    assert lfta.output("C") == entries(((1,), 2), ((2,), 2), ((3,), 1))
    assert [table.counts.flush_probes for table in lfta.tables] == [0, 1, 1, 2, 2]
    assert [table.counts.flush_evictions for table in lfta.tables] == [0, 1, 1, 2, 0]
    assert [table.counts.flushed for table in lfta.tables] == [1, 1, 1, 1, 1]
    assert all(not table.residents for table in lfta.tables)


def test_tables_are_emptied_by_bucket() -> None:
    lfta = Phantoms([Relation("A", STREAM, at(0), 4, query=True)], lambda number, key: 3 - key[0], ("add",))
    lfta.run(ones([(0,), (2,), (1,), (3,)]))
    lfta.flush()
    assert [entry.key for entry in lfta.output("A")] == [(3,), (2,), (1,), (0,)]


def test_a_query_that_feeds_a_query_sends_everything_twice() -> None:
    relations = [Relation("AB", STREAM, at(0, 1), 1, query=True), Relation("A", 0, at(0), 1, query=True)]
    lfta = Phantoms(relations, lambda number, key: 0, ("add", "max"))
    lfta.run([((1, 1), (1, 5)), ((1, 2), (1, 9)), ((1, 2), (1, 7))])
    lfta.flush()
    assert lfta.output("AB") == [Entry((1, 1), (1, 5)), Entry((1, 2), (2, 9))]
    assert lfta.output("A") == [Entry((1,), (3, 9))]


def test_without_buckets_all_is_passed_on_unprobed() -> None:
    relations = [Relation("AB", STREAM, at(0, 1), 0, query=False), Relation("A", 0, at(0), 1, query=True)]
    lfta = Phantoms(relations, lambda number, key: 0, ("add",))
    lfta.run(ones([(1, 1), (1, 1), (1, 2)]))
    lfta.flush()
    assert [table.counts.probes for table in lfta.tables] == [0, 3]
    assert lfta.output("A") == entries(((1,), 3))


def test_the_more_frequent_stays() -> None:
    """Credit of `a` after each tuple: 1, 2, 1 (b passed on), 2, 1 (b passed on), then b again replaces it, with 1."""
    relation = Relation("A", STREAM, at(0), 1, query=True, policy=FREQUENT)
    lfta = Phantoms([relation], lambda number, key: 0, ("add",))
    lfta.run(ones(["a", "a", "b", "a", "b", "b", "c"]))
    assert lfta.tables[0].passed == entries((("b",), 1), (("b",), 1), (("a",), 3), (("b",), 1))
    assert lfta.tables[0].residents[0].entry == Entry(("c",), (1,))
    assert lfta.tables[0].counts.probes == 7


def test_only_what_is_due_is_emptied() -> None:
    """AB(A B) with epochs of 2 and 3: at 2 AB and A are emptied, B keeps what AB gave it."""
    relations = [
        Relation("AB", STREAM, at(0, 1), 2, query=False),
        Relation("A", 0, at(0), 2, query=True),
        Relation("B", 0, at(1), 2, query=True),
    ]
    lfta = Phantoms(relations, lambda number, key: key[0] % 2, ("add",))
    lfta.run(ones([(1, 1), (2, 1)]))
    lfta.flush(["A"])
    assert lfta.output("A") == entries(((2,), 1), ((1,), 1))
    assert lfta.output("B") == []
    lfta.run(ones([(1, 1)]))
    lfta.flush(["B"])
    assert lfta.output("B") == entries(((1,), 3))
    assert len(lfta.output("A")) == 2
    lfta.flush(["A"])
    assert lfta.output("A")[2:] == entries(((1,), 1))


@pytest.mark.parametrize("policy", ["newest", "frequent"])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_lost_and_probes_follow_from_evictions(policy: str, seed: int) -> None:
    dice = random.Random(seed)
    relations = [
        Relation("ABC", STREAM, at(0, 1, 2), dice.randrange(9), False, policy),
        Relation("AB", 0, at(0, 1), dice.randrange(1, 9), True, policy),
        Relation("A", 1, at(0), dice.randrange(4), True, policy),
        Relation("C", STREAM, at(2), dice.randrange(1, 4), True, policy),
    ]
    lfta = Phantoms(relations, lambda number, key: hash((number, key)) % relations[number].buckets, ("add", "min"))
    rows = [(dice.randrange(4), dice.randrange(4), dice.randrange(4)) for _ in range(500)]
    lfta.run([(row, (1, number)) for number, row in enumerate(rows)])
    lfta.flush()
    for name, places in (("AB", (0, 1)), ("A", (0,)), ("C", (2,))):
        wanted = merge_entries([Entry(at(*places)(row), (1, n)) for n, row in enumerate(rows)], ("add", "min"))
        assert merge_entries(lfta.output(name), ("add", "min")) == wanted
    for table in lfta.tables:
        fed = lfta.tables[table.relation.parent].counts.passed() if table.relation.parent >= 0 else len(rows)
        if table.relation.buckets:
            assert table.counts.probes + table.counts.flush_probes == fed
        assert len(table.passed) == table.counts.passed()


def test_one_table_is_the_reference_table() -> None:
    dice = random.Random(1)
    keys = [dice.randrange(20) for _ in range(300)]
    lfta = Phantoms([Relation("A", STREAM, lambda key: key, 7, query=True)], lambda number, key: key % 7, ("add",))
    lfta.run(ones(keys))
    trace = run_direct_table([Entry(key, (1,)) for key in keys], [key % 7 for key in keys], ("add",))
    assert tuple(lfta.tables[0].passed) == trace.evictions
    lfta.flush()
    assert tuple(lfta.output("A")) == trace.flushed
    assert sum(Counter(keys).values()) == sum(entry.partials[0] for entry in lfta.output("A"))


def test_parents_stand_before_children() -> None:
    with pytest.raises(ValueError, match="A stands before what feeds it"):
        Phantoms([Relation("A", 1, at(0), 1, query=True)], lambda number, key: 0, ("add",))
