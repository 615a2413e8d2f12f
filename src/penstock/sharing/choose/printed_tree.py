"""The greedy of seed aggregate-tree as it is printed (Sec. V, Algorithm 1): the yardstick for `aggregate_tree`.

Each step tries every modification of the tree, allocates memory for each and takes the cheapest:

    lines 4-14   for all pairs of siblings A, B: C = A ∪ B below their parent P, over all children of P that are in C
    lines 15-23  for all aggregates that are no query: without it, its children below its parent

It ends when a step saves less than a share ε.  Nothing is guessed, nothing is moved but what a line moves, and no table
that was found is tried without: that makes thousands of allocations, minutes for dozens of queries, where
`aggregate_tree` takes a second.  Pairs of the same union are one modification, and a union that stands elsewhere in the
tree already is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import inf
from time import thread_time

from penstock.sharing.allocate.registry import Allocator, allocator
from penstock.sharing.choose.aggregate_tree import EPSILON
from penstock.sharing.choose.search import ChosenTables, Objective, Step
from penstock.sharing.graph.configuration import STREAM, Configuration, Node
from penstock.sharing.graph.feeding_graph import decoder, encode
from penstock.sharing.graph.grain import Grain
from penstock.sharing.model.figures import buckets_of, given, plant
from penstock.sharing.model.flow import tree_cost
from penstock.sharing.model.problem import Problem

Tree = Mapping[int, int]  # the mask of each aggregate, and that of what feeds it, or STREAM


def printed_tree(
    problem: Problem,
    alloc: str | Allocator = "fptas",
    *,
    objective: Objective = tree_cost,
    epsilon: float = EPSILON,
    ends: float = inf,
) -> ChosenTables:
    """The tree of Algorithm 1, or what it has when the thread's processor time is `ends`; leaf queries have no
    tables."""
    divide = allocator(alloc) if isinstance(alloc, str) else alloc
    codes = encode(problem.queries)
    decode = decoder(codes)
    grains: dict[int, Grain] = {mask: grain for grain, mask in codes.items()}

    def priced(tree: Tree) -> ChosenTables:
        for mask in tree:
            if mask not in grains:
                grains[mask] = decode(mask)
        return _allocated(_configured(tree, grains, queries), problem, divide, objective)

    queries = frozenset(codes.values())
    tree: Tree = dict.fromkeys(sorted(queries), STREAM)
    best = priced(tree)
    steps = [Step(None, best.cost)]
    while True:
        found, least, changed = tree, best, 0
        for mask, other in modified(tree, queries):
            if thread_time() >= ends:
                break
            tried = priced(other)
            if tried.cost < least.cost:
                found, least, changed = other, tried, mask
        if least.cost >= best.cost * (1.0 - epsilon):
            return ChosenTables(best.configuration, best.spaces, best.cost, tuple(steps))
        tree, best = found, least
        steps.append(Step(grains[changed], best.cost))


def modified(tree: Tree, queries: frozenset[int]) -> Iterator[tuple[int, Tree]]:
    """What a step may make of a tree, and the aggregate that comes or goes."""
    fed = _children(tree)
    for parent, children in fed.items():
        for union in dict.fromkeys(a | b for a, b in combinations(children, 2)):
            if union != parent and tree.get(union, parent) == parent:
                adopted = dict.fromkeys((child for child in children if child | union == union), union)
                yield union, {**tree, **adopted, union: parent}
    for mask, parent in tree.items():
        if mask not in queries:
            yield mask, {child: parent if above == mask else above for child, above in tree.items() if child != mask}


def _children(tree: Tree) -> dict[int, list[int]]:
    fed: dict[int, list[int]] = {STREAM: []}
    for mask, parent in tree.items():
        fed.setdefault(parent, []).append(mask)
    return fed


def _configured(tree: Tree, grains: Mapping[int, Grain], queries: frozenset[int]) -> Configuration:
    fed, nodes = _children(tree), list[Node]()

    def hang(mask: int, parent: int) -> None:
        nodes.append(Node(grains[mask], parent, mask in queries))
        place = len(nodes) - 1
        for child in fed.get(mask, ()):
            hang(child, place)

    for root in fed[STREAM]:
        hang(root, STREAM)
    return Configuration(tuple(nodes))


def _allocated(configuration: Configuration, problem: Problem, divide: Allocator, objective: Objective) -> ChosenTables:
    tables = [bool(configuration.children(i)) for i in range(len(configuration.nodes))]
    tree = plant(configuration, problem, tables)
    spaces = divide(tree)
    tree = given(tree, spaces)
    return ChosenTables(configuration, tuple(spaces), objective(tree, buckets_of(tree, spaces)), ())
