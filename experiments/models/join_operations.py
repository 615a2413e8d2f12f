"""Better costs of an aggregation join's operations than Eq. 19 to 26: each measured by itself, for sizes as expected.

What the paper's functions leave out, each found where they rank plans wrongly (docs/reproduce.md):

* α_i and n_i are upper bounds. An aggregation set has fewer groups than its window has records long before g_i/σ_i of
  them have come, so early plans gain sooner. Here they are the expected numbers (`join_costs.expected`).
* U_g is one constant times the length of a chain. To find a group costs a step for each entry on the way to it, half of
  the chain; to update it costs what it costs, however long the chain is.
* AS is hashed on G_1 alone: its chains are as long as there are groups with one G_1, however many buckets are empty.
* Updates of one group after the other are cheaper than updates of changing groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.models.join_costs import BUCKETS, Plan, Sizes, StreamStatistics, expected, unit_time
from penstock.sharing.model.collision import distinct


@dataclass(frozen=True)
class OperationCosts:
    """Seconds: a window update; probing an entry of a window and of a set; finding a group of a set, an entry, and
    updating it; finding a group of the output, an entry after the first, and updating it, the group of the tuple
    before or another one."""

    window: float
    probe_window: float
    probe_set: float
    set_step: float
    set_update: float
    out_step: float
    out_same: float
    out_other: float


@dataclass(frozen=True)
class MeasuredOperations:
    """The terms of Table II, each with its own constants."""

    streams: Sequence[StreamStatistics]
    sizes: Sizes
    costs: OperationCosts
    hashed: bool

    def update_window(self, stream: int) -> float:
        return self.costs.window

    def find(self, stream: int, early: bool) -> float:
        entries = self.sizes.sets[stream] if early else self.streams[stream].window
        per_entry = self.costs.probe_set if early else self.costs.probe_window
        return entries / (self.sizes.buckets[stream] if self.hashed else 1) * per_entry

    def update_set(self, stream: int) -> float:
        chain = self.sizes.sets[stream] / self.sizes.buckets[stream]
        return self.costs.set_update + self.walked(stream, chain) * self.costs.set_step

    def walked(self, stream: int, chain: float) -> float:
        """Entries on the way to a group: half of the chain where it is there, all of it where it is new."""
        one = self.streams[stream]
        there = self.sizes.sets[stream] / (one.groups * one.keys)
        # A record that goes finds its group; one that comes finds it if it is there.
        return chain * (1 - there) / 2 + (chain + 1) / 2 * (1 + there) / 2

    def update_out(self, stream: int, plan: Plan) -> float:
        chain = self.out_chain
        other = self.changes(stream, plan)
        update = other * self.costs.out_other + (1 - other) * self.costs.out_same
        return update + (chain - 1) / 2 * self.costs.out_step

    @property
    def out_chain(self) -> float:
        """Entries of the chain in which a tuple looks for its group: all groups with its G_1, of which W_1 has k_1, and
        those whose G_1 fall into the same bucket."""
        one, groups = self.streams[0], self.sizes.out
        present = distinct(one.groups, one.window)
        beside = groups * (1 - 1 / present) / self.sizes.out_buckets if one.groups > self.sizes.out_buckets else 0.0
        return max(1.0, groups / present + beside)

    def changes(self, stream: int, plan: Plan) -> float:
        """How often a joined tuple is of another group than the one before it.

        The stream that was asked last changes most often; those before it change when it has begun again.
        """
        total, again, same = 0.0, 1.0, 1.0
        for j in reversed([j for j in range(len(self.streams)) if j != stream]):
            found = max(1.0, self.sizes.set_matches[j] if plan[j] else self.sizes.window_matches[j])
            same *= 0.0 if plan[j] and self.streams[j].groups > 1 else 1 / self.streams[j].groups
            total += again * (1 - 1 / found) * (1 - same)
            again /= found
        return total + again * (1 - same / self.streams[stream].groups)


def better_cost(
    plan: Plan, streams: Sequence[StreamStatistics], costs: OperationCosts, hashed: bool, buckets: int = BUCKETS
) -> float:
    """The unit-time cost with expected sizes and operations that were measured one by one."""
    sizes = expected(streams, buckets)
    return unit_time(plan, streams, sizes, MeasuredOperations(streams, sizes, costs, hashed))
