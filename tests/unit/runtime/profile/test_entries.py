"""What a record costs in tables and leaves: measured on records that find their groups. No time is asserted."""

from __future__ import annotations

from itertools import pairwise
from math import isfinite

import numpy as np
import pytest

from penstock.relations.relation import relation_of
from penstock.runtime.profile import entries
from penstock.runtime.profile.trials import asked, resolved
from penstock.sharing.model.kinds.direct import EVICT
from penstock.sharing.model.kinds.lru import RECENT
from penstock.sharing.model.unit_costs import USUAL, Costs

USUAL_QUERY, WIDE = map(relation_of, resolved([asked("usual", "abcd", "e"), asked("wide", "abcdefg", "e")]))


def test_keys_have_as_many_words_as_they_should() -> None:
    assert (entries.words_of(USUAL_QUERY), entries.words_of(WIDE)) == (2, 4)


def test_each_group_is_there_before_it_is_measured() -> None:
    keys = entries._Keys(USUAL_QUERY)
    full = entries._filled(keys, 1000)
    assert full.count == 1000
    (records,) = keys.random(1000, 1)
    assert full.absorb(full.arrivals(records, keys.rows))
    assert full.count == 1000
    assert len(np.unique(records.words, axis=1).T) == 1000


@pytest.mark.parametrize(("policy", "evicted"), [(EVICT, False), (RECENT, False), (EVICT, True)])
def test_tables_find_groups_or_evict_them(policy: str, evicted: bool) -> None:
    keys, buckets = entries._Keys(USUAL_QUERY), 1024
    table = keys.table(buckets, policy)
    groups = entries.HIGHEST if evicted else buckets // entries.QUARTER if policy == EVICT else buckets
    for records in keys.all(min(groups, buckets)):
        entries._taken(table, records, keys.rows)
    before = table.evictions
    (records,) = keys.random(groups, 1)
    gone = len(entries._taken(table, records, keys.rows))
    assert gone == table.evictions - before
    assert (gone > entries.RECORDS * 0.9) == evicted
    assert evicted or gone < entries.RECORDS * 0.3


def test_no_cost_is_nothing() -> None:
    costs = [
        entries.inserted(USUAL_QUERY, 100), entries.inserted(USUAL_QUERY, 100, 3),
        entries.probed(USUAL_QUERY, 1024, RECENT, 10.0), entries.passed(USUAL_QUERY),
    ]  # fmt: skip
    assert all(isfinite(one) and one > 0 for one in costs)


def test_larger_tables_are_never_cheaper() -> None:
    found = entries.rising([(1.0, 5.0), (2.0, 4.0), (3.0, 9.0)])
    assert found == ((1.0, 5.0), (2.0, 5.0), (3.0, 9.0))


def test_a_leaf_by_itself_costs_what_its_own_size_does() -> None:
    """And leaves that take turns at least what all of them together do."""
    costs = Costs(((1.0, 1.0),), ((1.0, 1.0),), ((1e4, 5.0), (1e8, 30.0)), 1.0, 1.0, 1.0, ((1e4, 8.0), (1e6, 16.0)))
    assert costs.insert_at(1e4) == 5.0
    assert (costs.insert_at(1e4, 1e4), costs.insert_at(1e8, 1e4), costs.insert_at(1e6, 1e6)) == (8.0, 30.0, 17.5)
    each = [USUAL.insert_at(size, size) for size in (1e4, 1e5, 1e6, 1e7, 1e8)]
    assert all(less <= more for less, more in pairwise(each))
