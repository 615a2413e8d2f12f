"""From the relations that an item reads to the groups that each of its queries is finished from.

    MergedOnce ──► the closing of a query from each of its sources (CLOSERS) ──► what several sources have, merged

A new closing is a function in a module of its own, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from penstock.relations.closing import Closing, Finish, RollUp, closing_of
from penstock.relations.relation import Relation
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.items import Part
from penstock.runtime.merge.merge import merge
from penstock.runtime.merge.once import MergedOnce
from penstock.runtime.merge.rolling.rollup import close_rolled_up
from penstock.runtime.meter import ROLL
from penstock.state.segments.groups import Groups
from penstock.state.segments.vocabulary import Vocabulary

Closer = Callable[[MergedOnce, StoredSource, Relation], Groups]


def close_finished(merged: MergedOnce, source: StoredSource, wanted: Relation) -> Groups:
    """The groups as they are stored."""
    # A pass takes the same rows of all sources: by keys in the same order.
    by = wanted if merged.share.passes > 1 and wanted.parts != source.relation.parts else None
    return merged.merged(source, by)


CLOSERS: Mapping[type[Closing], Closer] = {Finish: close_finished, RollUp: close_rolled_up}


def closed_groups(merged: MergedOnce, sources: Sequence[StoredSource], wanted: Relation) -> Groups:
    """Of a query that is finished from the relation `wanted`."""
    found = [CLOSERS[type(closing_of(wanted, source.relation))](merged, source, wanted) for source in sources]
    return joined_groups(found, wanted)


def lead_of(merged: MergedOnce, part: Part) -> str:
    """What stored rows are brought in order by, or told by, for a query that is rolled up from them."""
    if len(part.sources) != 1 or not isinstance(closing_of(part.wanted, part.sources[0].relation), RollUp):
        return ""
    by = merged.told_by(part.wanted)
    if by is not None:
        return by.name
    if not part.sources[0].relation.sieved:
        return ""
    source = part.sources[0]
    with merged.meter.part(source.relation.name, ROLL):
        return merged.rows(source, part.wanted).rolling.taken(part.wanted.choice).lead(part.wanted)


def joined_groups(found: Sequence[Groups], wanted: Relation) -> Groups:
    """Groups of several as those of one."""
    if len(found) == 1:
        return found[0]
    pieces = [Piece(GroupRows(groups), groups.panes) for groups in found if len(groups)]
    return merge(wanted, pieces, None, Vocabulary())
