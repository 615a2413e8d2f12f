"""Which tuples of a chunk reach which relation, and the account of those that do not.

A tuple is judged for a query in this order: malformed (no usable time, or a bad value in a column that the
query reads), filtered (WHERE is not true, or it lies in a gap between windows), late (all its windows are closed),
exact. Relations that judge alike share one selection; every WHERE is evaluated once per chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock.logical.expressions import Expression
from penstock.logical.window import ROWS
from penstock.relations.relation import BOUNDS, Relation
from penstock.runtime.epoch import Epoch, cutoff
from penstock.runtime.expressions.evaluate import Scope, truth
from penstock.runtime.task.columns import Ingested
from penstock.state import account
from penstock.state.account import Entry

Array = np.ndarray


@dataclass(frozen=True)
class Judgement:
    """What decides about a tuple, for all relations that judge alike."""

    where: Expression | None
    bad: frozenset[str]  # columns read that hold bad values in this chunk
    axis: str
    cutoff: int | None  # tuples before it are late
    gap: tuple[int, int] | None  # (slide, length) where some places lie in no window


@dataclass(frozen=True)
class Alike:
    """Queries that judge alike. Equal WHEREs have the same number: looking one up by itself would hash all of it."""

    judgement: Judgement
    where: int
    queries: tuple[str, ...]
    booked: bool


@dataclass
class Ledger:
    """Counts of one task. `reasons` counts bad values and records, `places` has the rows of the first of each."""

    stream: Entry = field(default_factory=Entry)
    queries: dict[str, Entry] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[int]] = field(default_factory=dict)

    def blame(self, reason: str, bad: Array, row: int) -> None:
        """Book the records marked in `bad`, of a chunk whose first one is `row`."""
        count = int(np.count_nonzero(bad))
        if count:
            self.reasons[reason] = self.reasons.get(reason, 0) + count
            known = self.places.setdefault(reason, [])
            if len(known) < account.PLACES:
                known += (np.flatnonzero(bad)[: account.PLACES - len(known)] + row).tolist()


@dataclass(frozen=True)
class Tuples:
    """A chunk as it is judged: its places on both axes, which tuples have a usable time (None: all)."""

    time: Array
    rows: Array
    timely: Array | None
    columns: Mapping[str, Ingested]
    scope: Scope


class Selector:
    """Judges chunk after chunk; `ledger` holds the account so far."""

    def __init__(self, relations: tuple[Relation, ...], epoch: Epoch) -> None:
        self.ledger = Ledger(queries={r.query: Entry() for r in relations if _booked(r)})
        self._relations = relations
        self.start(epoch)

    def start(self, epoch: Epoch) -> None:
        """Judge by this epoch from now on: again when the stream's first tuple is known."""
        self._judgements = {relation.query: _judgement(relation, epoch) for relation in self._relations}
        self._usual = self._grouped(frozenset())

    def _grouped(self, bad: frozenset[str]) -> list[Alike]:
        """Relations that judge alike, where these columns hold bad values."""
        alike: dict[Judgement, list[Relation]] = {}
        for relation in self._relations:
            judgement = _with_bad(self._judgements[relation.query], relation.columns & bad)
            alike.setdefault(judgement, []).append(relation)
        wheres = {where: number for number, where in enumerate(dict.fromkeys(judgement.where for judgement in alike))}
        return [
            Alike(judgement, wheres[judgement.where], tuple(r.query for r in relations), any(map(_booked, relations)))
            for judgement, relations in alike.items()
        ]

    def select(self, tuples: Tuples) -> dict[str, Array | None]:
        """For each relation which tuples are its own (None: all); books the chunk."""
        n = len(tuples.time)
        chosen: dict[str, Array | None] = {}
        entries: dict[str, Entry] = {}
        bad = frozenset(name for name, column in tuples.columns.items() if column.bad is not None)
        fates = Fates(n)
        where: dict[int, Array | None] = {}
        for alike in self._grouped(bad) if bad else self._usual:
            judgement = alike.judgement
            if alike.where not in where:
                where[alike.where] = None if judgement.where is None else truth(judgement.where, tuples.scope)
            sound = _sound(judgement, tuples)
            passed = _and(_and(sound, where[alike.where]), _covered(judgement, tuples))
            exact = _and(passed, _in_time(judgement, tuples))
            sounds, passes, exacts = _count(sound, n), _count(passed, n), _count(exact, n)
            entry = account.entry(n, exacts, passes - exacts, sounds - passes)
            kept = None if exacts == n else exact
            for query in alike.queries:
                chosen[query], entries[query] = kept, entry
            if alike.booked:
                fates.book(sound, passed, exact)
        self._book(fates, entries)
        return chosen

    def _book(self, fates: Fates, entries: dict[str, Entry]) -> None:
        ledger = self.ledger
        ledger.stream += fates.entry()
        for query in ledger.queries:
            ledger.queries[query] += entries[query]


def _booked(relation: Relation) -> bool:
    return not relation.query.startswith(BOUNDS)


def _judgement(relation: Relation, epoch: Epoch) -> Judgement:
    window = relation.window
    gap = (window.slide, window.length) if window.gaps and _booked(relation) else None
    return Judgement(relation.where, frozenset(), window.axis, cutoff(window, epoch, relation.query), gap)


def _with_bad(judgement: Judgement, bad: frozenset[str]) -> Judgement:
    return replace(judgement, bad=bad) if bad else judgement


class Fates:
    """The stream's account of a chunk: for each tuple the best that any query says of it."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._sound: Array | None = np.zeros(rows, bool)
        self._passed: Array | None = np.zeros(rows, bool)
        self._exact: Array | None = np.zeros(rows, bool)

    def book(self, sound: Array | None, passed: Array | None, exact: Array | None) -> None:
        self._sound, self._passed, self._exact = (
            _or(self._sound, sound), _or(self._passed, passed), _or(self._exact, exact)
        )  # fmt: skip

    def entry(self) -> Entry:
        # exact ⊂ passed ⊂ sound for every query, hence for their unions.
        sound, passed, exact = (_count(mask, self._rows) for mask in (self._sound, self._passed, self._exact))
        return account.entry(self._rows, exact, passed - exact, sound - passed)


def _places(judgement: Judgement, tuples: Tuples) -> Array:
    return tuples.rows if judgement.axis == ROWS else tuples.time


def _sound(judgement: Judgement, tuples: Tuples) -> Array | None:
    sound = tuples.timely
    for name in sorted(judgement.bad):
        bad: Any = tuples.columns[name].bad
        sound = _and(sound, ~bad)
    return sound


def _covered(judgement: Judgement, tuples: Tuples) -> Array | None:
    if judgement.gap is None:
        return None
    slide, length = judgement.gap
    inside: Array = _places(judgement, tuples) % slide < length
    return inside


def _in_time(judgement: Judgement, tuples: Tuples) -> Array | None:
    return None if judgement.cutoff is None else _places(judgement, tuples) >= judgement.cutoff


def _and(one: Array | None, other: Array | None) -> Array | None:
    """Masks where None stands for all rows."""
    if one is None or other is None:
        return other if one is None else one
    both: Array = one & other
    return both


def _or(one: Array | None, other: Array | None) -> Array | None:
    return None if one is None or other is None else one | other


def _count(mask: Array | None, rows: int) -> int:
    return rows if mask is None else int(np.count_nonzero(mask))


def sieves(relations: tuple[Relation, ...], epoch: Epoch) -> dict[str, str]:
    """For each relation the first that always chooses the same tuples."""
    first: dict[Any, str] = {}
    return {
        r.query: first.setdefault((r.where, r.columns, r.window, epoch.origins.get(r.query), _booked(r)), r.query)
        for r in relations
    }
