"""Groups of a coarser relation from those of a finer one, when a window closes.

    merged groups of a stored relation ──► coarser keys ──► merged again ──► finish

`src/8` is made of `src` by cutting the keys and merging what is then equal. Of several relations that can be rolled up
to the same one, that with the fewest groups is taken: `src/8` comes from `src/16` where that was made already.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from penstock.kernels.dictionary import Dictionary
from penstock.relations.closing import rolls_up
from penstock.relations.component import Component
from penstock.relations.relation import Relation
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.merge import regrouped
from penstock.runtime.merge.once import MergedOnce
from penstock.runtime.merge.prefixes import cut_dictionary, finer_component
from penstock.state.segments.groups import Groups

Array = np.ndarray


def close_rolled_up(merged: MergedOnce, source: StoredSource, wanted: Relation) -> Groups:
    """From the source itself, or from what was rolled up of it already."""
    # A pass takes groups of what is wanted: those of what is stored stand in several passes.
    by = wanted if merged.share.passes > 1 else None
    made = merged.made(source, by)
    rows = min((groups for fine, groups in made if rolls_up(fine, wanted)), key=len)
    rolled, at = rolled_up(rows, wanted)
    made.append((wanted, rolled))
    merged.rolled(rows, rolled, at)
    return rolled


def rolled_up(groups: Groups, wanted: Relation) -> tuple[Groups, Array]:
    """Groups merged into coarser ones, and which of those each is in; `panes`, which are windows here, stay."""
    coarse = with_keys_of(groups, wanted)
    if _tells_apart(groups, wanted):
        return coarse, np.arange(len(groups))
    return regrouped(wanted, coarse, groups.panes)


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


def coarser(
    name: Component, drop: int, known: Mapping[Component, Array], dictionaries: dict[Component, Dictionary]
) -> Array:
    """A component of a coarser key; the dictionary of a prefix is added to the others."""
    finer = finer_component(name, known)
    if finer == name:
        return known[name] >> drop << drop if drop else known[name]
    dictionaries[name], codes = cut_dictionary(dictionaries[finer], name.length)
    cut: Array = codes[known[finer]]
    return cut
