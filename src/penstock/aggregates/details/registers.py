"""approx_count_distinct: how many distinct values there are, more or less, in a few bytes each group.

A hash of the value chooses one of 2^p registers, which keeps the greatest place of the first one among the other bits
(HyperLogLog, Flajolet et al. 2007). Registers stand by eights in the rows of a finer relation: a group of few values
has few rows, and none has more than 2^p / 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.aggregates.base import Accumulator, Facts, FinishedValues, ParameterRule
from penstock.aggregates.details.function import Detail, DetailFunction, DetailRows, Parameter
from penstock.logical.expressions import Call, Column, Computed, Literal, Prefix
from penstock.logical.render import render
from penstock.logical.types import BIGINT, INT, Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Words
    from penstock.aggregates.values import Into, Values
    from penstock.kernels.dictionary import Dictionary

LANE_BITS = 3  # eight registers are a word
FEWEST, MOST = 4, 18  # bits that choose a register
SPREAD = 1.04  # times 1/√2^p: the standard error
ERROR = ParameterRule(
    "error", "a number from 0.0021 to 0.26", lambda value: SPREAD / 2 ** (MOST / 2) <= value <= SPREAD / 4, 0.02
)


@cache
def _kernels() -> Any:
    from penstock.kernels.tables import registers

    return registers


class Registers(Accumulator):
    """Eight registers of a byte each."""

    kind = "registers"

    def words(self, facts: Facts) -> int:
        return 1

    def fold(self, into: Into, facts: Facts, values: Values, dictionary: Dictionary | None) -> None:
        _kernels().mark_registers(*into.words, into.rows, values.numbers, values.valid)

    def fold_partials(self, into: Into, facts: Facts, words: Words, dictionary: Dictionary | None) -> None:
        _kernels().merge_registers(*into.words, words[0])


REGISTERS = Registers()


def precision(error: float) -> int:
    """The least p with 1.04/√2^p ≤ error.

    >>> precision(0.02), precision(0.01), precision(0.26)
    (12, 14, 4)
    """
    return next(p for p in range(FEWEST, MOST + 1) if SPREAD / 2 ** (p / 2) <= error)


def _called(function: str, value: Column | Prefix | Computed, bits: int) -> Computed:
    expression = value.expression if isinstance(value, Computed) else value
    call = Call(function, (expression, Literal(bits, INT)), BIGINT)
    return Computed("=" + render(call), call, BIGINT)


class ApproxCountDistinct(DetailFunction):
    name = "approx_count_distinct"
    parameters = (ERROR,)

    def result(self, argument: Type) -> Type | None:
        return BIGINT

    def detail(self, argument: Column | Prefix | Computed, parameters: Sequence[Parameter]) -> Detail:
        bits = _bits(parameters)
        mark = _called("register_mark", argument, bits)
        return Detail(_called("register_row", argument, bits), (mark,), (REGISTERS.state(mark.name),))

    def reduce(self, rows: DetailRows, groups: int, argument: Type, parameters: Sequence[Parameter]) -> FinishedValues:
        import numpy as np

        found = np.zeros(groups, np.int64)
        if len(rows):
            ((words,),) = rows.states.values()
            counts, gathered = np.bincount(rows.at, minlength=groups), np.empty(len(rows), np.int64)
            ends = np.cumsum(counts) - counts
            _kernels().gather_words(rows.at, words, ends, gathered)
            _kernels().estimates(gathered, ends, _bits(parameters), np.zeros(_kernels().VALUES), found)
        return FinishedValues(found)


def _bits(parameters: Sequence[Parameter]) -> int:
    error = parameters[0]
    assert isinstance(error, int | float)
    return precision(error)


APPROX_COUNT_DISTINCT = ApproxCountDistinct()
