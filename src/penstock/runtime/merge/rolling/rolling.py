"""The groups of many queries, from the same rows.

Rows are partial groups of a finer relation, as they are stored or as they were merged. Equal ones may stand there
several times: a roll-up merges them, so rows need not be merged before. What queries have in common is made once: codes
of attributes, the order of the rows by window and lead, and their sums in that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from penstock.aggregates.base import State
from penstock.aggregates.count import RECORDS
from penstock.kernels.tables import rolling as kernels
from penstock.relations.component import Component, Tag
from penstock.relations.relation import Choice, Relation, sieve_of
from penstock.runtime.merge.merge import Merge
from penstock.runtime.merge.rolling.attributes import Attributes
from penstock.runtime.merge.rolling.coding import Keys, Single, coded, product
from penstock.state.segments.groups import CodedColumns, Groups

Array = np.ndarray
FEW = 1 << 12  # places that are always worth an array
MOST = 1 << 18  # places of an array that the cache still holds
NOTHING = np.empty(0, np.int32)


@dataclass(frozen=True)
class Lead:
    """Rows by window and the code of one column, and where these change: the cells. `windows` has the first cell of
    each window, `codes` the code of each cell; `sums` are columns in this order."""

    column: Single
    order: Array
    starts: Array
    windows: Array
    codes: Array
    sums: dict[State | None, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """Groups by number: their windows, their keys, and sums that were made on the way, count(*) first."""

    windows: Array
    keys: Keys
    sums: Sequence[Array]
    at: Array | None = None


@dataclass(frozen=True)
class Chosen:
    """The rows of a merge, or those that `only` chooses."""

    merge: Merge
    only: Array | None

    def cut(self, column: Array) -> Array:
        return column if self.only is None else column[self.only]

    def component(self, name: Component) -> Array:
        return self.cut(self.merge.stacked(name.text))


class Rolling:
    """Roll-ups of the rows of a merge; `only` chooses some of them, `given` has columns by code that are known."""

    def __init__(
        self, relation: Relation, merge: Merge, only: Array | None = None, given: CodedColumns | None = None
    ) -> None:
        self._relation, self._merge, self._only = relation, merge, only
        self.rows = merge.rows if only is None else len(only)
        self._rows = Chosen(merge, only)
        codes, self._numbers = coded(self._rows.cut(merge.windows()))
        self._window = codes.astype(np.int32) if len(self._numbers) > 1 else NOTHING
        self._attributes = Attributes(relation.attributes, self._rows.component, merge.dictionaries, given or {})
        self._columns: dict[State | None, Array] = {}
        self._sized: dict[str, dict[str, Single]] = {}
        self._lead: Lead | None = None
        self._taken: dict[Choice, Rolling | None] = {}  # None: all rows

    def groups(self, wanted: Relation) -> Groups:
        """The groups of a coarser relation."""
        return self._rolled(wanted, False)[0]

    def placed(self, wanted: Relation) -> tuple[Groups, Array]:
        """The same, and which of them each row is in."""
        groups, at = self._rolled(wanted, True)
        assert at is not None
        return groups, at

    def lead(self, wanted: Relation) -> str:
        """What rows are brought in order by for this: queries of the same lead should follow each other."""
        columns = self._by_size(wanted)
        return next(iter(columns), "") if self._places(columns.values()) is None else ""

    def taken(self, choice: Choice) -> Rolling:
        """The same of the rows that a choice of records takes."""
        if choice not in self._taken:
            name = sieve_of(choice).text
            if choice not in self._relation.choices or self._merge.all_zero(name):
                self._taken[choice] = None
            else:
                rows = np.flatnonzero(self._merge.stacked(name) == 0)
                self._taken[choice] = Rolling(self._relation, self._merge, rows)
        return self._taken[choice] or self

    # -- columns

    def _state(self, state: State | None) -> Array:
        """A state that adds, or count(*)."""
        if state not in self._columns:
            found = self._merge.stacked(RECORDS) if state is None else self._merge.stacked_state(state)
            self._columns[state] = self._rows.cut(found)
        return self._columns[state]

    # -- groups

    def _rolled(self, wanted: Relation, place: bool) -> tuple[Groups, Array | None]:
        kept = self._merge.kept(wanted.states)
        adding = tuple(state for state, form in kept.items() if form.accumulator.adds(form.facts))
        rest = [state for state in kept if state not in adding]
        found = self._found(wanted, adding, place or bool(rest))
        states: dict[State, tuple[Array, ...]] = {s: (found.sums[1 + n],) for n, s in enumerate(adding)}
        if rest:
            assert found.at is not None
            states |= self._folded(found.at, len(found.windows), rest)
        every = {name: column for single, codes in found.keys for name, column in single.components(codes).items()}
        components = {part.component: every[part.component] for part in wanted.parts[1:]}
        coded_states = {wanted.coded_states[state] for state in rest if state in wanted.coded_states}
        names = {*coded_states, *(name for name in components if name in self._attributes.dictionaries)}
        dictionaries = {name: self._attributes.dictionaries[name] for name in sorted(names)}
        kept_states = {state: states[state] for state in kept}
        groups = Groups(found.windows, components, dictionaries, found.sums[0], kept_states, addresses(found.keys))
        return groups, found.at

    def _found(self, wanted: Relation, adding: tuple[State, ...], place: bool) -> Found:
        columns = list(self._by_size(wanted).values())
        places = self._places(columns)
        if places is not None:
            return self._dense(columns, places, adding, place)
        return self._stamped(columns, adding, place)

    def _folded(self, at: Array, groups: int, states: Iterable[State]) -> dict[State, tuple[Array, ...]]:
        """States that do more than add."""
        if self._only is not None:  # the other rows are in a group more
            every = np.full(self._merge.rows, groups)
            every[self._only] = at
            at = every
        found = self._merge.folded([at[a:b] for a, b in pairwise(self._merge.edges)], groups + 1, list(states))[1]
        return {state: tuple(np.ascontiguousarray(word[:groups]) for word in words) for state, words in found.items()}

    def _by_size(self, wanted: Relation) -> dict[str, Single]:
        """The columns of a key, those with the most values first."""
        if wanted.name not in self._sized:
            columns = self._attributes.coded(wanted.attributes).items()
            self._sized[wanted.name] = dict(sorted(columns, key=lambda pair: (-pair[1].size, pair[0])))
        return self._sized[wanted.name]

    def _places(self, columns: Iterable[Single]) -> int | None:
        """How many different keys there may be, if that is few."""
        places = len(self._numbers)
        for column in columns:
            places *= column.size
        return places if places <= max(FEW, min(MOST, self.rows // 2)) else None

    def _dense(self, columns: list[Single], places: int, adding: tuple[State, ...], place: bool) -> Found:
        numbers = np.zeros(self.rows, np.int32) if not len(self._window) else self._window.copy()
        for part in columns:
            kernels.combine_codes(part.codes, part.size, numbers)
        sums = added(numbers, places, [self._state(None), *(self._state(state) for state in adding)])
        there = np.flatnonzero(sums[0])
        keys, left = list[tuple[Single, Array]](), there
        for part in reversed(columns):
            left, codes = np.divmod(left, part.size)
            keys.append((part, codes))
        at = None
        if place:
            group = np.empty(places, np.int64)
            group[there] = np.arange(len(there))
            at = group[numbers]
        return Found(self._numbers[left], keys, [one[there] for one in sums], at)

    def _stamped(self, columns: list[Single], adding: tuple[State, ...], place: bool) -> Found:
        longest, *others = columns
        lead = self._in_order(longest)
        rest = product(others, self.rows) if others else None
        codes, size = (np.zeros(self.rows, np.uint8), 1) if rest is None else (rest.codes, rest.size)
        latest, at = np.full(size, -1, np.int32), None
        begins = np.empty(len(lead.codes), np.int32)
        lead_of, rest_of = (np.empty(self.rows, np.int32) for _ in range(2))
        first, more = adding[: kernels.TOGETHER - 1], adding[kernels.TOGETHER - 1 :]
        values = tuple(self._in_lead(lead, state) for state in (None, *first))
        sums = [np.empty(self.rows, np.int64) for _ in values]
        count = kernels.stamp_sums(
            lead.order, lead.starts, lead.codes, codes, values, latest, begins, lead_of, rest_of, tuple(sums)
        )
        sums = [one[:count] for one in sums]
        if place or more:
            latest[:], at = -1, np.empty(self.rows, np.int64)
            kernels.stamp_rows(lead.order, lead.starts, codes, latest, at)
            sums += added(at, count, [self._state(state) for state in more])
        keys = [(longest, lead_of[:count]), *([] if rest is None else rest.columns(rest_of[:count]))]
        # Groups come by cell, and cells by window.
        windows = np.repeat(self._numbers, np.diff(begins[lead.windows], append=count))
        return Found(windows, keys, sums, at)

    def _in_lead(self, lead: Lead, state: State | None) -> Array:
        """A column in the order of a lead."""
        if state not in lead.sums:
            values = self._state(state)
            lead.sums[state] = np.empty(self.rows, np.int64)
            kernels.gather(values, lead.order, lead.sums[state])
        return lead.sums[state]

    def _in_order(self, column: Single) -> Lead:
        """Rows by window and the code of the lead; the last one is kept."""
        if self._lead is None or self._lead.column is not column:
            self._lead = None
            self._lead = self._ordered(column)
        return self._lead

    def _ordered(self, lead: Single) -> Lead:
        order = np.empty(self.rows, np.int32)
        kernels.order_by(lead.codes, np.zeros(lead.size + 1, np.int64), order)
        if len(self._window):
            before, order = order, np.empty(self.rows, np.int32)
            kernels.order_again(self._window, before, np.zeros(len(self._numbers) + 1, np.int64), order)
        starts = np.empty(self.rows + 1, np.int32)
        windows, codes = (np.empty(self.rows, np.int32) for _ in range(2))
        count = kernels.find_cells(order, self._window, lead.codes, starts, windows, codes)
        first = np.searchsorted(windows[:count], np.arange(len(self._numbers)))
        return Lead(lead, order, starts[: count + 1].copy(), first, codes[:count].copy())


def addresses(keys: Keys) -> CodedColumns:
    """The columns of addresses by name: they are printed by code."""
    found = ((single.column, codes) for single, codes in keys)
    return {next(iter(c.values)).of: (codes, c) for c, codes in found if any(n.tag is Tag.INET6 for n in c.values)}


def added(places: Array, many: int, columns: Sequence[Array]) -> list[Array]:
    """Sums of columns by place, of which there are so many."""
    sums = [np.zeros(many, np.int64) for _ in columns]
    for some in range(0, len(columns), kernels.TOGETHER):
        now = slice(some, some + kernels.TOGETHER)
        kernels.add_by_place(places, tuple(columns[now]), tuple(sums[now]))
    return sums
