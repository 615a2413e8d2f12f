"""What the experiments of the smap paper share: its constants, configurations, and costs by the model and at work.

The paper measures costs in two ways (Section 8.1): option 1 is Eq. 7 with modelled collision rates, here `model_cost`;
option 2 is Eq. 7 with collisions that were counted, here `real_cost`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np

from experiments.kit.measure import MeasuredRun, TableSpec, run_epochs
from experiments.kit.streams import PaperStream, nested
from experiments.models.costs import per_tuple
from experiments.models.notation import parse
from experiments.models.problems import paper_problem
from penstock.sharing.choose.choice import choose
from penstock.sharing.graph.configuration import Configuration, arrange
from penstock.sharing.graph.feeding_graph import candidates
from penstock.sharing.graph.grain import letters
from penstock.sharing.graph.notation import name_letters
from penstock.sharing.model.collision import flow_length
from penstock.sharing.model.problem import Problem

C1, C2 = 1.0, 15.0  # Section 8.2: measured in the paper's system; earlier 50
MEMORY = (20_000, 40_000, 60_000, 80_000, 100_000)  # words of 4 bytes
SINGLE = ("A", "B", "C", "D")
PAIRS = ("AB", "BC", "BD", "CD")
PHIS = (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0)
# What GP does with memory that is left over: Sec. 8.4 spreads it by groups, Fig. 5 does not.
READINGS = {"gp": "spread", "kept": "as printed"}
ALIKE = (0, 4, 12)  # values that go with one of the first attribute: any, a few, some (`streams.nested`)
FEWEST_EVICTIONS = 20  # below that a rate says nothing
# Tables of a baseline that does not use its memory: the same buckets for all, or as many as groups (φ = 1 of GP).
FIXED: dict[str, Callable[[int], int]] = {
    "16 buckets": lambda groups: 16,
    "256 buckets": lambda groups: 256,
    "b = g": lambda groups: groups,
}


def uniform_streams(rows: int, seed: int) -> list[PaperStream]:
    """Uniform data with the printed numbers of groups, and others in the range that the paper tells."""
    return [nested(rows, seed, alike=alike) for alike in ALIKE]


def problem(
    groups: dict[str, float],
    queries: Iterable[str],
    memory: float,
    length: float | Sequence[float] = 1.0,
    rows: float = 1_000_000,
) -> Problem:
    """A problem with the paper's costs."""
    return paper_problem(groups, queries, memory, C1, C2, rows, length)


def tables_of(configuration: Configuration, buckets: Callable[[str], float], policy: int = 0) -> list[TableSpec]:
    """Tables of as many buckets as `buckets` says of a relation's letters, at least one."""
    return [
        TableSpec(name, node.parent, max(1, round(buckets(name))), node.query, policy)
        for node in configuration.nodes
        for name in (name_letters(node.grain),)
    ]


def tables_in(configuration: Configuration, spaces: Sequence[float], given: Problem) -> list[TableSpec]:
    """Tables that fit their spaces; one that has no room for an entry passes everything straight on."""
    return [
        TableSpec(name_letters(node.grain), node.parent, int(space / given.entry(node.grain)), node.query)
        for node, space in zip(configuration.nodes, spaces, strict=True)
    ]


def model_cost(configuration: Configuration, spaces: Sequence[float], given: Problem) -> float:
    """Option 1: Eq. 7 by the model, per record."""
    return per_tuple(configuration, buckets_in(configuration, spaces, given), given)


def buckets_in(configuration: Configuration, spaces: Sequence[float], given: Problem) -> list[float]:
    return [space / given.entry(node.grain) for node, space in zip(configuration.nodes, spaces, strict=True)]


def real_run(
    stream: PaperStream, configuration: Configuration, spaces: Sequence[float], given: Problem, hashes: int = 1
) -> list[MeasuredRun]:
    """The whole stream as one epoch, once for each hash function."""
    tables = tables_in(configuration, spaces, given)
    return [run_epochs(stream, tables, salt=salt) for salt in range(hashes)]


def real_cost(
    stream: PaperStream, configuration: Configuration, spaces: Sequence[float], given: Problem, hashes: int = 1
) -> float:
    """Option 2: Eq. 7 with counted collisions, per record."""
    runs = real_run(stream, configuration, spaces, given, hashes)
    return float(np.mean([measured.per_tuple(C1, C2) for measured in runs]))


def fixed_tables(stream: PaperStream, queries: Iterable[str], size: str) -> list[TableSpec]:
    """No phantoms, each query with a table of a size of `FIXED`, however much memory there is."""
    return [TableSpec(query, -1, FIXED[size](stream.groups(query)), True) for query in queries]


def fixed_cost(stream: PaperStream, queries: Iterable[str], size: str) -> float:
    return run_epochs(stream, fixed_tables(stream, queries, size)).per_tuple(C1, C2)


def bare(queries: Iterable[str]) -> Configuration:
    """No phantoms."""
    return parse(" ".join(queries))


def all_configurations(queries: Iterable[str], groups: dict[str, float]) -> list[Configuration]:
    """Every set of phantoms in which each feeds two relations or more, each relation under its smallest feeder."""
    wanted = [letters(query) for query in queries]
    possible = candidates(wanted)
    found: dict[object, Configuration] = {}
    for count in range(len(possible) + 1):
        for phantoms in combinations(possible, count):
            made = arrange(wanted, phantoms, lambda grain: groups[name_letters(grain)])
            if all(len(made.children(i)) > 1 for i, node in enumerate(made.nodes) if not node.query):
                found.setdefault(made.edges, made)
    return list(found.values())


def measured_lengths(stream: PaperStream, text: str, ratio: float = 1.0) -> tuple[float, ...]:
    """l_a by depth in a configuration whose tables all have this g/b."""
    configuration = parse(text)
    return lengths_by_depth(stream, configuration, tables_of(configuration, lambda name: stream.groups(name) / ratio))


def lengths_by_depth(
    stream: PaperStream, configuration: Configuration, tables: Sequence[TableSpec], before: Sequence[float] = (1.0,)
) -> tuple[float, ...]:
    """l_a as Section 5.3 has it: the mean of l_m over the relations of a depth; where nothing collides, as before."""
    by_depth: dict[int, list[float]] = {}
    for i, (one, count) in enumerate(zip(tables, run_epochs(stream, tables).counts, strict=True)):
        groups = stream.groups(one.letters)
        if count.evictions >= FEWEST_EVICTIONS and groups > 1:
            by_depth.setdefault(configuration.depth(i), []).append(flow_length(groups, one.buckets, count.rate))
    deepest = max(configuration.depth(i) for i in range(len(tables)))
    return tuple(
        float(np.mean(by_depth[depth])) if depth in by_depth else before[min(depth, len(before)) - 1]
        for depth in range(1, deepest + 1)
    )


def running_lengths(stream: PaperStream, queries: Sequence[str], memory: float, rounds: int = 3) -> tuple[float, ...]:
    """l_a of a system that runs: plan with what the last window showed, run, measure again."""
    length = measured_lengths(stream, f"ABCD({' '.join(queries)})")
    for _ in range(rounds):
        asked = problem(stream.groups_by_letters(), queries, memory, length, len(stream.rows))
        plan = choose("gc", asked, "sl")
        length = lengths_by_depth(stream, plan.configuration, tables_in(plan.configuration, plan.spaces, asked), length)
    return length


def shape(configuration: Configuration) -> object:
    """The same for configurations that differ in the names of attributes only.

    >>> shape(parse("ABCD(AC(A C) BD(B D))")) == shape(parse("ABCD(AB(A B) CD(C D))"))
    True
    """

    def of(i: int) -> tuple[object, ...]:
        node = configuration.nodes[i]
        return (len(node.grain), node.query, tuple(sorted(map(of, configuration.children(i)), key=repr)))

    return tuple(sorted(map(of, configuration.roots), key=repr))
