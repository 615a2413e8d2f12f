"""The feeding graph: candidate relations, who can feed whom, and the phantoms worth considering.

Seed smap, Sec. 2.6 and Fig. 4.  Choosing phantoms asks thousands of times for the parents of a chosen set, so the
graph keeps grains as bit sets (a base at its third fineness has three bits: union is `|`, feeding is inclusion)
and relations in the order in which they are preferred as parents: the best parent of a relation is then the lowest
bit of `chosen & feeders`.  `configuration.arrange` uses it for one set, `choice` for many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from penstock.sharing.graph.grain import Grain, fineness

# More candidates than this are not looked at: their number doubles with every attribute.
MOST_CANDIDATES = 400


@dataclass(frozen=True)
class FeedingGraph:
    """Relations, those that pass on the fewest records first, so that a lower number is the better parent.

    `feeders[r]` has a bit for every relation that strictly feeds r; `order` lists all, feeders before fed.
    """

    relations: tuple[Grain, ...]
    feeders: tuple[int, ...]
    order: tuple[int, ...]
    numbers: Mapping[Grain, int]

    def mask(self, grains: Iterable[Grain]) -> int:
        return sum(1 << self.numbers[grain] for grain in set(grains))


def feeding_graph(grains: Iterable[Grain], passes: Callable[[Grain], float]) -> FeedingGraph:
    """The graph of these relations; `passes` tells how many records each would pass on."""
    distinct = tuple(dict.fromkeys(grains))
    # Ties: the coarser one is the nearer parent; the names make plans repeatable.
    relations = tuple(sorted(distinct, key=lambda grain: (passes(grain), fineness(grain), sorted(grain))))
    codes = list(encode(relations).values())
    feeders = tuple(
        sum(1 << number for number, fine in enumerate(codes) if fine & code == code and fine != code) for code in codes
    )
    order = sorted(range(len(relations)), key=lambda number: (-fineness(relations[number]), number))
    return FeedingGraph(relations, feeders, tuple(order), {grain: n for n, grain in enumerate(relations)})


def consistent(groups: Mapping[Grain, float]) -> dict[Grain, float]:
    """Each number raised to the largest of those that the relation feeds: fewer groups than these it cannot have.

    Estimates may say otherwise; by them alone, a relation might prefer a parent's parent to the parent.
    """
    codes = encode(groups)
    known = [(codes[grain], count) for grain, count in groups.items()]
    return {grain: max(count for code, count in known if code & fine == code) for grain, fine in codes.items()}


def candidates(queries: Iterable[Grain], most: int = MOST_CANDIDATES) -> list[Grain]:
    """Every union of two or more queries that is no query itself (seed smap, Sec. 2.6).

    Unions of few queries come first and, where there are more than `most`, the rest is left out but for the union
    of all, which many phantoms need above them.
    """
    codes = encode(queries)
    base = set(codes.values())
    found: dict[int, None] = dict.fromkeys(base)
    edge = list(base)
    whole = 0
    for code in base:
        whole |= code
    while edge and len(found) <= most + len(base):
        wider = {code | query for code in edge for query in base}
        edge = sorted(wider - found.keys())
        found.update(dict.fromkeys(edge))
    phantoms = [code for code in found if code not in base]
    if len(phantoms) > most:
        phantoms = [whole, *(code for code in phantoms[: most - 1] if code != whole)]
    grain_of = decoder(codes)
    return [grain_of(code) for code in phantoms if code not in base]


def encode(grains: Iterable[Grain]) -> dict[Grain, int]:
    """Each grain as bits: a base takes as many as it occurs in different finenesses, the finest has all of them."""
    grains = list(grains)
    places = _places(grains)
    return {grain: sum(places[entry] for entry in grain) for grain in grains}


def _places(grains: Iterable[Grain]) -> dict[tuple[str, int], int]:
    places: dict[tuple[str, int], int] = {}
    last, bits, next_bit = "", 0, 1
    for base, kept in sorted({entry for grain in grains for entry in grain}):
        bits = (bits if base == last else 0) | next_bit
        places[base, kept] = bits
        last, next_bit = base, next_bit << 1
    return places


def decoder(codes: Mapping[Grain, int]) -> Callable[[int], Grain]:
    """The grain of any union of encoded ones."""
    places = _places(codes)

    def decode(code: int) -> Grain:
        # Sorted by fineness, so the finest that the code has comes last and stays.
        return frozenset({base: kept for (base, kept), bits in places.items() if code & bits == bits}.items())

    return decode
