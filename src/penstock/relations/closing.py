"""Closings: how the result of a query's window is made of stored relations.

A relation is what is stored; a query is what is computed from relations when a window closes. HAVING, the select list,
ORDER BY and LIMIT follow the closing, whatever it is.

| closing | the groups of a window are |
| --- | --- |
| `Finish` | those of the relation |
| `RollUp` | those of a finer relation, merged into coarser ones: `src/8` from `src` |

`closing_of` decides, `runtime.merge.closer` has the function that each is carried out by.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from penstock.logical.expressions import Prefix
from penstock.logical.query import Attribute
from penstock.logical.window import Window
from penstock.relations.relation import Choice, Relation


@dataclass(frozen=True)
class Finish:
    """`relation` is the name of the one that is stored."""

    how: ClassVar[str] = "finish"
    relation: str


@dataclass(frozen=True)
class RollUp:
    """`to` is what the query would be finished from."""

    how: ClassVar[str] = "roll up"
    relation: str
    to: Relation


Closing = Finish | RollUp


@dataclass(frozen=True)
class Reader:
    """A query as tasks and planning see it: which records it takes, what it groups them by, in its own order, from what
    it closes, and from what its details come; `asked` are the aggregates that need each of those, as text. Of a side of
    a join, `joined` says with what and by what. `ordered`: its results are put in order."""

    query: str
    window: Window
    choice: Choice
    keys: tuple[Attribute, ...]
    closing: Closing
    details: tuple[Closing, ...] = ()
    asked: tuple[tuple[str, ...], ...] = ()
    joined: str = ""
    ordered: bool = False

    def asks(self, relation: str) -> tuple[str, ...]:
        """The aggregates that are made of the rows of a relation."""
        each = zip(self.details, self.asked, strict=True)
        return tuple(text for detail, texts in each if detail.relation == relation for text in texts)

    @property
    def relations(self) -> tuple[str, ...]:
        """All that it reads, each once."""
        return tuple(dict.fromkeys(one.relation for one in (self.closing, *self.details)))


def part_name(query: str, number: int) -> str:
    """What a query reads first, its groups, goes by its name; details have numbers."""
    return f"{query}#{number}" if number else query


def closing_of(wanted: Relation, stored: Relation) -> Closing:
    """How a query that wants one relation closes from another that is stored."""
    same = wanted.key == stored.key and not stored.sieved and wanted.panes == stored.panes
    return Finish(stored.name) if same else RollUp(stored.name, wanted)


def slots_hold(groups: Relation, read: Iterable[Relation]) -> bool:
    """Whether all that a group is made of stands in one slot, the same in all relations that are read."""
    found = {relation.slot_parts for relation in read}
    return len(found) == 1 and found.pop() <= set(groups.parts)


def rolls_up(fine: Relation, coarse: Relation) -> bool:
    """Whether groups of `coarse` can be made of those of `fine`, record for record, in the same panes."""
    return fine.panes == coarse.panes and rolls_up_in_windows(fine, coarse)


def rolls_up_in_windows(fine: Relation, coarse: Relation) -> bool:
    """The same of groups that stand by window, whatever panes they came from."""
    return (
        coarse.grouped <= fine.grouped  # most are told apart by this, and a merge asks for all pairs of queries
        and alike(fine, coarse)
        and set(coarse.states) <= set(fine.states)
        and all(any(tells(known, wanted) for known in fine.attributes) for wanted in coarse.attributes)
    )


def alike(one: Relation, other: Relation) -> bool:
    """Whether one relation has the records of another, told apart from others."""
    if one.choice != other.choice and other.choice not in one.choices:
        return False
    return (one.stream, one.landmark, one.booked, one.loss, one.of) == (
        other.stream, other.landmark, other.booked, other.loss, other.of,
    )  # fmt: skip


def tells(known: Attribute, wanted: Attribute) -> bool:
    """Whether the value of one attribute follows from that of another: a prefix from all longer ones."""
    if isinstance(wanted, Prefix):
        column, length = wanted.column, wanted.length
        return known == column or (isinstance(known, Prefix) and known.column == column and known.length >= length)
    return known == wanted
