"""Queries of one item shared out to tasks, so that each has about as much to do.

Queries of one lead stay together: rows are brought in order by it once. A query takes longer the more groups it has.
How many, its windows before have told; where there were none, or HAVING or LIMIT dropped some, the index of what is
stored tells how many keys there may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from math import prod

from penstock.logical.query import Attribute
from penstock.relations.relation import attribute_text
from penstock.runtime.merge.items import Due, Wanting
from penstock.runtime.merge.rolling.passes import spread
from penstock.state.protocol import Results

# What a row takes of a query whose keys have a place each, and of one that is stamped (`rolling._stamped`); what a
# group of that takes besides.
BY_PLACE, STAMPED, GROUP = 1.0, 3.0, 3.0
UNKNOWN = 1 << 62  # keys that there may be, of many wide attributes: their product may be beyond all floats
MANY = 1 / 5  # groups to a row: there are rarely places for so many


def dealt(one: Due, wanting: Sequence[Wanting], parts: int, before: Mapping[str, Results]) -> Iterator[tuple[str, ...]]:
    """The names of the queries of each part that has any."""
    relation, spreads = one.reading.sources[0].relation, dict[Attribute, int]()
    for each in wanting:
        for attribute in each.groups.wanted.attributes:
            if attribute not in spreads:
                spreads[attribute] = spread(attribute, relation, one.blocks)
    rows = max(1, int(one.rows.max(initial=0)))
    weights = [_weight(_groups(each, spreads, before) / rows) for each in wanting]
    order = sorted(range(len(wanting)), key=lambda number: (_lead(wanting[number], spreads), number))
    edges = [0.0, *accumulate(weights[number] for number in order)]
    found: list[list[int]] = [[] for _ in range(parts)]
    for number, (low, high) in zip(order, pairwise(edges), strict=True):
        found[int((low + high) / 2 * parts / edges[-1])].append(number)  # where its middle falls
    for numbers in found:
        if numbers:
            yield tuple(wanting[number].query.name for number in sorted(numbers))


def _weight(share: float) -> float:
    """Of a query that has so many groups to a row."""
    return BY_PLACE if share < MANY else STAMPED + GROUP * min(1.0, share)


def _groups(one: Wanting, spreads: Mapping[Attribute, int], before: Mapping[str, Results]) -> float:
    """Of a window, about."""
    query, known = one.query, before.get(one.query.name)
    if known is not None and known.windows and query.having is None and query.limit is None:
        return known.rows / known.windows
    return float(min(UNKNOWN, prod(spreads[attribute] for attribute in one.groups.wanted.attributes)))


def _lead(one: Wanting, spreads: Mapping[Attribute, int]) -> tuple[int, str]:
    """The attribute that has the most values; queries of those that have more come first, those of no key last."""
    attributes = one.groups.wanted.attributes
    if not attributes:
        return 0, ""
    lead = max(attributes, key=lambda attribute: (spreads[attribute], attribute_text(attribute)))
    return -spreads[lead], attribute_text(lead)
