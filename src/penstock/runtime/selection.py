"""Which tuples of a chunk reach which relation, and the account of those that do not.

A tuple is judged for a query in this order: malformed (no usable time, or a bad value in a column that the
query reads), filtered (WHERE is not true), late (its window is closed), exact. Relations that judge alike
share one selection; every WHERE is evaluated once per chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.logical.expressions import Expression
from penstock.runtime.evaluate import Scope, truth
from penstock.runtime.ingest import Ingested
from penstock.sharing.plan import Relation
from penstock.state import account

Array = np.ndarray


def first_open(watermark: int | None, size: int) -> int | None:
    """Number of the first window of this size that the watermark has not closed; None: all are open."""
    return None if watermark is None else watermark // size


@dataclass(frozen=True)
class Judgement:
    """What decides about a tuple, for all relations that judge alike."""

    where: Expression | None
    fallible: frozenset[str]  # columns read that can hold bad values
    cutoff: int | None  # tuples before it are late


@dataclass
class Ledger:
    """Counts of one task."""

    rows: int = 0
    stream: dict[str, int] = field(default_factory=account.empty)
    queries: dict[str, dict[str, int]] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {"stream": self.stream, "queries": self.queries, "malformed": self.reasons}


class Selector:
    """Judges chunk after chunk; `ledger` holds the account so far."""

    def __init__(self, relations: tuple[Relation, ...], watermark: int | None, fallible: frozenset[str]) -> None:
        self.ledger = Ledger(queries={r.query: account.empty() for r in relations})
        self._judgements = {}
        for relation in relations:
            first = first_open(watermark, relation.window)
            cutoff = None if first is None else first * relation.window
            self._judgements[relation.query] = Judgement(relation.where, relation.columns & fallible, cutoff)

    def select(
        self, ts: Array, timely: Array | None, columns: Mapping[str, Ingested], scope: Callable[[], Scope]
    ) -> dict[str, Array]:
        """Row numbers (int32) per query; books the chunk. `timely` None: every tuple has a usable time."""
        n, where, chosen, entries = len(ts), {}, {}, {}
        fates = Fates(n)
        for judgement in dict.fromkeys(self._judgements.values()):
            if judgement.where is not None and judgement.where not in where:
                where[judgement.where] = truth(judgement.where, scope())
            sound = _sound(judgement, timely, columns)
            passed = _and(sound, None if judgement.where is None else where[judgement.where])
            in_time = None if judgement.cutoff is None else ts >= judgement.cutoff
            exact = _and(passed, in_time)
            chosen[judgement] = _numbers(exact, n)
            sounds, passes, exacts = _count(sound, n), _count(passed, n), len(chosen[judgement])
            entries[judgement] = account.entry(n, exacts, passes - exacts, sounds - passes)
            fates.book(sound, passed, exact)
        self._book(n, entries, fates)
        return {query: chosen[judgement] for query, judgement in self._judgements.items()}

    def _book(self, n: int, entries: dict[Judgement, dict[str, int]], fates: Fates) -> None:
        ledger = self.ledger
        ledger.rows += n
        ledger.stream = account.add(ledger.stream, fates.entry())
        for query, judgement in self._judgements.items():
            ledger.queries[query] = account.add(ledger.queries[query], entries[judgement])


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

    def entry(self) -> dict[str, int]:
        # exact ⊂ passed ⊂ sound for every query, hence for their unions.
        sound, passed, exact = (_count(mask, self._rows) for mask in (self._sound, self._passed, self._exact))
        return account.entry(self._rows, exact, passed - exact, sound - passed)


def _sound(judgement: Judgement, timely: Array | None, columns: Mapping[str, Ingested]) -> Array | None:
    sound = timely
    for name in sorted(judgement.fallible):
        bad = columns[name].bad
        if bad is not None:
            sound = _and(sound, ~bad)
    return sound


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


def _numbers(mask: Array | None, rows: int) -> Array:
    if mask is None:
        return np.arange(rows, dtype=np.int32)
    return np.flatnonzero(mask).astype(np.int32)
