"""Relations that are stored by appending, at random: answers must not depend on it."""

from __future__ import annotations

import random
from dataclasses import replace

from penstock.relations.closing import Closing, Finish
from penstock.relations.relation import APPEND, Relation, named
from penstock.relations.storing import Stored


def appended(stored: Stored, rng: random.Random, part: float = 0.5) -> Stored:
    """The same with some of the relations appended."""
    chosen = {r.name: named(replace(r, table=APPEND)) for r in stored.relations if rng.random() < part}
    relations = tuple(chosen.get(relation.name, relation) for relation in stored.relations if relation.booked)
    bounds = tuple(relation for relation in stored.relations if not relation.booked)
    readers = tuple(
        replace(
            reader,
            closing=_closing(reader.closing, chosen),
            details=tuple(_closing(detail, chosen) for detail in reader.details),
        )
        for reader in stored.readers
    )
    # A side that is late already may be what another one becomes.
    return Stored((*dict.fromkeys(relations), *bounds), readers)


def _closing(closing: Closing, chosen: dict[str, Relation]) -> Closing:
    if closing.relation not in chosen:
        return closing
    name = chosen[closing.relation].name
    return Finish(name) if isinstance(closing, Finish) else replace(closing, relation=name)
