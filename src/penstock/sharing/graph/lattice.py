"""Relations as grains: what of a relation decides which tables can feed it, and how its groups are counted.

A grain (`sharing.graph.grain`) has for each base how fine it is. The bases of a relation are:

| base | is as fine as |
| --- | --- |
| grouping columns, `value:…` | a prefix is long; a whole column is `WHOLE` |
| panes | their place in a chain that nests: the finest tells all others |
| records it takes, `sieve:…` | `EVERY` where it takes all; else named after the first relation that takes the same |

A phantom is a union of grains: its key tells apart all that any relation below it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.logical.expressions import Column, Computed, Prefix
from penstock.logical.query import WEIGHT, Attribute
from penstock.logical.window import Panes
from penstock.relations.component import Tag, component_of, pane_component, sieve_component, value_component
from penstock.relations.layout import Part
from penstock.relations.relation import Relation, attribute_parts
from penstock.sharing.graph.grain import Grain

WHOLE = 129
EVERY = sieve_component("").text
Entry = tuple[str, int]


@dataclass(frozen=True)
class Lattice:
    """The queries of a stream as grains; `columns` by base, `panes` by base and fineness."""

    grains: Mapping[str, Grain]
    columns: Mapping[str, Column | Computed]
    panes: Mapping[Entry, Panes]
    _parts: dict[Entry, tuple[Part, ...]] = field(default_factory=dict, repr=False, compare=False)

    def parts(self, grain: Grain) -> tuple[Part, ...]:
        """The parts of a key that tell its groups apart: no two bases have one in common."""
        return tuple(part for entry in sorted(grain) for part in self._of(entry))

    def _of(self, entry: Entry) -> tuple[Part, ...]:
        if entry not in self._parts:
            base, fineness = entry
            if base in self.columns:
                found = attribute_parts(_attribute(self.columns[base], fineness))
            elif entry in self.panes:
                found = (Part(pane_component(self.panes[entry])),)
            else:
                found = () if base == EVERY else (Part(component_of(base)),)
            self._parts[entry] = found
        return self._parts[entry]


def lattice(relations: Iterable[Relation]) -> Lattice:
    relations = [relation for relation in relations if relation.booked]
    chosen, nested = choosers(relations), _nested({relation.panes for relation in relations})
    whole = (a.column if isinstance(a, Prefix) else a for r in relations for a in r.attributes)
    return Lattice(
        {r.name: _grain(r, chosen[r.name], nested[r.panes]) for r in relations},
        {value_component(column.name).text: column for column in whole},
        {entry: panes for panes, entry in nested.items()},
    )


def choosers(relations: Iterable[Relation]) -> dict[str, str]:
    """For each relation the first that chooses the same records, as long as none of them is late."""
    return alike((r.name, (r.choice.where, r.choice.gap)) for r in relations if r.booked)


def alike(choices: Iterable[tuple[str, object]]) -> dict[str, str]:
    """For each name the first one whose choice is equal."""
    first: dict[object, str] = {}
    return {name: first.setdefault(choice, name) for name, choice in choices}


def _nested(panes: Iterable[Panes]) -> dict[Panes, Entry]:
    """Panes that nest are one base: the finest of a chain tells those of all others, at no more groups."""
    found: dict[Panes, Entry] = {}
    chains: list[Panes] = []  # the finest of each
    for pane in sorted(panes, key=lambda pane: (pane.axis, -pane.slide, pane.cut)):
        for number, finest in enumerate(chains):
            if pane.axis == finest.axis and not finest.cut and not pane.cut and finest.slide % pane.slide == 0:
                base, rank = found[finest]
                found[pane], chains[number] = (base, rank + 1), pane
                break
        else:
            found[pane] = (f"panes:{len(chains)}", 1)
            chains.append(pane)
    return found


def _grain(relation: Relation, chooser: str, panes: Entry) -> Grain:
    fine = dict([panes])
    for attribute in relation.attributes:
        column, length = (attribute.column, attribute.length) if isinstance(attribute, Prefix) else (attribute, WHOLE)
        base = value_component(column.name).text
        fine[base] = max(length, fine.get(base, 0))
    everything = relation.choice.where is None and relation.choice.gap is None
    fine[EVERY if everything else sieve_component(chooser).text] = 1
    return frozenset(fine.items())


def _attribute(column: Column | Computed, fineness: int) -> Attribute:
    return Prefix(column, fineness) if fineness < WHOLE and isinstance(column, Column) else column


def name_of(grain: Grain) -> str:
    """Grouping columns of a grain, as the configuration names a phantom: `src.dst/24.dport`."""
    named = [
        component_of(base).of.removeprefix("=") + (f"/{fineness}" if fineness < WHOLE else "")
        for base, fineness in sorted(grain)
        if base.startswith(Tag.VALUE) and component_of(base).of != WEIGHT.name  # that is no one's choice
    ]
    return ".".join(named) or "all"
