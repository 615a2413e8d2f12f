"""How many words each state takes in the rows of a task, or of a merge.

That depends on the type of its column and on the values met so far: a column without a NULL needs no count of its own,
and a sum that stays small takes one word. `Growth` looks at the values of a chunk, `Shape` is the answer. When a shape
grows, `runtime.tables` rewrites its rows, and `runtime.merge` widens states as it reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.aggregates.base import BOUND, Accumulator, Facts, State
from penstock.aggregates.registry import ACCUMULATORS
from penstock.logical.types import Kind, Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Array


class Form(NamedTuple):
    """A state as rows keep it."""

    accumulator: Accumulator
    facts: Facts
    words: int  # none: it is count(*)
    floating: bool  # whether the words are doubles
    fresh: tuple[int, ...]  # the words before the first value
    coded: bool  # whether it refers to a dictionary
    grows: bool  # whether values may make it wide


@cache
def form_of(kind: str, facts: Facts) -> Form:
    """The form of a state of this kind."""
    one = ACCUMULATORS[kind]
    fresh, coded = tuple(one.fresh(facts)), one.code_base(facts.kind) is not None
    return Form(one, facts, one.words(facts), one.floating(facts), fresh, coded, one.grows(facts.kind))


@dataclass(frozen=True)
class Shape:
    """What states need. Widens only.

    `kinds` are those of all columns, `nullable` the columns that have had a NULL, `wide` the states that could leave
    their narrow form.
    """

    kinds: Mapping[str, Kind]
    nullable: frozenset[str] = frozenset()
    wide: frozenset[State] = frozenset()
    _forms: dict[State, Form] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, types: Mapping[str, Type]) -> Shape:
        """The shape of columns of these types before any value is known."""
        return cls({name: kind.kind for name, kind in types.items()})

    @cached_property
    def strings(self) -> frozenset[str]:
        return frozenset(name for name, kind in self.kinds.items() if kind is Kind.STRING)

    def form(self, state: State) -> Form:
        """How a state is kept."""
        found = self._forms.get(state)
        if found is None:
            column = state.column
            facts = Facts(self.kinds[column], column in self.nullable, state in self.wide)
            found = self._forms[state] = form_of(state.kind, facts)
        return found

    def forms(self, states: Iterable[State]) -> dict[State, Form]:
        """How these states are kept."""
        return {state: self.form(state) for state in states}

    def widened(self, nullable: frozenset[str], wide: frozenset[State]) -> Shape:
        """The shape that holds these as well."""
        if self.nullable >= nullable and self.wide >= wide:
            return self
        return replace(self, nullable=self.nullable | nullable, wide=self.wide | wide)


class MetColumn(Protocol):
    """A column of a chunk, as it was read."""

    @property
    def numbers(self) -> Array: ...
    @property
    def valid(self) -> Array: ...


class Growth:
    """What the chunks of a task ask of the states that it keeps.

    `columns`: those that some state is of; `measured`: those whose integers are folded as doubles, too.
    """

    def __init__(self, states: Iterable[State], shape: Shape) -> None:
        kept = sorted(set(states))
        self.columns = sorted({state.column for state in kept})
        self.measured = frozenset(state.column for state in kept if ACCUMULATORS[state.kind].measures)
        self._shape = shape
        self._bounds = {s: 0 for s in kept if ACCUMULATORS[s.kind].grows(shape.kinds[s.column])}

    def shape(self, columns: Mapping[str, MetColumn], rows: int) -> Shape:
        """The shape that this chunk needs after all those before it: the same object, unless it asks for more."""
        from penstock.kernels.tables.pack import component_range

        for state in self._bounds:
            column = columns[state.column]
            low, high = component_range(column.numbers, column.valid)
            if low <= high:
                self._bounds[state] += ACCUMULATORS[state.kind].bound(rows, low, high)
        nullable = frozenset(name for name in self.columns if len(columns[name].valid))
        wide = frozenset(state for state, bound in self._bounds.items() if bound >= BOUND)
        self._shape = self._shape.widened(nullable, wide)
        return self._shape
