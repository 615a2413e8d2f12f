"""What a plan is expected to do, relation by relation, the end of a task included: figures beside which measured ones
can be put (`sharing.explain`).

Counters of a run do not tell a record's own probes from those of a flush, so both are in here: what the tables above
flush at the end of a task (seed smap, Eq. 8) is spread over its records. The costs of all relations sum up to the
plan's (`sharing.model.flow.tree_cost`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.engine_problem import EACH, INDEX
from penstock.sharing.model.kinds.registry import kind_named
from penstock.sharing.plan import Basis, Priced


@dataclass(frozen=True)
class Predicted:
    """One node of a configuration, per record of the stream; `flushed` entries a task. `alone` is what its queries
    would cost if the stream fed them."""

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
    def rate(self) -> float:
        """Evictions of a probe."""
        return self.evictions / self.probes if self.probes else self.priced.rate

    @property
    def leaf_bytes(self) -> float:
        return self.priced.groups * (self.priced.entry + INDEX)


def predict(basis: Basis) -> dict[str, Predicted]:
    """The nodes of a plan's configuration by name, parents first."""
    found: dict[str, Predicted] = {}
    out: list[float] = []  # what leaves a node, a record of the stream, as if all of them were for it (Eq. 1)
    for node, priced in zip(basis.configuration.nodes, basis.relations, strict=True):
        taken = 1.0 if node.parent == STREAM else out[node.parent]
        table, kind = bool(priced.buckets), kind_named(priced.kind)
        entries = priced.occupied / basis.rows if table else 0.0
        out.append(entries + taken * priced.rate)
        # What filled a table was never evicted; it is passed on at the end.
        flushed = kind.flushed(float(priced.buckets), priced.groups, basis.rows * entries)
        # A curve is told of all records that may come, whatever share of them the table takes.
        left = entries + priced.share * taken * priced.rate if kind.curve is None else priced.share * out[-1]
        found[priced.name] = Predicted(
            priced,
            probes=priced.share * taken if table else 0.0,
            evictions=max(0.0, left - flushed / basis.rows) if table else 0.0,
            flushed=flushed,
            inserts=left if node.query else 0.0,
            table_cost=taken * priced.probe + basis.costs.passing * out[-1] + EACH if table else 0.0,
            leaf_cost=out[-1] * priced.insert,
            alone=priced.insert,
        )
    return found


@dataclass(frozen=True)
class Units:
    """ns of one probe of each table, and of one insert into each leaf, by name, as a plan was priced."""

    probe: Mapping[str, float]
    insert: Mapping[str, float]


def unit_prices(basis: Basis) -> Units:
    chosen = [priced for priced in basis.relations if priced.share > 0]
    return Units(
        {priced.name: priced.probe / priced.share for priced in chosen},
        {query: priced.insert / priced.share / len(priced.leaves) for priced in chosen for query in priced.leaves},
    )


def below(basis: Basis) -> dict[str, tuple[str, ...]]:
    """For each node its own name and those of all that it feeds, directly or not."""
    names = [priced.name for priced in basis.relations]
    return {name: tuple(names[j] for j in basis.configuration.below(i)) for i, name in enumerate(names)}


def without_sharing(basis: Basis) -> float:
    """ns a record if the stream fed every query."""
    considered = dict(basis.considered)
    return considered["none"] if "none" in considered else sum(priced.insert for priced in basis.relations)


def gains(basis: Basis, predicted: Mapping[str, Predicted]) -> dict[str, tuple[float, float]]:
    """For each node with a table: ns a record of all at and below it, and of its queries if the stream fed them."""
    return {
        name: (sum(predicted[one].cost for one in members), sum(predicted[one].alone for one in members))
        for name, members in below(basis).items()
        if predicted[name].priced.buckets
    }
