"""What a plan is expected to do, relation by relation, the end of a task included: figures beside which measured ones
can be put (`sharing.explain`).

Counters of a run do not tell a tuple's own probes from those of a flush, so both are in here: what the tables above
flush at the end of a task (seed smap, Eq. 8) is spread over its tuples. The costs of all relations sum up to the
plan's, but for what the planner adds for no relation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.sharing.configuration import STREAM
from penstock.sharing.plan import Basis, Priced
from penstock.sharing.planner import EACH

INDEX = 16  # bytes of an exact table's index for each of its groups


@dataclass(frozen=True)
class Predicted:
    """One node of a configuration, per tuple of the stream; `flushed` entries a task. `alone` is what its queries would
    cost if the stream fed them."""

    priced: Priced
    probes: float
    evictions: float
    flushed: float
    inserts: float
    table_cost: float
    leaf_cost: float
    alone: float

    @property
    def cost(self) -> float:
        return self.table_cost + self.leaf_cost

    @property
    def leaf_bytes(self) -> float:
        return self.priced.groups * (self.priced.entry + INDEX)


def predict(basis: Basis) -> dict[str, Predicted]:
    """The nodes of a plan's configuration by name, parents first."""
    found: dict[str, Predicted] = {}
    reach: list[float] = []  # tuples that come to a node, before its own choice of them (F of Eq. 5)
    leaving: list[float] = []  # entries that a flush passes on
    for node, priced in zip(basis.configuration.nodes, basis.relations, strict=True):
        raw, x = node.parent == STREAM, priced.rate
        come = 1.0 if raw else reach[node.parent] * basis.relations[node.parent].rate
        arriving = 0.0 if raw else leaving[node.parent]
        entries = priced.occupied if priced.buckets else 0.0
        reach.append(come)
        leaving.append(entries + arriving * x)
        taken = come + arriving / basis.rows
        table = bool(priced.buckets)
        found[priced.name] = Predicted(
            priced,
            probes=priced.share * taken if table else 0.0,
            evictions=priced.share * taken * x if table else 0.0,
            flushed=entries,
            inserts=priced.share * taken * x + entries / basis.rows if node.query else 0.0,
            table_cost=taken * priced.probe + basis.costs.passing * come * x + EACH if table else 0.0,
            leaf_cost=(come * x + leaving[-1] / basis.rows) * priced.insert,
            alone=priced.insert,
        )
    return found


def below(basis: Basis) -> dict[str, tuple[str, ...]]:
    """For each node its own name and those of all that it feeds, directly or not."""
    names = [priced.name for priced in basis.relations]
    return {name: tuple(names[j] for j in basis.configuration.below(i)) for i, name in enumerate(names)}


def without_sharing(basis: Basis) -> float:
    """ns a tuple if the stream fed every query."""
    considered = dict(basis.considered)
    return considered["none"] if "none" in considered else sum(priced.insert for priced in basis.relations)


def gains(basis: Basis, predicted: Mapping[str, Predicted]) -> dict[str, tuple[float, float]]:
    """For each node with a table: ns a tuple of all at and below it, and of its queries if the stream fed them."""
    return {
        name: (sum(predicted[one].cost for one in members), sum(predicted[one].alone for one in members))
        for name, members in below(basis).items()
        if predicted[name].priced.buckets
    }
