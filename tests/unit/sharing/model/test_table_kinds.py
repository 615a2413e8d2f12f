"""Kinds of tables: names, copies, and what each must come with."""

from __future__ import annotations

import pickle

import pytest

from penstock.errors import ConfigError
from penstock.runtime.tables.residents.registry import RESIDENTS
from penstock.sharing.model.kinds.direct import DIRECT, EVICT, KEEP, KEEP_BELOW
from penstock.sharing.model.kinds.kind import TableKind
from penstock.sharing.model.kinds.lru import LRU, RECENT
from penstock.sharing.model.kinds.registry import (
    EXACT,
    KINDS,
    is_bounded,
    kind_named,
    kind_replacing,
    replacement_named,
)
from penstock.sharing.model.unit_costs import USUAL
from penstock.sharing.options import AUTO, TABLES


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_is_found_by_its_names(kind: TableKind) -> None:
    assert kind_named(kind.name) is kind
    for one in kind.replacements:
        assert kind_replacing(one.name) is kind
        assert replacement_named(one.name) == one
    assert {kind.replacement(length) for length in (0.5, 1.0, 5.0, 100.0)} <= {one.name for one in kind.replacements}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_copies_are_equal_by_name(kind: TableKind) -> None:
    copied = pickle.loads(pickle.dumps(kind))
    assert copied == kind
    assert {copied: 1}[kind] == 1
    assert [one for one in KINDS if one == copied] == [kind]
    assert copied.probe(USUAL, 1e6) == kind.probe(USUAL, 1e6)


def test_names_are_those_of_the_options_and_all_different() -> None:
    assert TABLES == (AUTO, "direct", "lru")
    names = [one.name for kind in KINDS for one in kind.replacements]
    assert names == ["evict", "keep", "lru"]
    assert len(set(names)) == len(names)


def test_every_kind_can_be_run() -> None:
    assert RESIDENTS.keys() == {kind.name for kind in KINDS}


def test_leaves_have_no_bound() -> None:
    assert is_bounded(DIRECT.name)
    assert not is_bounded(EXACT)


def test_short_flows_keep_the_more_frequent() -> None:
    assert DIRECT.replacement(KEEP_BELOW) == EVICT
    assert DIRECT.replacement(0.99 * KEEP_BELOW) == KEEP
    assert LRU.replacement(1.0) == LRU.replacement(50.0) == RECENT


def test_a_table_that_fills_touches_and_flushes_what_its_groups_need() -> None:
    assert (LRU.touched(1000.0, 300.0), DIRECT.touched(1000.0, 300.0)) == (300.0, 1000.0)
    assert (LRU.flushed(50.0, 20.0, 7.0), LRU.flushed(10.0, 20.0, 7.0), DIRECT.flushed(50.0, 20.0, 7.0)) == (20, 10, 7)


def test_unknown_names_are_told() -> None:
    with pytest.raises(ConfigError, match="no kind of table is named 'heap'"):
        kind_named("heap")
    with pytest.raises(ConfigError, match="no replacement is named 'random'"):
        kind_replacing("random")
