"""Relations stored as one, any of those that may be."""

from __future__ import annotations

import random

from penstock.relations.relation import APPEND, EXACT
from penstock.relations.storing import Stored
from penstock.relations.uniting import Union, unitable, united


def in_unions(kept: Stored, rng: random.Random) -> Stored:
    """What is stored, with random unions in it."""
    unions = []
    for relations in unitable(kept):
        parts: dict[int, list[str]] = {}
        for relation in relations:
            parts.setdefault(rng.randrange(3), []).append(relation.name)
        unions += [Union(tuple(names), rng.choice((EXACT, APPEND))) for number, names in parts.items() if number]
    return united(kept, unions)
