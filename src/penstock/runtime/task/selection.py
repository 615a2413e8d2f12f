"""Which records of a chunk are for which taker, and what becomes of the others: their *fate*.

A record is judged for a taker in this order:

| fate | because |
| --- | --- |
| malformed | it cannot be read, has no usable time for a window, or a bad value in a column that the taker reads |
| filtered | WHERE is not true, or it lies in a gap between windows |
| late | all its windows are closed |
| exact | it is aggregated |

Takers that judge alike share one fate; every WHERE is evaluated once per chunk. A taker decides about records; the
relation that stores them takes those that any of its takers takes (`Fates.taken`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from penstock.logical.expressions import Expression
from penstock.logical.window import Window
from penstock.relations.closing import Reader
from penstock.relations.relation import Choice, Relation
from penstock.relations.storing import Stored
from penstock.runtime.epoch import Epoch, cutoff
from penstock.runtime.expressions.evaluate import truth
from penstock.runtime.expressions.operands import both
from penstock.runtime.task.columns import Records
from penstock.sharing.graph.lattice import alike
from penstock.state import account
from penstock.state.account import Entry

Array = np.ndarray
Mask = Array | None  # None stands for all records


@dataclass(frozen=True)
class Taker:
    """Who takes records: a query, a side of a join, or what the engine keeps for itself. Only the former are `booked`
    in the account. What is late is what is late for `whose`."""

    name: str
    choice: Choice
    window: Window | None  # None: nothing is late
    axis: str
    whose: str
    booked: bool = True


def takers_of(stored: Stored) -> dict[str, tuple[Taker, ...]]:
    """By relation those whose records it stores."""
    return {relation.name: tuple(_takers(relation, stored)) for relation in stored.relations}


def _takers(relation: Relation, stored: Stored) -> Iterator[Taker]:
    readers = stored.reading(relation.name)
    for reader in readers:
        if relation.of:  # the last records, whatever is asked of them
            name = f"{relation.of} {relation.name}"
            yield Taker(name, relation.choice, reader.window, relation.panes.axis, relation.of, booked=False)
        else:
            yield _booked(reader)
    if not readers:
        landmark = next((one for one in stored.readers if _begins_with(one, relation, stored)), None)
        window, whose = (None, relation.name) if landmark is None else (landmark.window, landmark.query)
        yield Taker(relation.name, relation.choice, window, relation.panes.axis, whose, booked=False)


def _begins_with(reader: Reader, relation: Relation, stored: Stored) -> bool:
    """Whether the landmark window of a query begins where that of a relation does, which no query closes from."""
    if relation.landmark is None or not reader.window.landmark or reader.window.panes != relation.panes:
        return False
    return stored.of[reader.relations[0]].landmark == relation.landmark


def judges_of(stored: Stored) -> tuple[Taker, ...]:
    """Those who only judge: of records that are stored whatever they say."""
    alone = (reader for relation in stored.relations if relation.of for reader in stored.reading(relation.name))
    return tuple(_booked(reader) for reader in alone)


def _booked(reader: Reader) -> Taker:
    return Taker(reader.query, reader.choice, reader.window, reader.window.panes.axis, reader.query)


@dataclass(frozen=True)
class Judgement:
    """What decides about a record, for all takers that judge alike."""

    where: Expression | None
    bad: frozenset[str]  # columns read that hold bad values in this chunk
    axis: str
    cutoff: int | None  # records before it are late
    gap: tuple[int, int] | None  # (slide, length) where some places lie in no window


@dataclass(frozen=True)
class Alike:
    """Takers that judge alike. Equal WHEREs have the same number: looking one up by itself would hash all of it."""

    judgement: Judgement
    where: int
    takers: tuple[str, ...]
    booked: bool


@dataclass(frozen=True)
class Fate:
    """What becomes of a chunk's records. Each mask is a part of the one before it."""

    rows: int
    sound: Mask  # not malformed
    passed: Mask  # and not filtered
    exact: Mask  # and not late

    @cached_property
    def entry(self) -> Entry:
        """The same in numbers."""
        sound, passed, exact = (_count(mask, self.rows) for mask in (self.sound, self.passed, self.exact))
        return account.entry(self.rows, exact, passed - exact, sound - passed)

    @cached_property
    def taken(self) -> Mask:
        """The records to aggregate."""
        return None if self.entry.exact == self.rows else self.exact

    def best(self, other: Fate) -> Fate:
        """For each record the better of two fates."""
        return Fate(
            self.rows,
            either(self.sound, other.sound),
            either(self.passed, other.passed),
            either(self.exact, other.exact),
        )


class Fates:
    """The fates of a chunk's records, by taker."""

    def __init__(self, rows: int) -> None:
        nothing = np.zeros(rows, bool)
        self.of: dict[str, Fate] = {}
        self.stream = Fate(rows, nothing, nothing, nothing)  # the best that any booked taker says of a record
        self._taken: dict[frozenset[int], Mask] = {}

    def add(self, fate: Fate, takers: Iterable[str], booked: bool) -> None:
        self.of |= dict.fromkeys(takers, fate)
        if booked:
            self.stream = self.stream.best(fate)

    def taken(self, takers: Iterable[str]) -> Mask:
        """Records that any of these takers takes. Takers that judge alike get the same array."""
        fates = {id(self.of[taker]): self.of[taker] for taker in takers}
        key = frozenset(fates)
        if key not in self._taken:
            masks = [fate.taken for fate in fates.values()]
            found = masks[0]
            for mask in masks[1:]:
                found = either(found, mask)
            self._taken[key] = found
        return self._taken[key]


class Selection:
    """Judges chunk after chunk for these takers."""

    def __init__(self, takers: tuple[Taker, ...], epoch: Epoch) -> None:
        self._takers = takers
        self._begin(epoch)

    def _begin(self, epoch: Epoch) -> None:
        self._epoch = epoch
        self._judgements = {taker.name: _judgement(taker, epoch) for taker in self._takers}
        self._usual = self._grouped(frozenset())

    def _grouped(self, bad: frozenset[str]) -> list[Alike]:
        """Takers that judge alike, where these columns hold bad values."""
        groups: dict[Judgement, list[Taker]] = {}
        for taker in self._takers:
            judgement = _with_bad(self._judgements[taker.name], taker.choice.columns & bad)
            groups.setdefault(judgement, []).append(taker)
        wheres = {where: number for number, where in enumerate(dict.fromkeys(judgement.where for judgement in groups))}
        return [
            Alike(judgement, wheres[judgement.where], tuple(r.name for r in takers), any(r.booked for r in takers))
            for judgement, takers in groups.items()
        ]

    def judge(self, records: Records) -> Fates:
        """The fate of every record for every taker."""
        if self._epoch.first is None and self._epoch.ordered and records.first is not None:
            self._begin(replace(self._epoch, first=records.first))  # landmark windows begin here
        bad = frozenset(name for name, column in records.columns.items() if column.bad is not None)
        fates, where = Fates(len(records)), dict[int, Mask]()
        for group in self._grouped(bad) if bad else self._usual:
            judgement = group.judgement
            if group.where not in where:
                where[group.where] = None if judgement.where is None else truth(judgement.where, records.scope)
            fates.add(_fate(judgement, where[group.where], records), group.takers, group.booked)
        return fates


class Ledger:
    """The account of one task: its records by fate, for the stream and for each query.

    `reasons` counts bad values and records, `places` has the positions of the first of each.
    """

    def __init__(self, queries: Iterable[str]) -> None:
        self.stream = Entry()
        self.queries = {query: Entry() for query in queries}
        self.reasons: dict[str, int] = {}
        self.places: dict[str, list[int]] = {}

    def book(self, records: Records, fates: Fates) -> None:
        """Add the records of a chunk."""
        for reason, marked in records.faults:
            self._blame(reason, marked, records.rows)
        self.stream += fates.stream.entry
        for query, before in self.queries.items():
            self.queries[query] = before + fates.of[query].entry

    def _blame(self, reason: str, marked: Array, rows: Array) -> None:
        count = int(np.count_nonzero(marked))
        if count:
            self.reasons[reason] = self.reasons.get(reason, 0) + count
            known = self.places.setdefault(reason, [])
            if len(known) < account.PLACES:
                known += rows[np.flatnonzero(marked)[: account.PLACES - len(known)]].tolist()


def _judgement(taker: Taker, epoch: Epoch) -> Judgement:
    late = None if taker.window is None else cutoff(taker.window, epoch, taker.whose)
    return Judgement(taker.choice.where, frozenset(), taker.axis, late, taker.choice.gap)


def _with_bad(judgement: Judgement, bad: frozenset[str]) -> Judgement:
    return replace(judgement, bad=bad) if bad else judgement


def _fate(judgement: Judgement, where: Mask, records: Records) -> Fate:
    places, sound = records.places(judgement.axis), records.sound(judgement.axis)
    for name in sorted(judgement.bad):
        wrong: Any = records.columns[name].bad
        sound = both(sound, ~wrong)
    passed = both(sound, where)
    if judgement.gap is not None:
        slide, length = judgement.gap
        passed = both(passed, places % slide < length)
    exact = passed if judgement.cutoff is None else both(passed, places >= judgement.cutoff)
    return Fate(len(places), sound, passed, exact)


def either(one: Mask, other: Mask) -> Mask:
    """Records of one mask or the other."""
    return None if one is None or other is None else one | other


def _count(mask: Mask, rows: int) -> int:
    return rows if mask is None else int(np.count_nonzero(mask))


def sieves(takers: Mapping[str, tuple[Taker, ...]], epoch: Epoch) -> dict[str, str]:
    """For each relation, given with its takers, the first that always takes the same records."""
    return alike(
        (
            name,
            frozenset(
                (t.choice, t.window, epoch.origins.get(t.whose), epoch.joined.get(t.whose), t.booked) for t in of
            ),
        )
        for name, of in takers.items()
    )
