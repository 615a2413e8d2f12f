"""How many words each state takes in the rows of a task, or of a merge.

That depends on the type of its column and on the values met so far: a column without a NULL needs no count of its own,
and a sum that stays small takes one word. `Growth` looks at the values of a chunk, `Shape` is the answer. When a shape
grows, `runtime.tables` rewrites its rows, and `runtime.merge` widens states as it reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from penstock.aggregates.base import BOUND, Facts, State
from penstock.aggregates.registry import accumulator_of
from penstock.logical.types import Kind, Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Array


@dataclass(frozen=True)
class Shape:
    """What states need. Widens only.

    `kinds` are those of all columns, `nullable` the columns that have had a NULL, `wide` the states that could leave
    their narrow form.
    """

    kinds: Mapping[str, Kind]
    nullable: frozenset[str] = frozenset()
    wide: frozenset[State] = frozenset()
    _facts: dict[State, Facts] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, types: Mapping[str, Type]) -> Shape:
        """The shape of columns of these types before any value is known."""
        return cls({name: kind.kind for name, kind in types.items()})

    @cached_property
    def strings(self) -> frozenset[str]:
        return frozenset(name for name, kind in self.kinds.items() if kind is Kind.STRING)

    def facts(self, state: State) -> Facts:
        found = self._facts.get(state)
        if found is None:
            column = state.column
            found = self._facts[state] = Facts(self.kinds[column], column in self.nullable, state in self.wide)
        return found

    def words(self, state: State) -> int:
        """64-bit words that a state takes in a row; none: it is count(*)."""
        return accumulator_of(state).words(self.facts(state))

    def floating(self, state: State) -> bool:
        """Whether the state's words are doubles."""
        return accumulator_of(state).floating(self.facts(state))

    def fresh(self, state: State) -> list[int]:
        """A state before its first value."""
        return accumulator_of(state).fresh(self.facts(state))

    def covers(self, other: Shape) -> bool:
        return self.nullable >= other.nullable and self.wide >= other.wide


class Column(Protocol):
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
        self.measured = frozenset(state.column for state in kept if accumulator_of(state).measures)
        self._shape = shape
        self._bounds = {s: 0 for s in kept if accumulator_of(s).grows(shape.kinds[s.column])}

    def shape(self, columns: Mapping[str, Column], rows: int) -> Shape:
        """The shape that this chunk needs after all those before it."""
        from penstock.kernels.tables.pack import component_range

        for state in self._bounds:
            column = columns[state.column]
            low, high = component_range(column.numbers, column.valid)
            if low <= high:
                self._bounds[state] += accumulator_of(state).bound(rows, low, high)
        nullable = frozenset(name for name in self.columns if len(columns[name].valid))
        wide = frozenset(state for state, bound in self._bounds.items() if bound >= BOUND)
        return replace(self._shape, nullable=nullable, wide=wide)
