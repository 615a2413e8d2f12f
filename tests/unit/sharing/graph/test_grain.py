"""Grains and the feeding graph: who feeds whom, prefixes among them, and which phantoms are candidates."""

from __future__ import annotations

import random
from itertools import combinations

from penstock.sharing.graph.configuration import STREAM, arrange
from penstock.sharing.graph.feeding_graph import candidates, consistent, feeding_graph
from penstock.sharing.graph.grain import Grain, feeds, fineness, letters, union

SRC, SRC24, SRC16 = (frozenset({("src", kept)}) for kept in (129, 24, 16))


def some_grain(random_: random.Random) -> Grain:
    return frozenset((base, random_.choice((8, 16, 24, 33))) for base in "ABCD" if random_.random() < 0.5)


def test_an_attribute_feeds_its_prefix_and_not_the_reverse() -> None:
    assert feeds(SRC, SRC24)
    assert feeds(SRC24, SRC16)
    assert not feeds(SRC24, SRC)
    assert feeds(union(SRC, letters("A")), SRC16)
    assert not feeds(SRC, union(SRC16, letters("A")))


def test_every_grain_feeds_itself_and_the_grain_of_all_tuples() -> None:
    assert feeds(SRC, SRC)
    assert feeds(SRC, frozenset())
    assert not feeds(frozenset(), SRC)


def test_a_union_is_the_coarsest_that_feeds_both() -> None:
    for seed in range(300):
        random_ = random.Random(seed)
        one, other, third = (some_grain(random_) for _ in range(3))
        both = union(one, other)
        assert feeds(both, one), f"seed {seed}"
        assert feeds(both, other), f"seed {seed}"
        assert feeds(third, both) == (feeds(third, one) and feeds(third, other)), f"seed {seed}"
        assert feeds(one, other) == (union(one, other) == one), f"seed {seed}"


def test_a_feeder_is_finer_than_what_it_feeds() -> None:
    for seed in range(300):
        random_ = random.Random(seed)
        one, other = some_grain(random_), some_grain(random_)
        if feeds(one, other) and one != other:
            assert fineness(one) > fineness(other), f"seed {seed}"


def test_candidates_are_the_unions_that_are_no_queries() -> None:
    for seed in range(100):
        random_ = random.Random(seed)
        queries = list({some_grain(random_) for _ in range(random_.randint(1, 5))})
        unions = {union(*some) for size in range(2, len(queries) + 1) for some in combinations(queries, size)}
        found = candidates(queries)
        assert set(found) == unions - set(queries), f"seed {seed}"
        assert len(found) == len(set(found)), f"seed {seed}"


def test_candidates_of_the_papers_example() -> None:
    found = candidates([letters(each) for each in ("AB", "BC", "BD", "CD")])
    assert set(found) == {letters(each) for each in ("ABC", "ABD", "BCD", "ABCD")}  # Fig. 4


def test_too_many_candidates_are_cut_to_unions_of_few_and_of_all() -> None:
    queries = [letters(each) for each in "ABCDEFGHIJKL"]
    found = candidates(queries, most=80)
    assert len(found) == 80
    assert letters("ABCDEFGHIJKL") in found
    assert {union(one, other) for one, other in combinations(queries, 2)} <= set(found)


def test_the_graph_knows_feeders_and_lists_them_first() -> None:
    for seed in range(50):
        random_ = random.Random(seed)
        grains = list({some_grain(random_) for _ in range(8)})
        weight = {grain: random_.random() for grain in grains}
        graph = feeding_graph(grains, weight.__getitem__)
        for number, grain in enumerate(graph.relations):
            feeders = {graph.relations[n] for n in range(len(grains)) if graph.feeders[number] >> n & 1}
            assert feeders == {fine for fine in grains if fine != grain and feeds(fine, grain)}, f"seed {seed}"
            earlier = {graph.relations[n] for n in graph.order[: graph.order.index(number)]}
            assert feeders <= earlier, f"seed {seed}"


def test_the_parent_is_the_chosen_superset_that_passes_on_the_fewest() -> None:
    for seed in range(100):
        random_ = random.Random(seed)
        grains = list({some_grain(random_) for _ in range(8)})
        passes = {grain: random_.random() for grain in grains}
        made = arrange(grains[:4], grains[4:], passes.__getitem__)
        assert {node.grain for node in made.nodes} == set(grains), f"seed {seed}"
        for i, node in enumerate(made.nodes):
            supersets = [fine for fine in grains if fine != node.grain and feeds(fine, node.grain)]
            wanted = min(supersets, key=passes.__getitem__, default=None)
            assert node.parent < i, f"seed {seed}"
            found = None if node.parent == STREAM else made.nodes[node.parent].grain
            assert found == wanted, f"seed {seed}"
            assert node.query == (node.grain in grains[:4]), f"seed {seed}"


def test_estimates_of_groups_are_made_consistent() -> None:
    for seed in range(50):
        random_ = random.Random(seed)
        groups = {some_grain(random_): random_.uniform(1, 100) for _ in range(10)}
        made = consistent(groups)
        assert made.keys() == groups.keys(), f"seed {seed}"
        for grain, count in made.items():
            assert count == max(groups[other] for other in groups if feeds(grain, other)), f"seed {seed}"
