"""Groups of a coarser relation from those of a finer one, when a window closes.

    merged groups of a stored relation ──► coarser keys ──► merged again ──► finish

`src/8` is made of `src` by cutting the keys and merging what is then equal. Of several relations that can be rolled up
to the same one, that with the fewest groups is taken: `src/8` comes from `src/16` where that was made already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from penstock.kernels.dictionary import Dictionary
from penstock.relations.closing import rolls_up
from penstock.relations.component import Component
from penstock.relations.relation import Relation
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.merge import Share, merge, regroup
from penstock.runtime.merge.prefixes import cut_dictionary, finer_component
from penstock.state.segments.groups import Groups
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray


class Closer:
    """The groups of an item's windows, as each of its queries wants them: merged once, then rolled up."""

    def __init__(
        self, sources: tuple[StoredSource, ...], share: Share, merged: Callable[[StoredSource, Share], Groups]
    ) -> None:
        self._sources, self._share, self._merge = sources, share, merged
        self._merged: dict[tuple[str, Relation | None], Groups] = {}
        self._made: dict[str, list[tuple[Relation, Groups]]] = {}  # by source, what was rolled up from it

    def groups(self, wanted: Relation) -> Groups:
        """Of a query that wants this relation; what several sources have of it is merged."""
        found = [self._of(source, wanted) for source in self._sources]
        if len(found) == 1:
            return found[0]
        pieces = [Piece(GroupRows(groups), groups.panes) for groups in found if len(groups)]
        return merge(wanted, pieces, None, Vocabulary())

    def _of(self, source: StoredSource, wanted: Relation) -> Groups:
        relation = source.relation
        if relation.attributes == wanted.attributes:
            return self._whole(source, None)
        # A pass takes groups of what is wanted: those of what is stored stand in several passes.
        by = wanted if self._share.passes > 1 else None
        made = self._made.setdefault(f"{relation.name} {'' if by is None else by.name}", [])
        if not made:
            made.append((relation, self._whole(source, by)))
        candidates = [groups for fine, groups in made if rolls_up(fine, wanted)]
        rolled = rolled_up(min(candidates, key=len), wanted)
        made.append((wanted, rolled))
        return rolled

    def _whole(self, source: StoredSource, by: Relation | None) -> Groups:
        key = source.relation.name, by
        if key not in self._merged:
            self._merged[key] = self._merge(source, replace(self._share, by=by))
        return self._merged[key]


def rolled_up(groups: Groups, wanted: Relation) -> Groups:
    """Groups merged into coarser ones; `panes`, which are windows here, stay."""
    components, dictionaries = {}, dict(groups.dictionaries)
    for part in wanted.parts[1:]:
        name = part.component
        components[name] = coarser(name, part.drop, groups.components, dictionaries)
    states = {state: groups.states[state] for state in wanted.states if state in groups.states}
    finer = Groups(groups.panes, components, dictionaries, groups.count, states)
    return regroup(wanted, finer, groups.panes)


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
