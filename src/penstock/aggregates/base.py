"""The two halves of an aggregate: the function that queries call, and the accumulator that rows of tables keep.

A `Function` has SQL names and a type rule, says which accumulators it needs, and makes its result of their merged
states. An `Accumulator` is one kind of state, in whichever table: its words in a row, its first value, and how values
and partial states fold into it. Several functions may need the same accumulator, which is then kept once.

    values ──► Accumulator.fold ──► rows ──► fold_partials (other tables, tasks, segments) ──► Function.finish

Both are stateless. Each family has a module of its own and a line in `aggregates.registry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.logical.types import Kind, Type

if TYPE_CHECKING:
    import numpy as np

    from penstock.aggregates.values import Into, Values
    from penstock.kernels.dictionary import Dictionary

    Array = np.ndarray
    Words = tuple[Array, ...]

BOUND = 1 << 63  # what may reach it does not fit one word
IPV6 = 1 << 32  # from here on the value of an address is the code of an IPv6 one


class TooMany(Exception):
    """More records than can be counted."""


@cache
def joining() -> Any:
    """The module of the loops that repeat, `kernels.tables.joining`; as `kernels`."""
    from penstock.kernels.tables import joining as loops

    return loops


@cache
def kernels() -> Any:
    """The module of the loops that fold, `kernels.tables.fold`. Planning knows accumulators as well, and must not load
    what compiles."""
    from penstock.kernels.tables import fold

    return fold


@dataclass(frozen=True, order=True)
class State:
    """One thing that a row keeps besides its key and count(*): an accumulator, by its kind, of a column.

    It names the state in files as well.
    """

    kind: str
    column: str


@dataclass(frozen=True)
class Facts:
    """What is known of the column of a state: the kind of its type, whether it has had a NULL, and whether its values
    could carry the state beyond its narrow form (`Accumulator.bound`)."""

    kind: Kind
    nullable: bool = False
    wide: bool = False


class Accumulator(ABC):
    """One kind of state. A state is words of 64 bits that stand side by side in a row.

    States must not show in which order, in how many parts and by which tasks values were folded.
    """

    kind: str  # in files: never to be changed
    measures = False  # whether integers are folded as doubles, too (`Values.floats`)
    picked = False  # whether it is kept of picks alone; where nothing is stored of it, it is as before the first value

    def state(self, column: str) -> State:
        return State(self.kind, column)

    @abstractmethod
    def words(self, facts: Facts) -> int:
        """Words of the state in a row. Facts only ever add words. None: the state is the row's count(*)."""

    def floating(self, facts: Facts) -> bool:
        """Whether the words are doubles; else they are integers."""
        return False

    def code_base(self, kind: Kind) -> int | None:
        """Where the word refers to a dictionary of the column: the value that stands for its code 0, greater ones for
        the next. None: it does not."""
        return None

    def fresh(self, facts: Facts) -> list[int]:
        """The words before the first value, as integers (the zero of doubles is 0)."""
        return [0] * self.words(facts)

    @abstractmethod
    def fold(self, into: Into, facts: Facts, values: Values, dictionary: Dictionary | None) -> None:
        """Fold in values of a chunk. `dictionary`: of the column, where words refer to it."""

    @abstractmethod
    def fold_partials(self, into: Into, facts: Facts, words: Words, dictionary: Dictionary | None) -> None:
        """Fold in states, the i-th of them into the i-th row of `into`. They may have fewer words than `facts` ask."""

    def adds(self, facts: Facts) -> bool:
        """Whether the state is one integer, and states merge by adding: then merges add what is stored as it is."""
        return False

    def repeated(self, words: Words, times: Array) -> Words:
        """The states of the same values, each as often as `times` says: what a joined row has of one of its sides."""
        return words

    # -- states that outgrow their words

    def grows(self, kind: Kind) -> bool:
        """Whether values of a column of this kind may make the state wide."""
        return False

    def bound(self, rows: int, low: int, high: int) -> int:
        """How far at most these many values, or narrow states, from low to high carry the state. Where all that was
        folded into a table may together reach `BOUND`, the state must be wide."""
        raise NotImplementedError

    def widened(self, words: Words) -> Words:
        """Narrow states as wide ones."""
        raise NotImplementedError


@dataclass(frozen=True)
class Kept:
    """Merged states of a column, by group. `count`: the number of its values; `valid`: which groups have one (None:
    all). Without a column (count(*)) the values are the records."""

    column: str | None
    count: Array
    valid: Array | None
    states: Mapping[State, Words]

    def words(self, accumulator: Accumulator) -> Words:
        assert self.column is not None
        return self.states[accumulator.state(self.column)]


@dataclass(frozen=True)
class FinishedValues:
    """Results by group; `valid` None: none is NULL.

    `canonical`: they are in the form that keys and extremes have (order bits of doubles, codes of strings), and whoever
    asked turns them into values of the result's type.
    """

    values: Array
    valid: Array | None = None
    canonical: bool = False


class OutOfRange(Exception):
    """The result of a group does not fit its type."""

    def __init__(self, group: int, what: str, hint: str) -> None:
        super().__init__(what)
        self.group, self.what, self.hint = group, what, hint


@dataclass(frozen=True)
class ParameterRule:
    """A constant that a call takes after its argument; `default` None: it must be given."""

    name: str
    wants: str  # what messages say it must be
    fits: Callable[[Any], bool]
    default: float | None = None


class BadParameter(Exception):
    """A constant of a call that does not do: its number, what is wrong, and what to write."""

    def __init__(self, number: int, what: str, hint: str) -> None:
        super().__init__(what)
        self.number, self.what, self.hint = number, what, hint


class AggregateFunction(ABC):
    """An aggregate function of one argument, and perhaps of constants."""

    name: str  # canonical, in plans and texts
    aliases: tuple[str, ...] = ()
    needs: tuple[Accumulator, ...] = ()  # besides the number of values, which all have
    wants = "numbers"  # what messages say the argument must be
    parameters: tuple[ParameterRule, ...] = ()
    lists = False  # whether it gives rows, not a value: then it must be an item of the select list by itself
    counts = False  # whether it asks only which values are there: then '*', NULL and prefixes are arguments, too

    @abstractmethod
    def result(self, argument: Type) -> Type | None:
        """The type of the result; None: the function does not take such an argument."""

    def completed(self, given: Sequence[Any]) -> tuple[Any, ...]:
        """The constants of a call, with those that were left away. Raises `BadParameter`."""
        found = []
        for number, rule in enumerate(self.parameters):
            value = given[number] if number < len(given) else rule.default
            if number < len(given) and not rule.fits(value):
                raise BadParameter(number, f"the {rule.name} of {self.name} must be {rule.wants}", "")
            found.append(value)
        return tuple(found)

    @abstractmethod
    def finish(self, kept: Kept) -> FinishedValues:
        """The results of these groups. Raises `OutOfRange` where one does not fit."""
