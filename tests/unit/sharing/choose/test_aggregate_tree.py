"""Aggregate trees: the greedy against all sets of phantoms, and every chooser with every allocator and table."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, pairwise
from math import exp
from typing import Any

import numpy as np
import pytest

from experiments.models.notation import parse
from penstock.sharing.allocate.registry import ALLOCATORS, allocator
from penstock.sharing.choose.aggregate_tree import aggregate_tree
from penstock.sharing.choose.choice import choose
from penstock.sharing.choose.growing import GrowingTree, KnownRelations
from penstock.sharing.choose.search import Step
from penstock.sharing.choose.siblings import Siblings, packed, unpacked
from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.graph.grain import Grain, feeds, letters
from penstock.sharing.graph.notation import name_letters, text
from penstock.sharing.model.eviction import Che, Curve
from penstock.sharing.model.figures import buckets_of, given, plant
from penstock.sharing.model.flow import tree_cost
from penstock.sharing.model.popularity import fitted
from penstock.sharing.model.problem import Problem

ROWS = 100_000.0


class Figures:
    """Groups of a stream whose attributes are apart from each other, but for some that follow from others."""

    def __init__(self, seed: int, attributes: str, most: float = 1000.0) -> None:
        print(f"seed {seed}")
        random_ = random.Random(seed)
        self.values = {letter: 10 ** random_.uniform(0.5, np.log10(most)) for letter in attributes}
        self.alpha = random_.uniform(0.0, 1.0)
        self.asked: list[Grain] = []
        self.curves: dict[Grain, Curve] = {}

    def groups(self, grain: Grain) -> float:
        self.asked.append(grain)
        product = 1.0
        for letter, _ in sorted(grain):
            product *= self.values[letter]
        return ROWS * -np.expm1(-product / ROWS)

    def curve(self, grain: Grain, feeder: Grain | None) -> Curve:
        assert feeder is None or (feeds(feeder, grain) and feeder != grain)
        if grain not in self.curves:
            self.curves[grain] = Che(fitted(self.groups(grain), self.alpha, ROWS), ROWS)
        return self.curves[grain]

    def problem(self, queries: list[Grain], memory: float, kind: str = "lru") -> Problem:
        curves = {"lru": self.curve, "direct": None, "mixed": lambda g, f: self.curve(g, f) if f else None}[kind]
        return Problem(
            tuple(queries), ROWS, memory, self.groups, lambda grain: len(grain) + 2.0, lambda grain, depth: 1.0,
            lambda grain: 1.0, lambda grain: 1.0, curve=curves,
        )  # fmt: skip


def some_queries(seed: int, attributes: str, count: int, most: int) -> list[Grain]:
    random_ = random.Random(seed)
    found: dict[Grain, None] = {}
    while len(found) < count:
        found[letters("".join(random_.sample(attributes, random_.randint(1, most))))] = None
    return list(found)


def check(configuration: Configuration, queries: list[Grain]) -> None:
    """A tree: every query once, fed by what is strictly finer; phantoms feed something."""
    grains = [node.grain for node in configuration.nodes]
    assert len(set(grains)) == len(grains)
    assert set(configuration.queries) == set(queries)
    for i, node in enumerate(configuration.nodes):
        assert node.parent < i
        if node.parent != STREAM:
            above = configuration.nodes[node.parent].grain
            assert feeds(above, node.grain)
            assert above != node.grain
        assert node.query or configuration.children(i)


@pytest.mark.parametrize("kind", ["lru", "direct"])
@pytest.mark.parametrize("seed", range(12))
def test_the_greedy_against_all_sets_of_phantoms(seed: int, kind: str) -> None:
    """`epes` looks at every set of unions, with the same allocation: the greedy stays within 8 %."""
    queries = some_queries(seed, "ABCD", 4, 2)
    figures = Figures(seed, "ABCD", 300.0)
    for memory in (2_000.0, 20_000.0, 1e6):
        problem = figures.problem(queries, memory, kind)
        greedy = aggregate_tree(problem, "lagrange")
        best = choose("epes", problem, "lagrange", fronts=False, objective=tree_cost)
        check(greedy.configuration, queries)
        print(memory, greedy.cost, text(greedy.configuration, name_letters), best.cost)
        assert greedy.cost <= 1.08 * best.cost
        assert greedy.cost <= len(queries) + 1e-9


def test_on_average_it_is_nearly_the_best() -> None:
    ratios = []
    for seed in range(20, 40):
        problem = Figures(seed, "ABCD", 300.0).problem(some_queries(seed, "ABCD", 4, 2), 10_000.0)
        best = choose("epes", problem, "lagrange", fronts=False, objective=tree_cost)
        ratios.append(aggregate_tree(problem, "lagrange").cost / best.cost)
    print(sorted(ratios))
    assert sum(ratios) / len(ratios) <= 1.005


@pytest.mark.parametrize("alloc", sorted(ALLOCATORS))
@pytest.mark.parametrize("chooser", ["gc", "gp", "epes", "tree", "algorithm-1"])
@pytest.mark.parametrize("kind", ["lru", "direct", "mixed"])
def test_every_chooser_takes_every_allocator_and_table(chooser: str, alloc: str, kind: str) -> None:
    queries = [letters(name) for name in ("AB", "BC", "CA")]
    problem = Figures(3, "ABC", 60.0).problem(queries, 20_000.0, kind)
    chosen = choose(chooser, problem, alloc, fronts=False, objective=tree_cost)
    check(chosen.configuration, queries)
    assert sum(chosen.spaces) <= problem.memory * (1 + 1e-9)
    assert len(chosen.spaces) == len(chosen.configuration.nodes)
    assert 0 < chosen.cost <= 3.0 if chooser in ("gc", "epes", "tree", "algorithm-1") else chosen.cost > 0


def test_all_children_that_fit_are_adopted() -> None:
    """AB and BC make ABC, which takes A, B, C and CA as well; D stays outside."""
    queries = [letters(name) for name in ("AB", "BC", "CA", "A", "B", "C", "D")]
    figures = Figures(1, "ABCD")
    figures.values = {"A": 10.0, "B": 9.0, "C": 8.0, "D": 20_000.0}
    chosen = aggregate_tree(figures.problem(queries, 1e9))
    found = text(chosen.configuration, name_letters)
    print(found)
    check(chosen.configuration, queries)
    assert {node.grain for node in chosen.configuration.nodes if node.parent == STREAM} == {
        letters("ABC"),
        letters("D"),
    }


def test_a_query_feeds_its_subsets() -> None:
    figures = Figures(1, "ABC")
    figures.values = {"A": 10.0, "B": 10.0, "C": 10.0}
    chosen = aggregate_tree(figures.problem([letters("AB"), letters("A"), letters("B")], 1e9))
    assert text(chosen.configuration, name_letters) == "AB(A B)"
    assert chosen.cost == pytest.approx(1.0 + 3 * 100 / ROWS, rel=0.01)


def test_a_table_that_does_not_pay_goes_again() -> None:
    """A removal is a move: all below falls to what fed the table."""
    figures = Figures(1, "ABC")
    figures.values = {"A": 300.0, "B": 300.0, "C": 300.0}  # ABC has as many groups as there are tuples
    queries = [letters(name) for name in ("AB", "BC")]
    tree = GrowingTree(KnownRelations(figures.problem(queries, 1e9)), None, tree_cost)
    tree.solve()
    without = tree.cost
    tree.place(0b111, STREAM, list(tree.queries))
    tree.solve()
    assert tree.cost > without
    number = tree.numbers[0b111]
    tree.remove(number)
    tree.solve()
    assert tree.cost == pytest.approx(without)
    assert set(tree.parents.values()) == {STREAM}
    assert aggregate_tree(figures.problem(queries, 1e9)).cost == pytest.approx(without)


def test_no_sharing_without_memory() -> None:
    queries = some_queries(5, "ABCDE", 8, 3)
    chosen = aggregate_tree(Figures(5, "ABCDE").problem(queries, 0.0))
    assert chosen.cost == pytest.approx(8.0)
    assert sum(chosen.spaces) == 0.0


def test_costs_of_tables_are_counted() -> None:
    """`each` and `passing` make tables dearer: fewer of them are left."""
    queries = [letters(a + b) for a, b in combinations("ABCDEF", 2)]
    problem = Figures(2, "ABCDEF", 60.0).problem(queries, 1e6)
    few = aggregate_tree(replace(problem, each=0.3, passing=1.0))
    many = aggregate_tree(problem)
    assert len(few.configuration.phantoms) < len(many.configuration.phantoms)
    assert few.cost > many.cost


def test_pairs_of_thirteen_attributes() -> None:
    queries = [letters(a + b) for a, b in combinations("ABCDEFGHIJKLM", 2)]
    figures = Figures(4, "ABCDEFGHIJKLM", 3000.0)
    costs = []
    for memory in (0.0, 3_000.0, 30_000.0, 300_000.0, 1e8):
        chosen = aggregate_tree(figures.problem(queries, memory))
        check(chosen.configuration, queries)
        assert sum(chosen.spaces) <= memory * (1 + 1e-9)
        costs.append(chosen.cost)
    print(costs, len(set(figures.asked)))
    assert costs[0] == pytest.approx(78.0)
    assert all(later <= 1.01 * earlier for earlier, later in pairwise(costs))
    assert costs[-1] < 0.75 * 78
    assert len(set(figures.asked)) < 3000


def test_hundreds_of_queries() -> None:
    attributes = "ABCDEFGHIJKLMNOPQRST"
    queries = some_queries(6, attributes, 300, 5)
    figures = Figures(6, attributes, 100.0)
    chosen = aggregate_tree(figures.problem(queries, 1e5), "lagrange")
    check(chosen.configuration, queries)
    assert chosen.cost < 300
    assert len(set(figures.asked)) < 4000


def test_time_limits_the_search() -> None:
    queries = [letters(a + b) for a, b in combinations("ABCDEFGH", 2)]
    chosen = aggregate_tree(Figures(4, "ABCDEFGH").problem(queries, 1e6), "lagrange", ends=0.0)
    assert chosen.configuration.phantoms == ()
    assert len(chosen.steps) == 1


def test_an_earlier_tree_is_a_start() -> None:
    """Without time it is what comes out, also for other queries; with time nothing dearer than from the start."""
    queries = [letters(a + b) for a, b in combinations("ABCDEFGH", 2)]
    figures = Figures(4, "ABCDEFGH", 60.0)
    found = aggregate_tree(figures.problem(queries, 1e5), "lagrange")
    assert found.configuration.phantoms
    again = aggregate_tree(figures.problem(queries, 1e5), "lagrange", ends=0.0, start=found.configuration)
    assert again.cost == pytest.approx(found.cost, rel=1e-3)
    assert {node.grain for node in again.configuration.nodes} == {node.grain for node in found.configuration.nodes}
    better = aggregate_tree(figures.problem(queries, 1e4), "lagrange", start=found.configuration)
    assert better.cost <= aggregate_tree(figures.problem(queries, 1e4), "lagrange").cost * (1 + 1e-9)
    others = [*queries[5:], letters("ACE"), letters("BH")][:-1]
    for alloc in ("lagrange", "sl"):
        kept = aggregate_tree(figures.problem(others, 1e5), alloc, ends=0.0, start=found.configuration)
        check(kept.configuration, others)
        assert kept.configuration.phantoms


def test_never_dearer_than_the_tree_it_starts_from() -> None:
    """A search judges by the price of memory; what comes out is compared as it is allocated."""
    queries = [letters(a + b) for a, b in combinations("ABCDEFGHI", 2)]
    for seed in range(6):
        figures, before = Figures(seed, "ABCDEFGHI", 300.0), None
        for memory in np.geomspace(2e3, 1e6, 7):
            problem = figures.problem(queries, float(memory))
            chosen = aggregate_tree(problem, "fptas", start=before)
            if before is not None:
                tables = [bool(before.children(i)) for i in range(len(before.nodes))]
                tree = plant(before, problem, tables)
                spaces = allocator("fptas")(tree)
                assert chosen.cost <= tree_cost(given(tree, spaces), buckets_of(tree, spaces)) * (1 + 1e-9)
            before = chosen.configuration


def test_a_search_that_goes_astray_leaves_the_tree_it_starts_from(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = [letters(a + b) for a, b in combinations("ABCDEFGH", 2)]
    problem = Figures(4, "ABCDEFGH", 60.0).problem(queries, 1e5)
    found = aggregate_tree(problem, "lagrange")

    def astray(search: Any, epsilon: float, ends: float) -> list[Step]:
        search.tree = search.start.copy()  # no tables, and taken for the cheapest of all
        search.tree.cost = 0.0
        return []

    monkeypatch.setattr("penstock.sharing.choose.aggregate_tree._Search.grow", astray)
    again = aggregate_tree(problem, "lagrange", start=found.configuration)
    assert set(again.configuration.nodes) == set(found.configuration.nodes)
    assert again.cost == pytest.approx(found.cost, rel=1e-6)


def test_a_start_whose_phantom_feeds_one_query() -> None:
    """As after the others were dropped: the query stands in for the phantom."""
    queries = [letters("AB"), letters("CD")]
    found = aggregate_tree(Figures(1, "ABCD").problem(queries, 1e4), "lagrange", start=parse("ABC(AB) CD"))
    check(found.configuration, queries)


def test_steps_lead_down() -> None:
    queries = [letters(a + b) for a, b in combinations("ABCDEF", 2)]
    chosen = aggregate_tree(Figures(2, "ABCDEF", 60.0).problem(queries, 1e5), "lagrange")
    costs = [step.cost for step in chosen.steps]
    assert costs[0] == 15.0
    assert all(later < earlier for earlier, later in pairwise(costs[:5]))
    assert costs[-1] == min(costs)


def test_masks_of_more_than_a_word() -> None:
    masks = [1 << 70 | 1, 1 << 64, (1 << 130) - 1, 5]
    words = packed(masks, 3)
    assert [sum(int(word) << 64 * k for k, word in enumerate(row)) for row in words] == masks
    assert [sum(1 << int(k) for k in np.flatnonzero(row)) for row in unpacked(words)] == masks


@pytest.mark.parametrize("seed", range(10))
def test_siblings_that_come_and_go(seed: int) -> None:
    """The kept matrix against unions of pairs made anew."""
    print(f"seed {seed}")
    random_ = random.Random(seed)
    words = 1 + seed % 2
    masks = {n: random_.getrandbits(60 * words) & random_.getrandbits(60 * words) | 1 << n for n in range(20)}
    siblings = Siblings(words)
    for _ in range(6):
        children = random_.sample(sorted(masks), random_.randint(0, 12))
        siblings.change(children, masks)
        assert sorted(siblings.children) == sorted(children)
        found = {
            siblings.mask(c): set(np.array(siblings.children)[siblings.adopts[c]]) for c in range(len(siblings.unions))
        }
        assert len(found) == len(siblings.unions)
        for a, b in combinations(children, 2):
            union = masks[a] | masks[b]
            assert found[union] == {child for child in children if masks[child] & ~union == 0}
        for union, adopted in found.items():
            assert len(adopted) >= 2
            assert adopted == {child for child in children if masks[child] & ~union == 0}


def test_a_guess_of_groups_is_near_where_attributes_are_apart() -> None:
    figures = Figures(8, "ABCDEF", 30.0)
    queries = [letters(a + b) for a, b in combinations("ABCDEF", 2)]
    known = KnownRelations(figures.problem(queries, 1e5))
    for mask in known.queries:
        known.groups(mask)
    wider = [0b000111, 0b011100, 0b110011]
    guessed = known.guess(unpacked(packed(wider, 1)))
    for mask, guess in zip(wider, guessed, strict=True):
        assert exp(abs(np.log(guess / figures.groups(known.grain(mask))))) < 1.5
