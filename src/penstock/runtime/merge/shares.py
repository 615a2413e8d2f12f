"""Passes: each takes some of the rows, by the hash of their keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.relations.component import WHOLE
from penstock.relations.relation import Relation
from penstock.runtime.merge.inputs import Piece
from penstock.runtime.merge.prefixes import finer_component, prefix_hashes
from penstock.state.segments.groups import canonical_hashes

Array = np.ndarray
PASS_SHIFT = 40  # hash bits below the slot's that split one slot into passes


@dataclass(frozen=True)
class Share:
    """One of several passes over the same rows: those whose finer hash bits give `turn`; the hash is that of the keys
    of another, coarser relation where they are to be rolled up to it (`by`). `partial`: groups may be rolled up from
    rows of several passes."""

    turn: int = 0
    passes: int = 1
    by: Relation | None = None
    partial: bool = False


def of_pass(relation: Relation, piece: Piece, share: Share) -> Piece:
    """The rows of a piece that belong to a pass."""
    return piece.only(np.flatnonzero(turns_of(relation, piece, share) == share.turn))


def turns_of(relation: Relation, piece: Piece, share: Share) -> Array:
    """The pass that each row of a piece belongs to."""
    wanted = share.by or relation
    coded, stored = wanted.coded_parts, [part.component for part in relation.parts]
    components, by_code = {}, {}
    for part in wanted.parts[1:]:
        name = part.component
        finer = finer_component(name, stored)
        values = piece.column(finer.text)
        components[name] = values >> part.drop << part.drop if part.drop else values
        if name in coded:
            by_code[name] = prefix_hashes(piece.rows.dictionary(finer), name.length if finer != name else WHOLE)
    hashes = canonical_hashes(components, by_code, len(piece))
    return ((hashes >> np.uint64(PASS_SHIFT)) % np.uint64(share.passes)).astype(np.int64)
