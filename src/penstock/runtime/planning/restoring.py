"""What is stored of a stream, reconsidered while a run goes on; `sharing.unions` has what there is to choose from.

    counters, sample ──► groups of what is stored, and of what was ──► ways to store it, priced ──► stays, or changes

Tasks count the groups of what they store and of nothing else; a sample tells of all the rest, less well. So it is
remembered by how much samples were wrong about relations that were stored once: or each of two ways would look cheaper
from where the other one is.

A change costs a new storage: windows that are open hold rows of both kinds, and their queries are put together from
both. So it has to promise more than other tables have, and what is stored then stays for a while: longer each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.relations.relation import EXACT, Relation
from penstock.relations.storing import Stored
from penstock.relations.uniting import Union, union_of
from penstock.runtime.profile.statistics import Known, exact_groups
from penstock.runtime.profile.survey import with_sieves
from penstock.sharing.graph.grain import Grain, union
from penstock.sharing.graph.lattice import Lattice, lattice
from penstock.sharing.model.partial_groups import columns_of
from penstock.sharing.model.unit_costs import Costs
from penstock.sharing.plan import SharedPlan
from penstock.sharing.unions import stored_as
from penstock.state.protocol import TaskReport

STAYS, MOST_STAYS = 8, 128  # batches that what is stored stays after a change: the first time, and after many
Parts = tuple[str, ...]  # names of relations by rule
Tasks = Sequence[TaskReport]


def made_of(kept: Stored, unions: Iterable[Union]) -> dict[str, Parts]:
    """By stored relation those by rule that it stands for."""
    found: dict[str, Parts] = {}
    for one in unions:
        parts = [relation for relation in kept.relations if relation.name in one.relations]
        if len(parts) > 1:
            found[union_of(parts, one.table).name] = tuple(relation.name for relation in parts)
    united = {name for parts in found.values() for name in parts}
    return found | {one.name: (one.name,) for one in kept.relations if one.booked and one.name not in united}


def grain_of(net: Lattice, parts: Parts) -> Grain:
    """What these have together."""
    return union(*(net.grains[name] for name in parts))


def restated(known: Known, made: Mapping[str, Parts], net: Lattice) -> Known:
    """The same statistics for relations that are made of those that they are of."""
    grains = {name: grain_of(known.net, parts) for name, parts in made.items()}
    exact = {net.grains[name]: known.exact[grain] for name, grain in grains.items() if grain in known.exact}
    return known.restated(net, exact)


def stored_in(kept: Stored, unions: Sequence[Union], known: Known) -> tuple[Stored, Known]:
    """What is stored with these unions, and what is known of that; `known` is of relations by rule."""
    mine = stored_as(kept, unions)
    sieved = replace(known, survey=with_sieves(known.survey, kept.relations, mine.relations))
    return mine, restated(sieved, made_of(kept, unions), lattice(mine.relations))


def counted_groups(plan: SharedPlan, tasks: Tasks) -> dict[str, float]:
    """Groups in a task by stored relation. Rows that are appended are no groups."""
    net = lattice(plan.relations)
    exact = exact_groups(net, tasks)
    return {one.name: exact[net.grains[one.name]] for one in plan.relations if one.booked and one.table == EXACT}


@dataclass
class Counted:
    """By how much samples were wrong about the groups of relations, and of unions, when these were stored."""

    ratios: dict[Parts, float] = field(default_factory=dict)

    def told(self, known: Known, made: Mapping[str, Parts], groups: Mapping[str, float]) -> Known:
        """Statistics of relations by rule with what tasks have counted now, or would have by what they counted once."""
        self.ratios = {parts: one for parts, one in self.ratios.items() if _known(known.net, parts)}
        for name, parts in made.items():
            if groups.get(name) and _known(known.net, parts):
                self.ratios[parts] = groups[name] / max(1.0, known.sampled(grain_of(known.net, parts)))
        exact = {}
        for parts, ratio in self.ratios.items():
            grain = grain_of(known.net, parts)
            exact[grain] = min(ratio * max(1.0, known.sampled(grain)), known.rows * known.share(grain))
        return replace(known, exact=exact, _groups={})


def _known(net: Lattice, parts: Parts) -> bool:
    return all(name in net.grains for name in parts)


def moving(kept: Stored, before: SharedPlan, after: SharedPlan, known: Known, costs: Costs, tasks: int) -> float:
    """Nanoseconds that a change of what is stored costs once: the groups of queries that are then put together from
    rows of both kinds. Of the windows that are open those of a batch stand for."""
    old, new = _homes(before), _homes(after)
    moved = [one for one in kept.relations if one.booked and _home(one, old) != _home(one, new)]
    return tasks * sum(known.groups(known.net.grains[one.name]) * costs.partial(columns_of(one)) for one in moved)


def _homes(plan: SharedPlan) -> dict[str, tuple[Parts, str]]:
    return {name: (one.relations, one.table) for one in plan.unions for name in one.relations}


def _home(relation: Relation, homes: Mapping[str, tuple[Parts, str]]) -> object:
    return homes.get(relation.name)


@dataclass
class Stay:
    """What is stored was changed: for how many batches it is left, and the figures of then."""

    signature: Mapping[object, float]
    pause: int = STAYS
    rest: int = STAYS

    def over(self, changed: Callable[[Mapping[object, float]], bool]) -> bool:
        """One batch more: whether the last one of its rest is done, or figures have changed much since then."""
        if not self.rest:
            return False
        self.rest = 0 if changed(self.signature) else self.rest - 1
        return not self.rest

    def again(self, signature: Mapping[object, float]) -> Stay:
        """After one more change."""
        pause = min(MOST_STAYS, 2 * self.pause)
        return Stay(signature, pause, pause)
