"""What a planner asks of a stream: how many groups, how often they come, how close together.

It is a protocol; `runtime.profile.statistics` answers for a running stream.
"""

from __future__ import annotations

from typing import Protocol

from penstock.logical.window import Panes
from penstock.relations.relation import Relation
from penstock.sharing.graph.grain import Grain
from penstock.sharing.model.popularity import Popularity


class Statistics(Protocol):
    """What is known of a stream: records of a task, tasks of a batch, and for any grain its groups in a task, its flow
    length at a depth, how often its groups come in what a feeder passes on, how many records of a group come close
    together in the stream, the share of records that it takes, and the bits of its key.

    The flow length says how much less a direct-mapped table evicts than it would of groups that come at random and
    equally often: their popularity is in it. Tables with a curve know the popularity, so `locality` tells them of the
    order alone.

    `turns`: where panes come one after the other, the groups of a task come in so many turns, each with groups of its
    own; popularity, flow length and locality are those of one turn. `moved`: so many of these panes go by in a
    batch. `made` are the groups of a relation that need not be stored: what queries are rolled up to.
    """

    @property
    def rows(self) -> float: ...
    @property
    def tasks(self) -> int: ...
    def groups(self, grain: Grain) -> float: ...
    def made(self, relation: Relation) -> float: ...
    def length(self, grain: Grain, depth: int) -> float: ...
    def popularity(self, grain: Grain, feeder: Grain | None) -> Popularity: ...
    def locality(self, grain: Grain) -> float: ...
    def turns(self, grain: Grain) -> float: ...
    def moved(self, grain: Grain, panes: Panes) -> float: ...
    def share(self, grain: Grain) -> float: ...
    def bits(self, grain: Grain) -> int: ...
