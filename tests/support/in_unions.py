"""Relations stored as one, any of those that may be."""

from __future__ import annotations

import random

from penstock.relations.relation import APPEND, EXACT
from penstock.relations.storing import Stored
from penstock.relations.uniting import Union, unitable, united


def random_unions(kept: Stored, rng: random.Random) -> tuple[Union, ...]:
    """Some of the relations that may stand in one, in up to two unions, each of either table."""
    unions = []
    for relations in unitable(kept):
        parts: dict[int, list[str]] = {}
        for relation in relations:
            parts.setdefault(rng.randrange(3), []).append(relation.name)
        found = (sorted(names) for number, names in parts.items() if number and len(names) > 1)
        unions += [Union(tuple(names), rng.choice((EXACT, APPEND))) for names in found]
    return tuple(sorted(unions, key=lambda one: one.relations))


def in_unions(kept: Stored, rng: random.Random) -> Stored:
    """What is stored, with random unions in it."""
    return united(kept, random_unions(kept, rng))
