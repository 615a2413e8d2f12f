"""Grains of queries: which can feed which, through prefixes, panes that nest, and choices of tuples."""

from __future__ import annotations

import itertools

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.sharing.graph.grain import Grain, feeds, fineness, union
from penstock.sharing.graph.lattice import EVERY, Lattice, choosers, lattice, name_of
from support.alone import alone, names

STREAM = "CREATE STREAM s (ts TIMESTAMP, src INET, dst INET, port INT, v INT) FROM 'parquet:nowhere';"
MINUTE = "[RANGE '60 seconds' SLIDE '60 seconds']"


def app(*queries: tuple[str, str, str]) -> QuerySet:
    """Queries by keys, window and WHERE."""
    texts = [
        f"CREATE QUERY q{i} AS SELECT {keys}, count(*) AS n FROM s {window} {where} GROUP BY {keys};"
        for i, (keys, window, where) in enumerate(queries)
    ]
    return resolve_app("\n".join([STREAM, *texts]), "app.sql", None)


def grains(*queries: tuple[str, str, str]) -> tuple[Lattice, list[Grain]]:
    made = app(*queries)
    net, of = lattice(alone(made, "s").relations), names(made, "s")
    return net, [net.grains[of[f"q{i}"]] for i in range(len(queries))]


def test_a_longer_prefix_feeds_a_shorter_one() -> None:
    net, (whole, long, short, other) = grains(*((keys, MINUTE, "") for keys in ("src", "src/24", "src/8", "dst")))
    assert feeds(whole, long)
    assert feeds(whole, short)
    assert feeds(long, short)
    assert not feeds(short, long)
    assert not feeds(long, whole)
    assert not feeds(whole, other)
    assert union(long, short) == long
    assert [part.drop for part in net.parts(union(long, short)) if part.component.text == "value:src"] == [8]
    assert name_of(union(short, other)) == "dst.src/8"


def test_panes_that_nest_are_one_base() -> None:
    windows = [
        f"[RANGE '{length} seconds' SLIDE '{slide} seconds']"
        for length, slide in ((60, 60), (40, 20), (10, 10), (7, 7))
    ]
    _, (minute, twenty, ten, seven) = grains(*(("port", window, "") for window in windows))
    assert feeds(ten, minute)
    assert feeds(ten, twenty)
    assert feeds(twenty, minute)
    assert not feeds(minute, ten)
    assert not feeds(seven, minute)
    assert not feeds(ten, seven)
    assert union(ten, minute) == ten
    assert len(union(ten, seven)) == len(ten) + 1


def test_panes_that_are_cut_tell_no_others() -> None:
    cut, whole = "[RANGE '25 seconds' SLIDE '10 seconds']", "[RANGE '20 seconds' SLIDE '20 seconds']"
    _, (one, other) = grains(("port", cut, ""), ("port", whole, ""))
    assert not feeds(one, other)
    assert not feeds(other, one)


def test_rows_and_times_do_not_nest() -> None:
    net, (one, other) = grains(("port", "[ROWS 1000 SLIDE 1000]", ""), ("port", MINUTE, ""))
    assert not feeds(one, other)
    assert len(net.grains) == 2  # nothing of the bounds of panes of rows


def test_only_those_that_choose_the_same_tuples_share_a_choice() -> None:
    net, (all_, some, same, others) = grains(
        ("src", MINUTE, ""),
        ("src", MINUTE, "WHERE v > 3"),
        ("port", MINUTE, "WHERE v > 3"),
        ("src", MINUTE, "WHERE v > 4"),
    )
    assert not feeds(all_, some)  # the phantom must tell the tuples that are not for it
    assert not feeds(some, all_)
    assert feeds(union(all_, some), all_)
    assert feeds(union(some, same), same)
    (one,), (other,) = ({base for base, _ in grain if base.startswith("sieve:")} for grain in (some, others))
    assert one != other
    assert (one, 1) in same
    assert one in {part.component.text for part in net.parts(union(all_, some))}
    assert EVERY not in {part.component.text for part in net.parts(union(all_, some))}


def test_windows_with_gaps_choose() -> None:
    gaps = "[RANGE '5 seconds' SLIDE '10 seconds']"
    made = app(("port", gaps, ""), ("src", gaps, ""), ("src", "[RANGE '10 seconds' SLIDE '10 seconds']", ""))
    of = names(made, "s")
    assert choosers(alone(made, "s").relations) == {of["q0"]: of["q0"], of["q1"]: of["q0"], of["q2"]: of["q2"]}


def test_a_union_feeds_all_that_it_is_made_of() -> None:
    """And is fed by none of them, unless it is one of them."""
    keys = ("src", "src/16", "dst/24, port", "port", "src, port")
    windows = (MINUTE, "[RANGE '20 seconds' SLIDE '20 seconds']", "[RANGE '7 seconds' SLIDE '7 seconds']")
    _, all_ = grains(*itertools.product(keys, windows, ("", "WHERE v > 3")))
    for one, other in itertools.combinations(all_, 2):
        both = union(one, other)
        assert feeds(both, one)
        assert feeds(both, other)
        assert not feeds(one, other) or both == one
        assert not feeds(other, one) or both == other


def test_a_prefix_of_no_bits_is_finer_than_none() -> None:
    """It tells IPv4 from IPv6 addresses and from NULL: a relation without it cannot feed one that has it."""
    _, (without, with_it) = grains(("port", MINUTE, ""), ("port, src/0", MINUTE, ""))
    assert feeds(with_it, without)
    assert not feeds(without, with_it)
    assert fineness(with_it) > fineness(without)
