"""Costs of a configuration as the smap paper writes them (Sec. 3.2 and 7.1).

    per_tuple      e_m, Eq. 7
    end_of_epoch   E_e, Eq. 8, the peak load
    per_epoch      E = n_e e_m + E_e
    per_cycle      E_c, Eq. 27 to 29, for epochs of different lengths

Each exists as printed and as corrected: a query that feeds others pays c2, too, where the paper counts leaves only; and
a flush passes on the entries that are *occupied*, where the paper takes all b buckets. `buckets[i] == 0` means that
there is no table: everything passes straight on (x = 1, no c1).

`epoch_cost` and `cycle_cost` are the same for each record of a planted tree: objectives for `sharing.choose.choice`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from experiments.models.epoch_lengths import cycle, flush_counts
from penstock.sharing.graph.configuration import Configuration
from penstock.sharing.graph.grain import Grain, letters
from penstock.sharing.model.collision import distinct, occupied
from penstock.sharing.model.figures import PlantedTree, buckets_of, plant
from penstock.sharing.model.flow import flush_cost, standing, tuple_cost
from penstock.sharing.model.problem import Problem

Epochs = Mapping[Grain, int]  # w: the length of each query's epoch, in units of time


def epochs_of(by_letters: Mapping[str, int]) -> Epochs:
    """Lengths of queries that are named by letters."""
    return {letters(name): span for name, span in by_letters.items()}


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
    return flush_cost(tree, buckets, list(buckets) if printed else standing(tree, buckets))


def flush_load(
    configuration: Configuration, problem: Problem, *, printed: bool = False
) -> Callable[[Sequence[float]], float]:
    """E_e by the spaces of the tables: a load for `sharing.allocate.peak_load`."""
    tree = plant(configuration, problem)
    return lambda spaces: end_of_epoch(configuration, buckets_of(tree, spaces), problem, printed=printed)


def per_epoch(
    configuration: Configuration, buckets: Sequence[float], problem: Problem, *, printed: bool = False
) -> float:
    """E = n_e e_m + E_e (seed smap, Sec. 3.2.3)."""
    during = problem.rows * per_tuple(configuration, buckets, problem, printed=printed)
    return during + end_of_epoch(configuration, buckets, problem, printed=printed)


def per_cycle(
    configuration: Configuration,
    buckets: Sequence[float],
    problem: Problem,
    epochs: Epochs,
    *,
    printed: bool = False,
) -> float:
    """E_c = n_c e_m + Σ_R n_R E_R, Eq. 27 to 29.

    `problem.rows` and `problem.groups` are of one unit of time, so n_c = γ · rows.  Between two flushes a table meets
    as many groups as `distinct(g, n_c/n_R)`.
    """
    tree = _planted(configuration, buckets, problem, printed)
    records = tree.rows * cycle(epochs[grain] for grain in configuration.queries)
    return records * cycle_cost(tree, buckets, epochs, printed=printed)


def epoch_cost(tree: PlantedTree, buckets: Sequence[float]) -> float:
    """Of a record, with its part of the end of its epoch: e_m + E_e/n_e."""
    return tuple_cost(tree, buckets) + flush_cost(tree, buckets, standing(tree, buckets)) / tree.rows


def cycle_cost(tree: PlantedTree, buckets: Sequence[float], epochs: Epochs, *, printed: bool = False) -> float:
    """Of a record, with its part of all flushes of a cycle: E_c/n_c."""
    lengths = [epochs[grain] if query else 0 for grain, query in zip(tree.grains, tree.queries, strict=True)]
    counts = flush_counts(tree.parents, lengths)
    records = tree.rows * cycle(length for length in lengths if length)
    if printed:
        entries = list(buckets)
    else:
        # A phantom that no query needs is never flushed.
        seen = [distinct(g, records / max(count, 1)) for g, count in zip(tree.groups, counts, strict=True)]
        entries = [occupied(g, b) for g, b in zip(seen, buckets, strict=True)]
    # E_R is linear in the entries, so n_R flushes of R cost what one of n_R times the entries does.
    flushed = [count * entry for count, entry in zip(counts, entries, strict=True)]
    return tuple_cost(tree, buckets) + flush_cost(tree, buckets, flushed) / records


def _planted(configuration: Configuration, buckets: Sequence[float], problem: Problem, printed: bool) -> PlantedTree:
    tree = plant(configuration, problem, [b > 0 for b in buckets])
    if not printed:
        return tree
    return tree._replace(evict=[c2 if leaf else 0.0 for c2, leaf in zip(tree.evict, tree.leaves(), strict=True)])
