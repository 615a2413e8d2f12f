"""Groups of a coarser relation from those of a finer one, when a window closes.

    rows of a stored relation ──► coarser keys ──► merged ──► finish

`src/8` is made of `src` by cutting the keys and merging what is then equal (`runtime.merge.rolling`). Of several
relations that can be rolled up to the same one, that with the fewest rows is taken: `src/8` comes from `src/16` where
that was made already.
"""

from __future__ import annotations

import numpy as np

from penstock.relations.relation import Relation
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.once import MergedOnce, Rows
from penstock.runtime.merge.prefixes import coarser
from penstock.runtime.meter import ROLL
from penstock.sharing.model.partial_groups import columns_of
from penstock.state.segments.groups import Groups

Array = np.ndarray


def close_rolled_up(merged: MergedOnce, source: StoredSource, wanted: Relation) -> Groups:
    """From the source itself, or from what was rolled up of it already."""
    name = source.relation.name
    with merged.meter.part(name, ROLL):
        rows = merged.rows(source, wanted)
        groups, at = rolled_up(rows, wanted, merged.placing)
        if rows.windows is not None:
            groups, at = rows.windows(wanted, groups), None
        merged.note(source, wanted, rows, groups, at)
    codings = rows.code(wanted)
    counts = {"rollups": 1, "rolled": len(rows), "codings": codings, "coded": len(rows) * codings}
    merged.meter.count(name, **counts, grouped=len(groups), filled=len(groups) * columns_of(wanted))
    return groups


def rolled_up(rows: Rows, wanted: Relation, placing: bool) -> tuple[Groups, Array | None]:
    """Rows merged into coarser groups, and which of those each is in, if that is asked; windows stay."""
    if rows.groups is not None and not rows.relation.sieved and _tells_apart(rows.groups, wanted):
        return with_keys_of(rows.groups, wanted), np.arange(len(rows.groups))
    rolling = rows.rolling.taken(wanted.choice)
    if placing and rolling is rows.rolling:
        return rolling.placed(wanted)
    return rolling.groups(wanted), None


def _tells_apart(groups: Groups, wanted: Relation) -> bool:
    """Whether the groups differ in what is left of their keys: all that goes is the same in all of them, as the weight
    is where all records were read."""
    kept = {part.component for part in wanted.parts if not part.drop}
    gone = [values for name, values in groups.components.items() if name not in kept]
    return len(groups) > 0 and all(one[-1] == one[0] and (one == one[0]).all() for one in gone)


def with_keys_of(groups: Groups, wanted: Relation) -> Groups:
    """The same rows, each with the coarser key that it has in another relation."""
    components, dictionaries = {}, dict(groups.dictionaries)
    for part in wanted.parts[1:]:
        name = part.component
        components[name] = coarser(name, part.drop, groups.components, dictionaries)
    states = {state: groups.states[state] for state in wanted.states if state in groups.states}
    return Groups(groups.panes, components, dictionaries, groups.count, states)
