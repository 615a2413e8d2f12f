"""What is known of a stream while it runs, as the planner asks for it (`sharing.model.statistics.Statistics`).

From a sample (`runtime.profile.survey`): groups, flow length, share of records and width of any relation. From the
counters of tasks (`runtime.work`): records of a task, exact groups of every query, and what tables really evict. The
flow length of a depth is the paper's l_m = x_model/x_measured (seed smap, Sec. 5.3), of all tables of that depth
together; at depth one it corrects the sample's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

import numpy as np

from penstock.logical.window import ROWS, TIME, Panes
from penstock.relations.component import sieve_component
from penstock.relations.relation import Relation
from penstock.runtime.profile.survey import Survey
from penstock.runtime.profile.turns import every
from penstock.runtime.work import TABLE
from penstock.sharing.graph.grain import Grain, feeds
from penstock.sharing.graph.lattice import Lattice
from penstock.sharing.model.collision import occupied
from penstock.sharing.model.eviction import Curve, DirectMapped, in_turns
from penstock.sharing.model.kinds.registry import kind_named
from penstock.sharing.model.popularity import Popularity, estimated, uniform
from penstock.sharing.plan import SharedPlan
from penstock.state.protocol import TaskReport

LEAST_PROBES = 1000  # of a table, before its evictions are believed
LONGEST, SHORTEST = 1000.0, 0.3


@dataclass(frozen=True)
class Known:
    """Statistics of one stream, whose batches have so many `tasks`. `exact` has the groups of queries, `depths` flow
    lengths that were measured. The sample is from all over a task, or from so many that it `spans`."""

    net: Lattice
    survey: Survey
    rows: float
    exact: Mapping[Grain, float] = field(default_factory=dict)
    depths: Mapping[int, float] = field(default_factory=dict)
    tasks: int = 1
    spans: int = 1
    _groups: dict[Grain, float] = field(default_factory=dict, repr=False, compare=False)
    _made: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    def of(self, net: Lattice) -> Known:
        """The same, for other queries on the stream: what a grain stands for depends on all of them."""
        if net == self.net:
            return self
        exact = {
            net.grains[q]: self.exact[g] for q, g in self.net.grains.items() if q in net.grains and g in self.exact
        }
        return self.restated(net, exact)

    def restated(self, net: Lattice, exact: Mapping[Grain, float]) -> Known:
        """The same sample for other relations."""
        return Known(net, self.survey.afresh(), self.rows, exact, self.depths, self.tasks, self.spans)

    def groups(self, grain: Grain) -> float:
        if grain not in self._groups:
            self._groups[grain] = self._estimated(grain)
        return self._groups[grain]

    def made(self, relation: Relation) -> float:
        """By the sample alone."""
        if relation.name not in self._made:
            sieve = sieve_component(relation.name)
            places = self.survey.layout.places
            # Prefixes of IPv6 addresses are codes of their own, which a sample has of what is stored alone.
            parts = [part for part in relation.parts if part.component in places]
            counted = self.survey.counted_by(parts, sieve if sieve in places else None)
            self._made[relation.name] = max(1.0, counted.extrapolated(self.rows / max(1, self.survey.tuples)))
        return self._made[relation.name]

    def _estimated(self, grain: Grain) -> float:
        """As counted; of a phantom what the sample says, corrected by the finest query below it that was counted. No
        more than any has that is finer."""
        if grain in self.exact:
            return max(1.0, self.exact[grain])
        finer = (count for fine, count in self.exact.items() if count and feeds(fine, grain))
        found, most = self.sampled(grain), min(self.rows * self.share(grain), *finer, inf)
        groups, nearest = max(
            ((g, c) for c, g in self.exact.items() if feeds(grain, c)), default=(0.0, None), key=_first
        )
        if nearest is not None and groups:
            found *= groups / max(1.0, self.sampled(nearest))
        return max(1.0, groups, min(found, most))

    def sampled(self, grain: Grain) -> float:
        """What the sample says of a task."""
        return self.survey.counted(grain, self.net).extrapolated(self.rows / max(1, self.survey.tuples))

    def length(self, grain: Grain, depth: int) -> float:
        if depth == 1:
            return self.survey.length(grain, self.net) * self.depths.get(1, 1.0)
        return self.depths.get(depth, 1.0)

    def popularity(self, grain: Grain, feeder: Grain | None) -> Popularity:
        """In the relation's own input, in one turn: of a feeder's groups each comes once, of those that come close
        together in the stream one."""
        turns, flow = self.turns(grain), self.locality(grain) if feeder is None else 1.0
        groups = self.groups(grain) / turns
        tuples = (self.rows * self.share(grain) / flow if feeder is None else self.groups(feeder)) / turns
        counts = every(self.survey.below(grain, feeder, self.net), self.survey.turns(grain, self.net).sampled)
        flows = np.maximum(1, np.rint(counts / flow)).astype(np.int64)
        return estimated(flows, max(tuples, groups), groups) if len(counts) else uniform(groups)

    def locality(self, grain: Grain) -> float:
        return self.survey.locality(grain, self.net)

    def turns(self, grain: Grain) -> float:
        """No more than there are groups."""
        found = self.survey.turns(grain, self.net).of(self.rows / max(1, self.survey.tuples), self.spans)
        return max(1.0, min(found, self.groups(grain)))

    def moved(self, grain: Grain, panes: Panes) -> float:
        """By how long the sample lasted, which may be of more tasks than one; or by its panes."""
        if panes.axis == ROWS:
            return self.rows * self.tasks * panes.per_slide / panes.slide
        if panes.axis == TIME and self.survey.lasted:
            return self.survey.lasted * self.tasks / self.spans * panes.per_slide / panes.slide
        return self.survey.turns(grain, self.net).moved * self.tasks / self.spans

    def colliding(self, grain: Grain, depth: int) -> Curve:
        """What a direct-mapped table is expected to do; below the first, before anything is measured there."""
        turns = self.turns(grain)
        return in_turns(DirectMapped(self.groups(grain) / turns, self.length(grain, 1) if depth == 1 else 1.0), turns)

    def share(self, grain: Grain) -> float:
        return self.survey.share(grain)

    def bits(self, grain: Grain) -> int:
        return self.survey.bits(grain, self.net)


def _first(pair: tuple[float, Grain]) -> float:
    return pair[0]


def rows_of(tasks: Iterable[TaskReport]) -> float:
    """Records of a task, of those that had any."""
    counts = [task.rows for task in tasks]
    return sum(counts) / max(1, sum(1 for count in counts if count))


def exact_groups(net: Lattice, tasks: Iterable[TaskReport]) -> dict[Grain, float]:
    """Groups of every query in a task, as its leaf counted them."""
    tasks = [task for task in tasks if task.rows]
    return {
        grain: sum(task.work.get(query, {}).get("groups", 0) for task in tasks) / max(1, len(tasks))
        for query, grain in net.grains.items()
    }


def measured_depths(plan: SharedPlan, tasks: Iterable[TaskReport], known: Known) -> dict[int, float]:
    """l_m of every depth of the tree; of depth one, relative to what the sample of the same batch says.

    The paper averages over the tables of a depth; here each weighs as much as it evicts, or a small table that hardly
    evicts at all would speak for the large ones. A table says something of the data where it replaces its residents as
    one for these data would: keeping frequent ones where flows are long evicts much more.
    """
    if plan.basis is None:
        return {}
    tasks = list(tasks)
    expected, evicted = dict[int, float](), dict[int, float]()
    policies = {table.name: table.policy for table in plan.tables}
    for node, priced in zip(plan.basis.configuration.nodes, plan.basis.relations, strict=True):
        work = [task.work[TABLE + priced.name] for task in tasks if TABLE + priced.name in task.work]
        probes, evictions = (sum(counts[what] for counts in work) for what in ("probes", "evictions"))
        groups, sampled, kind = known.groups(node.grain), known.length(node.grain, 1), kind_named(priced.kind)
        if not priced.buckets or kind.curve is not None or probes < LEAST_PROBES or groups <= 1:
            continue  # a single group never collides, and a flow length does not tell what a table with a curve evicts
        if priced.depth > 1 or policies[priced.name] == kind.replacement(sampled):
            fixed, slope = known.colliding(node.grain, priced.depth).response(priced.buckets, known.rows)
            # What stands in the table at the end of a task is flushed.
            turned = max(0.0, fixed - occupied(groups, priced.buckets))
            expected[priced.depth] = expected.get(priced.depth, 0.0) + probes * slope + len(work) * turned
            evicted[priced.depth] = evicted.get(priced.depth, 0.0) + evictions
    lengths = {depth: evictions / max(1.0, evicted[depth]) for depth, evictions in expected.items()}
    return {depth: min(LONGEST, max(SHORTEST, length)) for depth, length in lengths.items()}
