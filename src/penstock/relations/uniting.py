"""Several relations stored as one, from which their queries are rolled up when a window closes.

    kept (by rule) ──► unitable: which may stand in one ──► chosen by cost (`sharing.unions`) ──► united

The *union* of relations groups by all their attributes and keeps all their states. Its records cost one row behind the
tables of a task, however many queries are rolled up from it; and its groups are as many as those of all attributes
together. Whether that pays is for `sharing` to say. Relations that choose records differently because of the columns
that their queries read are told apart by a bit of each row (`Relation.sieved`). Where some have longer panes than
others the union has the shortest, of which those of all others are made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from penstock.logical.expressions import Prefix
from penstock.logical.query import WEIGHT, Attribute
from penstock.logical.window import TIME, Panes
from penstock.relations.closing import Reader, RollUp, tells
from penstock.relations.relation import APPEND, EXACT, Choice, Relation, attribute_text, choice_text, named
from penstock.relations.storing import Stored


@dataclass(frozen=True)
class Union:
    """Relations, by name, that are stored as one, and by which table: an exact one, or rows without a probe."""

    relations: tuple[str, ...]
    table: str = EXACT


def unitable(kept: Stored) -> list[tuple[Relation, ...]]:
    """Relations that may stand in one, any of them with each other. Those of joins, of details and of landmark windows
    stay alone: their rows must stand where others of the same key do, or are kept for as long as the stream. Of any
    two the panes of one are made of those of the other."""
    found: dict[object, list[list[Relation]]] = {}
    for relation in sorted(filter(_plain, kept.relations), key=lambda one: -one.panes.slide):
        if all(_follows(reader) for reader in kept.reading(relation.name)):
            chains = found.setdefault((relation.choice.where, relation.choice.gap), [])
            chain = next((one for one in chains if _cut_again(one[-1].panes, relation.panes)), None)
            if chain is None:
                chains.append([relation])
            else:
                chain.append(relation)
    place = {relation.name: number for number, relation in enumerate(kept.relations)}
    return [
        tuple(sorted(chain, key=lambda one: place[one.name]))
        for chains in found.values()
        for chain in chains
        if len(chain) > 1
    ]


def _cut_again(panes: Panes, finer: Panes) -> bool:
    """Whether windows of these panes may as well be made of others."""
    return panes == finer or (panes.axis == TIME and panes.made_of(finer))


def _plain(relation: Relation) -> bool:
    alone = relation.slots is not None or relation.loss is not None or relation.landmark is not None or relation.of
    exact = relation.booked and relation.table == EXACT
    return exact and not alone and WEIGHT not in relation.attributes


def _follows(reader: Reader) -> bool:
    """Whether a query is made of one relation alone, and of whole panes that can be cut again."""
    window = reader.window
    if reader.details or reader.joined or window.whole or window.counted or window.landmark:
        return False
    return window.tumbling or (window.axis == TIME and not window.panes.cut)


def united(kept: Stored, unions: Iterable[Union]) -> Stored:
    """The same with unions in place of the relations that they are made of; names that are gone are left out."""
    relations, readers = kept.relations, kept.readers
    for union in unions:
        parts = tuple(relation for relation in relations if relation.name in union.relations)
        if len(parts) > 1:
            whole = union_of(parts, union.table)
            first = relations.index(parts[0])
            others = [relation for relation in relations if relation not in parts]
            relations = (*others[:first], whole, *others[first:])
            readers = tuple(_moved(reader, parts, whole) for reader in readers)
    return Stored(relations, readers)


def union_of(parts: Collection[Relation], table: str = EXACT) -> Relation:
    """What several relations are stored as."""
    first = next(iter(parts))
    choices = {choice_text(one.choice): one.choice for one in parts}
    sieved = tuple(choices[text] for text in sorted(choices)) if len(choices) > 1 else ()
    columns = frozenset().union(*(one.choice.columns for one in parts))
    arguments = {argument for one in parts for argument in one.arguments}
    return named(
        replace(
            first,
            attributes=tuple(sorted(finest({a for one in parts for a in one.attributes}), key=attribute_text)),
            choice=Choice(first.choice.where, columns, first.choice.gap),
            arguments=tuple(sorted(arguments, key=lambda argument: argument.name)),
            states=tuple(sorted({state for one in parts for state in one.states})),
            panes=shortest(parts),
            table=table,
            slots=0 if table == APPEND else None,
            sieved=sieved,
        )
    )


def shortest(parts: Iterable[Relation]) -> Panes:
    """The panes that those of all of them are made of."""
    return min((one.panes for one in parts), key=lambda panes: panes.slide)


def finest(attributes: Collection[Attribute]) -> set[Attribute]:
    """Those that do not follow from others, as `src/8` does from `src`."""
    return {
        one
        for one in attributes
        if not isinstance(one, Prefix) or not any(tells(other, one) for other in attributes if other != one)
    }


def _moved(reader: Reader, parts: Collection[Relation], whole: Relation) -> Reader:
    """A reader of one of these, as a reader of the whole."""
    wanted = next((one for one in parts if one.name == reader.closing.relation), None)
    if wanted is None:
        return reader
    to = reader.closing.to if isinstance(reader.closing, RollUp) else wanted
    return replace(reader, closing=RollUp(whole.name, to))
