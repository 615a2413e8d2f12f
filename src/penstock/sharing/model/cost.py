"""What a configuration costs with given tables (seed smap, Sec. 3.2 and 7.1).

    flows          per relation: what reaches it, collides, is evicted, stays
    per_tuple      e_m, Eq. 7
    end_of_epoch   E_e, Eq. 8, the peak load
    per_cycle      E_c, Eq. 27 to 29, for epochs of different lengths

Each exists as printed, for reproduction, and corrected, for planning: a query that feeds others pays c2, too, where the
paper counts leaves only; and a flush passes on the entries that are *occupied*, where the paper takes all b buckets.
`buckets[i] == 0` means that there is no table: everything passes straight on (x = 1, no c1).

`tuple_cost`, `epoch_cost` and `cycle_cost` are the same on a planted `Tree`; `choice` calls them thousands of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.smap.epoch_lengths import cycle, flush_counts
from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.model.collision import distinct, occupied
from penstock.sharing.model.figures import Tree, plant, rates_of, responses
from penstock.sharing.model.problem import Problem


@dataclass(frozen=True)
class Flow:
    """One relation, per tuple of the stream: `fed` F_R, `rate` x_R, `evictions` F_R·x_R, `cost` in the unit of c1.

    `occupied` is the number of entries that stand in its table at the end of an epoch, or what counts as such
    (`tree.responses`).
    """

    fed: float
    rate: float
    evictions: float
    occupied: float
    cost: float


def flows(configuration: Configuration, buckets: Sequence[float], problem: Problem) -> tuple[Flow, ...]:
    """What happens at each relation; the costs sum up to `per_tuple`."""
    tree = plant(configuration, problem, [b > 0 for b in buckets])
    found: list[Flow] = []
    standing = _entries(tree, buckets, False)
    for i, x in enumerate(rates_of(tree, buckets)):
        parent = tree.parents[i]
        fed = 1.0 if parent == STREAM else found[parent].evictions
        probes = tree.probe[i] if tree.tables[i] else 0.0
        entries = standing[i]
        found.append(Flow(fed, x, fed * x, entries, fed * (probes + x * tree.evict[i])))
    return tuple(found)


def per_tuple(
    configuration: Configuration, buckets: Sequence[float], problem: Problem, *, printed: bool = False
) -> float:
    """e_m = Σ_I (Π_A x) c1 + Σ_L (Π_A x) x c2, Eq. 7; L are the queries unless it is taken as printed: the leaves."""
    return tuple_cost(_planted(configuration, buckets, problem, printed), buckets)


def end_of_epoch(
    configuration: Configuration, buckets: Sequence[float], problem: Problem, *, printed: bool = False
) -> float:
    """E_e, Eq. 8: all relations are flushed, from the raw ones down.

    What is flushed from R' reaches R with the product of the rates strictly between, and leaves a query with that
    times x_R; a query's own entries all leave.
    """
    tree = _planted(configuration, buckets, problem, printed)
    return flush_cost(tree, buckets, _entries(tree, buckets, printed))


def per_epoch(
    configuration: Configuration, buckets: Sequence[float], problem: Problem, *, printed: bool = False
) -> float:
    """E = n_e e_m + E_e (seed smap, Sec. 3.2.3)."""
    during = problem.rows * per_tuple(configuration, buckets, problem, printed=printed)
    return during + end_of_epoch(configuration, buckets, problem, printed=printed)


def per_cycle(
    configuration: Configuration, buckets: Sequence[float], problem: Problem, *, printed: bool = False
) -> float:
    """E_c = n_c e_m + Σ_R n_R E_R, Eq. 27 to 29, for queries of epochs `problem.epoch`.

    `problem.rows` and `problem.groups` are of one unit of time, so n_c = γ · rows.  Between two flushes a table meets
    as many groups as `distinct(g, n_c/n_R)`.
    """
    tree = _planted(configuration, buckets, problem, printed)
    tuples = tree.rows * cycle(length for length in tree.epochs if length)
    return tuples * cycle_cost(tree, buckets, printed=printed)


def tuple_cost(tree: Tree, buckets: Sequence[float]) -> float:
    """Eq. 7 of a planted tree: with tuples fed as in Eq. 5."""
    evicted: list[float] = []
    total = 0.0
    for parent, x, table, c1, c2 in zip(
        tree.parents, rates_of(tree, buckets), tree.tables, tree.probe, tree.evict, strict=True
    ):
        fed = 1.0 if parent == STREAM else evicted[parent]
        passed = fed * x
        evicted.append(passed)
        total += fed * c1 + passed * c2 if table else passed * c2
    return total


def epoch_cost(tree: Tree, buckets: Sequence[float]) -> float:
    """Per tuple, with each tuple's part of the end of its epoch: e_m + E_e/n_e."""
    return tuple_cost(tree, buckets) + flush_cost(tree, buckets, _entries(tree, buckets, False)) / tree.rows


def cycle_cost(tree: Tree, buckets: Sequence[float], *, printed: bool = False) -> float:
    """Per tuple, with each tuple's part of all flushes of a cycle: E_c/n_c."""
    counts = flush_counts(tree.parents, tree.epochs)
    tuples = tree.rows * cycle(length for length in tree.epochs if length)
    if printed:
        entries = list(buckets)
    else:
        # A phantom that no query needs is never flushed.
        seen = [distinct(g, tuples / max(count, 1)) for g, count in zip(tree.groups, counts, strict=True)]
        entries = [occupied(g, b) for g, b in zip(seen, buckets, strict=True)]
    # E_R is linear in the entries, so n_R flushes of R cost what one of n_R times the entries does.
    flushed = [count * entry for count, entry in zip(counts, entries, strict=True)]
    return tuple_cost(tree, buckets) + flush_cost(tree, buckets, flushed) / tuples


def flush_bound(tree: Tree, buckets: Sequence[float], passing: float, doubt: float) -> float:
    """The most that a flush costs where there may be `doubt` times as many groups as expected: no entry finds its
    group in a table below, and each that leaves a table costs `passing` more."""
    leaving: list[float] = []
    total = 0.0
    for i, parent in enumerate(tree.parents):
        arriving = 0.0 if parent == STREAM else leaving[parent]
        leaving.append(min(buckets[i], doubt * tree.groups[i], tree.rows) + arriving)
        total += leaving[i] * tree.evict[i]
        total += arriving * tree.probe[i] + leaving[i] * passing if buckets[i] >= 1.0 else 0.0
    return total


def flush_cost(tree: Tree, buckets: Sequence[float], entries: Sequence[float]) -> float:
    """What it costs to pass on these entries of every table, each through all that is below it."""
    leaving: list[float] = []
    total = 0.0
    for i, x in enumerate(rates_of(tree, buckets)):
        parent = tree.parents[i]
        arriving = 0.0 if parent == STREAM else leaving[parent]
        leaving.append(entries[i] + arriving * x)
        total += leaving[i] * tree.evict[i] + (arriving * tree.probe[i] if tree.tables[i] else 0.0)
    return total


def _entries(tree: Tree, buckets: Sequence[float], printed: bool) -> list[float]:
    if printed:
        return list(buckets)
    if tree.curves:
        return [entries for entries, _ in responses(tree, buckets)]
    return [occupied(g, b) for g, b in zip(tree.groups, buckets, strict=True)]


def _planted(configuration: Configuration, buckets: Sequence[float], problem: Problem, printed: bool) -> Tree:
    tree = plant(configuration, problem, [b > 0 for b in buckets])
    if not printed:
        return tree
    return tree._replace(evict=[c2 if leaf else 0.0 for c2, leaf in zip(tree.evict, tree.leaves(), strict=True)])
